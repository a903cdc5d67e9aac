"""Measure the recall of a running deployment: the share of similar pairs that it has found.

Every document of a window is compared with all others by an exact join, which misses no pair. A pair counts as found if
both documents are in one family, or if an event connects their families.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.streams.estimates.intervals import wilson
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.exact import Hashes, shingle_set
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.operations.audit.exact_join import ExactJoin
from nearstream.workers.operations.audit.window import Place, Told, Window, WindowTooLargeError
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded

FEATURES_MAX = 50_000_000  # shingles of a window, 8 bytes each
MISSED_SHOWN = 100
_STEP = Fraction(1, 20)  # width of a range of resemblances


@dataclass(frozen=True)
class Audited:
    """A document of the window.

    Attributes:
        document_key: `<collection>/<id>`.
        collection: Its collection.
        place: Partition and offset of its record.
        time_ms: Timestamp of its record.
        shingles: Its distinct shingles, ascending.
    """

    document_key: str
    collection: str
    place: Place
    time_ms: int
    shingles: Hashes


@dataclass(frozen=True)
class Range:
    """The pairs in a range of resemblances.

    Attributes:
        low: Least resemblance.
        pairs: Pairs from there to the next range.
        found: Those that the deployment has found.
    """

    low: float
    pairs: int
    found: int


@dataclass(frozen=True)
class Recall:
    """The recall in a window.

    Attributes:
        documents: Documents that were joined.
        waiting: Documents left out because they have no verdict yet.
        pairs: Pairs with at least the resemblance.
        found: Those that the deployment has found.
        interval: 95 % interval of the recall.
        ranges: The recall for each range of resemblances.
        missed: The first missed pairs: both document keys and the resemblance.
    """

    documents: int
    waiting: int
    pairs: int
    found: int
    interval: tuple[float, float]
    ranges: tuple[Range, ...]
    missed: tuple[tuple[str, str, float], ...]

    @property
    def ratio(self) -> float | None:
        """The share of the pairs that were found, or None if the window has no pairs."""
        return self.found / self.pairs if self.pairs else None


async def audit_recall(window: Window, resemblance: Fraction, one_in: int) -> Recall:
    """Measure the recall of a deployment on the documents of a window.

    Of a document that has several states in the window, the last one counts. Removed documents are left out.

    Args:
        window: The window.
        resemblance: Least resemblance of the pairs to be found.
        one_in: Look for the partners of one document in so many. All documents are indexed.

    Raises:
        WindowTooLargeError: The window holds more than `FEATURES_MAX` shingles.
        KafkaUnreachableError: No broker answered in time.
        SettingsError: A topic does not exist.
    """
    documents = await _documents(window)
    told = await window.told()
    matched = documents
    if window.deployment.settings.verdicts == "all":
        matched = [document for document in documents if document.place in told.families]
    found = measure(matched, told, resemblance, one_in)
    return _summed(found, len(matched), len(documents) - len(matched), resemblance)


@dataclass(frozen=True)
class Pair:
    """A pair of the exact join, and whether the deployment has found it."""

    newer: str
    older: str
    resemblance: Fraction
    is_found: bool


def measure(documents: Sequence[Audited], told: Told, resemblance: Fraction, one_in: int) -> Iterator[Pair]:
    """Yield each pair of documents with at least the resemblance.

    Args:
        documents: The documents, in any order.
        told: What the deployment has found.
        resemblance: Least resemblance of a pair.
        one_in: Look for the partners of one document in so many, always the same ones.
    """
    places = {document.document_key: document.place for document in documents}
    is_found = told.pairs()
    joins: dict[str, ExactJoin] = {}
    for document in sorted(documents, key=lambda each: (each.time_ms, each.place)):
        join = joins.setdefault(document.collection, ExactJoin(resemblance))
        if _number(document.document_key) % one_in == 0:
            for older, found in join.probe(document.shingles):
                yield Pair(document.document_key, older, found, is_found(document.place, places[older]))
        join.insert(document.document_key, document.shingles)


async def _documents(window: Window) -> list[Audited]:
    """Return the last state of each document of the window that was not removed."""
    found: dict[str, Audited] = {}
    size = 0
    async with aclosing(window.documents(embedded(window.deployment))) as read:
        async for record, parsed in read:
            size += _take(window.deployment, record, parsed, found)
            if size > FEATURES_MAX:
                raise WindowTooLargeError(f"the window holds more than {FEATURES_MAX} shingles: choose a later --since")
    return list(found.values())


def _take(deployment: Deployment, record: ConsumerRecord, parsed: Unsigned | Removal, found: dict[str, Audited]) -> int:
    """Add or remove the document of a record, and return by how many shingles that grows the window."""
    if isinstance(parsed, Removal):
        removed = found.pop(parsed.document_key, None)
        return -removed.shingles.size if removed else 0
    document = parsed.document
    shingles = shingle_set(document.text or "", deployment.scheme, deployment.key)
    key = document_key(document.collection, document.id or "")
    former = found.pop(key, None)
    if shingles.size:
        found[key] = Audited(key, document.collection, (record.partition, record.offset), record.timestamp_ms, shingles)
    return shingles.size - (former.shingles.size if former else 0)


def _summed(found: Iterator[Pair], documents: int, waiting: int, resemblance: Fraction) -> Recall:
    counts: dict[int, tuple[int, int]] = {}
    missed: list[tuple[str, str, float]] = []
    for pair in found:
        step = int((pair.resemblance - resemblance) / _STEP)
        pairs, hits = counts.get(step, (0, 0))
        counts[step] = pairs + 1, hits + pair.is_found
        if not pair.is_found and len(missed) < MISSED_SHOWN:
            missed.append((pair.newer, pair.older, round(float(pair.resemblance), 4)))
    total, hits = _totals(counts)
    ranges = tuple(Range(round(float(resemblance + step * _STEP), 4), *counts[step]) for step in sorted(counts))
    interval = wilson(hits / max(1, total), total)
    return Recall(documents, waiting, total, hits, interval, ranges, tuple(missed))


def _totals(counts: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    return sum(pairs for pairs, _ in counts.values()), sum(hits for _, hits in counts.values())


def _number(document_key: str) -> int:
    """Return a number that depends on the document alone."""
    return int.from_bytes(blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=8).digest())
