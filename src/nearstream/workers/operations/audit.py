"""Measure the recall of a running deployment: the share of similar pairs that it has found.

Every document of a window is compared with all others by an exact join, which misses no pair. A pair counts as found if
both documents are in one family, or if an event connects their families.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.estimate import wilson
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.exact import Hashes, shingle_set
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.records import follow_events
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded
from nearstream.workers.pipeline.sign import parse_document

FEATURES_MAX = 50_000_000  # shingles of a window, 8 bytes each
MISSED_SHOWN = 100
_STEP = Fraction(1, 20)  # width of a range of resemblances

Place = tuple[int, int]  # partition and offset on `documents`


def prefix_length(size: int, resemblance: Fraction) -> int:
    """Return how many first symbols index a set: size - ceil(J size) + 1.

    Two sets with this resemblance or more share a symbol in their prefixes.
    """
    return size - ceil(resemblance * size) + 1


def longest(size: int, resemblance: Fraction) -> int:
    """Return the largest size that can reach a resemblance to a set of `size` symbols."""
    return floor(size / resemblance)


def may_reach(size: int, place: int, other_size: int, other_place: int, resemblance: Fraction) -> bool:
    """Return whether two sets can reach a resemblance.

    The first symbol that they share is at these places, counted from 1. At best they share all symbols after it in the
    shorter suffix.
    """
    shared = 1 + min(size - place, other_size - other_place)
    return shared * resemblance.denominator >= resemblance.numerator * (size + other_size - shared)


class ExactJoin:
    """All sets so far, by the symbols of their prefixes."""

    def __init__(self, resemblance: Fraction) -> None:
        """Prepare for pairs with at least this resemblance, in (0, 1]."""
        if not 0 < resemblance <= 1:
            raise ValueError(f"a resemblance above 0, at most 1 expected, not {resemblance}")
        self._resemblance = resemblance
        self._names: list[str] = []
        self._sets: list[NDArray[np.uint64]] = []
        # By symbol: the number of each set that has it in its prefix, the place there, and the size of the set.
        self._postings: dict[int, list[tuple[int, int, int]]] = {}

    def insert(self, name: str, features: Sequence[int] | NDArray[np.uint64]) -> None:
        """Add a set without looking for others."""
        own = np.unique(np.asarray(features, dtype=np.uint64))
        number, size = len(self._sets), own.size
        for place, symbol in enumerate(self._prefix(own), 1):
            self._postings.setdefault(symbol, []).append((number, place, size))
        self._names.append(name)
        self._sets.append(own)

    def _prefix(self, own: NDArray[np.uint64]) -> list[int]:
        first: list[int] = own[: prefix_length(own.size, self._resemblance)].tolist() if own.size else []
        return first

    def probe(self, features: Sequence[int] | NDArray[np.uint64]) -> list[tuple[str, Fraction]]:
        """Return the sets that are as similar as asked to a further set."""
        own = np.unique(np.asarray(features, dtype=np.uint64))
        size, seen = own.size, set[int]()
        least = ceil(self._resemblance * size)
        found: list[tuple[int, Fraction]] = []
        for place, symbol in enumerate(self._prefix(own), 1):
            for number, its_place, its_size in self._postings.get(symbol, ()):
                if number in seen:
                    continue
                seen.add(number)  # the first common symbol decides, later ones are no better
                if its_size >= least and may_reach(size, place, its_size, its_place, self._resemblance):
                    resemblance = _resemblance(own, self._sets[number])
                    if resemblance >= self._resemblance:
                        found.append((number, resemblance))
        return [(self._names[number], resemblance) for number, resemblance in sorted(found)]


def _resemblance(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> Fraction:
    common = int(np.intersect1d(one, other, assume_unique=True).size)
    return Fraction(common, one.size + other.size - common)


@dataclass(frozen=True)
class Window:
    """The records of a deployment that an audit reads, without a group and without writing."""

    deployment: Deployment  # the deployment
    since_ms: int  # time of the oldest records, in milliseconds since 1970
    wait_seconds: float  # how long a broker may take to answer
    quiet: bool  # show no progress

    async def documents(self, job: Embedded) -> AsyncGenerator[tuple[ConsumerRecord, Unsigned | Removal]]:
        """Yield each readable document with its text, and each removal."""
        async with aclosing(self._records()) as records:
            async for record in records:
                try:
                    parsed = parse_document(record, job.limits)
                    yield record, parsed if isinstance(parsed, Removal) else job.pages.with_text(parsed)
                except InvalidMessageError:
                    continue

    async def told(self) -> "Told":
        """Return what the deployment has found, by its verdicts and events."""
        settings, told = self.deployment.settings, Told()
        found = follow_events(settings, self.wait_seconds, since_ms=self.since_ms, until_end=True)
        async with aclosing(found) as arrivals:
            async for _, event in arrivals:
                if event is not None:
                    told.add(event)
        return told

    async def _records(self) -> AsyncGenerator[ConsumerRecord]:
        settings, progress = self.deployment.settings, Progress("read", 0, self.quiet)
        tps = await kafka_offsets.partitions(settings, [self.deployment.topic(DOCUMENTS)], self.wait_seconds)
        async with (
            kafka_client.consumer(settings, self.wait_seconds, fetch_wait_ms=1) as client,
            aclosing(kafka_records.follow(client, tps, since_ms=self.since_ms, until_end=True)) as records,
        ):
            async for record in records:
                yield record
                progress.step()
        progress.end()


@dataclass(frozen=True)
class Told:
    """What the deployment has found."""

    families: dict[Place, str] = field(default_factory=dict)  # id of the family of each document, by its place
    events: set[frozenset[Place]] = field(default_factory=set)  # the two places that each event names

    def add(self, event: Event) -> None:
        """Add a verdict or an event. A retraction says nothing about pairs."""
        if isinstance(event, DocumentVerdict):
            if event.partition is not None and event.offset is not None:
                self.families[event.partition, event.offset] = event.family.id
        elif not isinstance(event, Retraction):
            places = frozenset(place for ref in (event.newer, event.older) if (place := place_of(ref)) is not None)
            self.events.add(places)

    def pairs(self) -> Callable[[Place, Place], bool]:
        """Return a function that says whether a pair was found.

        It was found if both documents are in one family, or if an event connects their families. A document without a
        verdict is alone.
        """

        def families(*places: Place) -> frozenset[object]:
            return frozenset(self.families.get(place, place) for place in places)

        connected = {families(*places) for places in self.events}

        def is_found(one: Place, other: Place) -> bool:
            both = families(one, other)
            return len(both) == 1 or both in connected

        return is_found


def place_of(ref: DocumentRef) -> Place | None:
    """Return where the record of a document is on `documents`, if that is known."""
    return None if ref.partition is None or ref.offset is None else (ref.partition, ref.offset)


@dataclass(frozen=True)
class Audited:
    """A document of the window."""

    document_key: str  # `<collection>/<id>`
    collection: str  # its collection
    place: Place  # partition and offset of its record
    time_ms: int  # timestamp of its record
    shingles: Hashes  # its distinct shingles, ascending


@dataclass(frozen=True)
class Range:
    """The pairs in a range of resemblances."""

    low: float  # least resemblance
    pairs: int  # pairs from there to the next range
    found: int  # those that the deployment has found


@dataclass(frozen=True)
class Recall:
    """The recall in a window."""

    documents: int  # documents that were joined
    waiting: int  # documents left out because they have no verdict yet
    pairs: int  # pairs with at least the resemblance
    found: int  # those that the deployment has found
    interval: tuple[float, float]  # 95 % interval of the recall
    ranges: tuple[Range, ...]  # the recall for each range of resemblances
    missed: tuple[tuple[str, str, float], ...]  # the first missed pairs: both document keys and the resemblance

    @property
    def ratio(self) -> float | None:
        """The share of the pairs that were found, or None if the window has no pairs."""
        return self.found / self.pairs if self.pairs else None


async def audit_recall(window: Window, resemblance: Fraction, one_in: int) -> Recall:
    """Measure the recall of a deployment on the documents of a window.

    Of a document that has several states in the window, the last one counts. Removed documents are left out. All
    documents are indexed, but partners are looked for of every n-th document only.
    """
    documents = await _documents(window)
    told = await window.told()
    matched = documents
    if window.deployment.settings.verdicts == "all":
        matched = [document for document in documents if document.place in told.families]
    found = measure(matched, told, resemblance, one_in)
    return _summed(found, len(matched), len(documents) - len(matched), resemblance)


# A pair of the exact join: newer and older document, their resemblance, and whether the deployment has found the pair.
Pair = tuple[str, str, Fraction, bool]


def measure(documents: Sequence[Audited], told: Told, resemblance: Fraction, one_in: int) -> Iterator[Pair]:
    """Yield each pair of documents with at least the resemblance.

    Of one document in so many, always the same ones, the partners are looked for.
    """
    places = {document.document_key: document.place for document in documents}
    is_found = told.pairs()
    joins: dict[str, ExactJoin] = {}
    for document in sorted(documents, key=lambda each: (each.time_ms, each.place)):
        join = joins.setdefault(document.collection, ExactJoin(resemblance))
        if _number(document.document_key) % one_in == 0:
            for older, found in join.probe(document.shingles):
                yield document.document_key, older, found, is_found(document.place, places[older])
        join.insert(document.document_key, document.shingles)


async def _documents(window: Window) -> list[Audited]:
    found: dict[str, Audited] = {}
    size = 0
    async with aclosing(window.documents(embedded(window.deployment))) as read:
        async for record, parsed in read:
            size += _take(window.deployment, record, parsed, found)
            if size > FEATURES_MAX:
                message = f"the window holds more than {FEATURES_MAX} shingles: choose a later --since"
                raise RefusalError(message, Exit.USAGE)
    return list(found.values())


def _take(deployment: Deployment, record: ConsumerRecord, parsed: Unsigned | Removal, found: dict[str, Audited]) -> int:
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
    for newer, older, of_pair, is_found in found:
        step = int((of_pair - resemblance) / _STEP)
        pairs, hits = counts.get(step, (0, 0))
        counts[step] = pairs + 1, hits + is_found
        if not is_found and len(missed) < MISSED_SHOWN:
            missed.append((newer, older, round(float(of_pair), 4)))
    total, hits = _totals(counts)
    ranges = tuple(Range(round(float(resemblance + step * _STEP), 4), *counts[step]) for step in sorted(counts))
    interval = wilson(hits / max(1, total), total)
    return Recall(documents, waiting, total, hits, interval, ranges, tuple(missed))


def _totals(counts: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    return sum(pairs for pairs, _ in counts.values()), sum(hits for _, hits in counts.values())


def _number(document_key: str) -> int:
    return int.from_bytes(blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=8).digest())
