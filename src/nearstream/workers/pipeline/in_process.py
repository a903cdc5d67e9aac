"""Sign and match documents in this process, without a server."""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, PageFacts, as_sent
from nearstream.schemas.topics.codec import InvalidMessageError, encode_signature
from nearstream.schemas.verdicts.events import PairEvent, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.signing.signer import Signer, Unsigned
from nearstream.streams.store.store import Store, local_store
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.files.source import Item, Refused
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.sign import parse_document
from nearstream.workers.sqlite.file import IndexFile

BATCH, BATCH_BYTES = 64, 1 << 24  # most documents that are matched at a time, and after how many bytes no more are


def as_it_is(document: Document) -> Document:
    """Return a document as it was read."""
    return document


@dataclass(frozen=True)
class Outcome:
    """The result of one record."""

    source: str  # file and line of the record, for messages
    events: tuple[PairEvent | Retraction, ...] = ()  # its events
    # What its document is to those before it. None: it holds no document, or an empty text.
    verdict: DocumentVerdict | None = None
    refusal: str = ""  # Why it was refused. Empty: it was not.
    is_empty: bool = False  # whether it is a document without words, which has no relations
    degraded: tuple[str, ...] = ()  # what was incomplete about reading its document
    page: PageFacts = field(default_factory=PageFacts)  # what else was read of the page that it was
    text: str = ""  # the text of its document


@dataclass(frozen=True)
class Embedded:
    """The signer and matcher of a deployment, all in this process.

    What it yields is what one document at a time gives, and the reference: every deployment must send these verdicts
    and events.
    """

    signer: Signer
    matcher: Matcher
    limits: DocumentLimits
    store: Store
    pages: PageReader = field(default_factory=PageReader)
    index: IndexFile | None = None  # where the store lies. None: in memory
    _founders: set[int] = field(default_factory=set)

    async def families(self) -> AsyncIterator[FamilyFacts]:
        """Yield the families with a second member."""
        founders = sorted(self.index.founders() if self.index else self._founders)
        for start in range(0, len(founders), BATCH):
            for family in await families_of(self.store, founders[start : start + BATCH]):
                yield family

    async def outcomes(
        self, items: Iterable[Item | Refused], read_as: Callable[[Document], Document] = as_it_is, batch: int = BATCH
    ) -> AsyncIterator[Outcome]:
        """Yield the outcome of each record, in order.

        `read_as` changes what is read of each document. `batch` of them are read ahead, 1 if one may be long in coming.
        """
        for some in batches(items, batch):
            read = [self.read_item(item, read_as) for item in some]
            arrivals = [arrival for _, arrival in read if arrival is not None]
            matched = iter(await self.matcher.match_all(arrivals, are_apart=True))
            self.keep(arrivals)
            if self.index is not None:
                self.index.commit()
            for outcome, arrival in read:
                yield outcome if arrival is None else self._told(outcome, next(matched))

    def read(self, record: ConsumerRecord) -> Unsigned | Removal:
        """Return the document of a record with its text, or its removal. It blocks while HTML becomes text."""
        parsed = parse_document(record, self.limits)
        return parsed if isinstance(parsed, Removal) else self.pages.with_page(parsed)[0]

    def read_item(
        self, item: Item | Refused, read_as: Callable[[Document], Document]
    ) -> tuple[Outcome, Arrival | None]:
        """Return what is known of a record before it is matched, and what is matched."""
        if isinstance(item, Refused):
            return Outcome(item.source, refusal=item.reason), None
        try:
            parsed = parse_document(item.record, self.limits)
            if isinstance(parsed, Removal):
                arrival = Arrival(parsed.document_key, None, None, parsed.removed_at_ms, parsed.origin)
                return Outcome(item.source), arrival
            unsigned, page = self.pages.with_page(parsed)
            unsigned = unsigned._replace(document=read_as(unsigned.document))
            signature = self.signer.sign(*unsigned)
        except InvalidMessageError as error:
            return Outcome(item.source, refusal=str(error)), None
        if not signature.n_bytes:
            return Outcome(item.source, is_empty=True, degraded=signature.degraded), None
        facts = as_sent(page, item.record.headers)
        outcome = Outcome(item.source, degraded=signature.degraded, page=facts, text=unsigned.document.text or "")
        return outcome, Arrival(signature.document_key, signature)

    def keep(self, arrivals: Iterable[Arrival]) -> None:
        """Keep signatures in the file of the index, and forget the signatures of removed documents."""
        if self.index is None:
            return
        for each in arrivals:
            value, at_ms = encode_signature(each.signature) if each.signature else None, time.time_ns() // 1_000_000
            self.index.keep(each.document_key.encode(), value, at_ms)

    def _told(self, outcome: Outcome, matched: Matched) -> Outcome:
        verdict = matched.verdict
        if verdict is not None and verdict.family.ordinal == 1:
            self._founders.add(matched.registered.number)
        return replace(outcome, events=matched.events, verdict=verdict)


def batches(items: Iterable[Item | Refused], most: int) -> Iterator[list[Item | Refused]]:
    """Yield records in batches that have bounds in count and bytes."""
    batch, size = list[Item | Refused](), 0
    for item in items:
        batch.append(item)
        size += len(item.record.value or b"") if isinstance(item, Item) else 0
        if len(batch) >= most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def embedded(deployment: Deployment, index: IndexFile | None = None) -> Embedded:
    """Create the signer and matcher of a deployment, by default with a new index in memory."""
    store = index.store if index else local_store(deployment.index_limits, lambda: time.time_ns() // 1_000_000)
    signer, matcher = deployment.signer(), deployment.matcher(store)
    return Embedded(signer, matcher, deployment.document_limits, store, deployment.page_reader(), index)
