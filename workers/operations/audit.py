"""Measure the recall of a running deployment: the share of similar pairs that it has found.

Every document of a window is compared with all others by an exact join, which misses no pair. A pair counts as found if
both documents are in one family, or if an event connects their families.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b

from nearstream.schemas.codec import InvalidMessageError
from nearstream.schemas.events import Event, Retraction
from nearstream.schemas.evidence import DocumentRef
from nearstream.schemas.record import ConsumerRecord
from nearstream.schemas.topics import DOCUMENTS
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.estimates.intervals import wilson
from nearstream.streams.fingerprints.shingles import Hashes
from nearstream.streams.index.exact_join import ExactJoin
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.shingle_sets import shingle_set
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.tail import EventFilter, follow_events
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded
from nearstream.workers.pipeline.sign import parse_document

FEATURES_MAX = 50_000_000  # shingles of a window, 8 bytes each
MISSED_SHOWN = 100
_STEP = Fraction(1, 20)  # width of a range of resemblances

Place = tuple[int, int]  # partition and offset on `documents`


class WindowTooLargeError(Exception):
    """A window holds more than `FEATURES_MAX` shingles."""


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
class Told:
    """What the deployment has found.

    Attributes:
        families: Id of the family of each document, by its place.
        events: The two places that each event names.
    """

    families: dict[Place, str] = field(default_factory=dict)
    events: set[frozenset[Place]] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Add a verdict or an event. A retraction says nothing about pairs."""
        if isinstance(event, DocumentVerdict):
            if event.partition is not None and event.offset is not None:
                self.families[event.partition, event.offset] = event.family.id
        elif not isinstance(event, Retraction):
            places = frozenset(place for ref in (event.newer, event.older) if (place := _place(ref)) is not None)
            self.events.add(places)


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
        ranges: The same by resemblance.
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
        """The share of the pairs that were found. None: there are none."""
        return self.found / self.pairs if self.pairs else None


async def audit_recall(
    deployment: Deployment, resemblance: Fraction, since_ms: int, one_in: int, wait_seconds: float, *, quiet: bool
) -> Recall:
    """Measure the recall of a deployment on the documents since a time.

    Of a document that has several states in the window, the last one counts. Removed documents are left out.

    Args:
        deployment: The deployment. It reads with no group, and writes nothing.
        resemblance: Least resemblance of the pairs to be found.
        since_ms: Time of the oldest records, in milliseconds since 1970.
        one_in: Look for the partners of one document in so many. All documents are indexed.
        wait_seconds: How long a broker may take to answer.
        quiet: Show no progress.

    Raises:
        WindowTooLargeError: The window holds more than `FEATURES_MAX` shingles.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist.
    """
    documents = await _documents(deployment, since_ms, wait_seconds, quiet=quiet)
    told = Told()
    events = follow_events(deployment.settings, wait_seconds, EventFilter(), since_ms=since_ms, until_end=True)
    async with aclosing(events) as arrivals:
        async for arrival in arrivals:
            if arrival.event is not None:
                told.add(arrival.event)
    matched = documents
    if deployment.settings.verdicts == "all":
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
    families = {document.document_key: told.families.get(document.place, document.place) for document in documents}
    by_place = {document.place: families[document.document_key] for document in documents}
    connected = {
        frozenset(by_place.get(place, told.families.get(place, place)) for place in places) for places in told.events
    }
    joins: dict[str, ExactJoin] = {}
    for document in sorted(documents, key=lambda each: (each.time_ms, each.place)):
        join = joins.setdefault(document.collection, ExactJoin(resemblance))
        if _number(document.document_key) % one_in == 0:
            for older, found in join.probe(document.shingles):
                both = frozenset((families[document.document_key], families[older]))
                yield Pair(document.document_key, older, found, len(both) == 1 or both in connected)
        join.insert(document.document_key, document.shingles)


async def _documents(deployment: Deployment, since_ms: int, wait_seconds: float, *, quiet: bool) -> list[Audited]:
    """Return the last state of each document since a time that was not removed."""
    topic, job = deployment.topic(DOCUMENTS), embedded(deployment)
    found: dict[str, Audited] = {}
    size, progress = 0, Progress("read", 0, quiet)
    tps = await kafka_offsets.partitions(deployment.settings, [topic], wait_seconds)
    async with (
        kafka_client.consumer(deployment.settings, wait_seconds) as client,
        aclosing(kafka_records.follow(client, tps, since_ms=since_ms, until_end=True)) as records,
    ):
        async for record in records:
            size += _take(deployment, job, record, found)
            if size > FEATURES_MAX:
                raise WindowTooLargeError(f"the window holds more than {FEATURES_MAX} shingles: choose a later --since")
            progress.step()
    progress.end()
    return list(found.values())


def _take(deployment: Deployment, job: Embedded, record: ConsumerRecord, found: dict[str, Audited]) -> int:
    """Add or remove the document of a record, and return by how many shingles that grows the window."""
    try:
        parsed = parse_document(record, job.limits)
        if isinstance(parsed, Removal):
            removed = found.pop(parsed.document_key, None)
            return -removed.shingles.size if removed else 0
        document = job.pages.with_text(parsed).document
    except InvalidMessageError:
        return 0
    shingles = shingle_set(document.text or "", deployment.scheme, deployment.key)
    key = f"{document.collection}/{document.id}"
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


def _place(ref: DocumentRef) -> Place | None:
    return None if ref.partition is None or ref.offset is None else (ref.partition, ref.offset)


def _number(document_key: str) -> int:
    """Return a number that depends on the document alone."""
    return int.from_bytes(blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=8).digest())
