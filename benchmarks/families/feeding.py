"""Feed documents to a store through a matcher, and keep what it said."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice

from benchmarks.quality.scoring import Figures
from nearstream.schemas.documents.document import Document, document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import encode_json, event_headers
from nearstream.schemas.verdicts.events import PairEvent, Retraction, subject_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import Store

BATCH = 32
KEY = HashKey.public()
SCHEME = preset(DEFAULT_LABEL, KEY)
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Fed:
    """What was said about a stream of documents."""

    verdicts: dict[str, DocumentVerdict] = field(default_factory=dict)  # by id of the document
    events: list[PairEvent] = field(default_factory=list)  # all pair events
    comparisons: int = 0  # number of them
    cut: int = 0  # documents for which the limit of candidates left some out
    full_buckets: int = 0  # full buckets of all documents
    seconds: float = 0  # what matching took

    @cached_property
    def families(self) -> dict[str, str]:
        """Return the id of the family of each document, at the end."""
        return {name: verdict.family.id for name, verdict in self.verdicts.items()}

    @cached_property
    def paired(self) -> set[frozenset[str]]:
        """Return the pairs of documents that an event names."""
        return {frozenset((event.newer.id, event.older.id)) for event in self.events}

    @cached_property
    def _between(self) -> set[frozenset[str]]:
        return {frozenset(self.families[name] for name in both) for both in self.paired}

    def connects(self, one: str, other: str) -> bool:
        """Return whether two documents are in one family, or an event names one of each of their families."""
        families = frozenset((self.families[one], self.families[other]))
        return len(families) == 1 or families in self._between

    def per_document(self, count: int) -> float:
        """Return a count divided by the number of documents."""
        return round(count / max(len(self.verdicts), 1), 3)

    def bytes_sent(self) -> int:
        """Return the bytes of all records that a worker sends: keys, values and headers."""
        total = 0
        for event in (*self.verdicts.values(), *self.events):
            total += len(document_key(event.collection, subject_of(event))) + len(encode_json(event))
            total += sum(len(name) + len(value or b"") for name, value in event_headers(event, _BEGIN, None))
        return total

    def figures(self) -> Figures:
        """Return what every run reports."""
        return {
            "documents": len(self.verdicts),
            "events_per_document": self.per_document(len(self.events)),
            "families_of_several": len([n for n in sizes(self.families).values() if n > 1]),
            "comparisons_per_document": self.per_document(self.comparisons),
            "full_buckets": self.full_buckets,
            "documents_per_second": round(len(self.verdicts) / self.seconds) if self.seconds else None,
        }


def sizes(families: dict[str, str]) -> dict[str, int]:
    """Return the size of each family."""
    found: dict[str, int] = {}
    for family in families.values():
        found[family] = found.get(family, 0) + 1
    return found


def signed(texts: Iterable[str], prefix: str = "d") -> list[Signature]:
    """Sign texts as documents that arrive one second after the other."""
    signer = Signer(SCHEME, KEY)
    return [
        signer.sign(Document(id=f"{prefix}{at}", text=text, observed_at=_BEGIN + timedelta(seconds=at)))
        for at, text in enumerate(texts)
    ]


async def feed(signatures: Sequence[Signature], store: Store, batch: int = 1) -> Fed:
    """Match documents in this order, in batches of this size."""
    fed, matcher = Fed(), Matcher(store, SCHEME, KEY)
    waiting = iter(signatures)
    while some := list(islice(waiting, batch)):
        began = time.perf_counter()
        found = await matcher.match_all([Arrival(each.document_key, each) for each in some])
        fed.seconds += time.perf_counter() - began
        for signature, matched in zip(some, found, strict=True):
            if matched.verdict is not None:
                fed.verdicts[signature.id] = matched.verdict
            fed.events += [event for event in matched.events if not isinstance(event, Retraction)]
    counts = matcher.counts
    fed.comparisons, fed.cut, fed.full_buckets = counts.candidates["looked_up"], counts.cut, counts.full_buckets
    return fed
