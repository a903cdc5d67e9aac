"""Measure the recall of a running deployment: the share of similar pairs that it has found.

Every document of a window is compared with all others by an exact join, which misses no pair. A pair counts as found if
both documents are in one family, or if an event connects their families.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from math import ceil

import numpy as np

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.estimate import wilson
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.exact import Hashes, shingle_set
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow, follow_events
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded
from nearstream.workers.pipeline.sign import parse_document

FEATURES_MAX = 50_000_000  # shingles of a window, 8 bytes each
MISSED_SHOWN = 100
_STEP = Fraction(1, 20)  # width of a range of resemblances

Place = tuple[int | None, int | None]  # partition and offset on `documents`, where they are known


@dataclass(frozen=True)
class Audited:
    """A document of the window."""

    document_key: str  # `<collection>/<id>`
    place: Place
    time_ms: int  # timestamp of its record
    shingles: Hashes  # its distinct shingles, ascending


Pair = tuple[Audited, Audited, Fraction]  # the newer and the older document, and their resemblance


@dataclass(frozen=True)
class Found:
    """What the deployment has found."""

    families: dict[Place, str] = field(default_factory=dict)  # id of the family of each document
    events: set[frozenset[Place]] = field(default_factory=set)  # the two places that each event names

    def add(self, event: Event) -> None:
        """Add a verdict or an event. A retraction says nothing about pairs."""
        if isinstance(event, DocumentVerdict):
            if event.partition is not None and event.offset is not None:
                self.families[event.partition, event.offset] = event.family.id
        elif not isinstance(event, Retraction):
            self.events.add(frozenset((ref.partition, ref.offset) for ref in (event.newer, event.older)))

    def among(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, bool]]:
        """Yield each pair with whether it was found. A document without a verdict is a family of its own."""
        connected = {self._families(*places) for places in self.events}
        for pair in pairs:
            both = self._families(pair[0].place, pair[1].place)
            yield pair, len(both) == 1 or both in connected

    def _families(self, *places: Place) -> frozenset[object]:
        return frozenset(self.families.get(place, place) for place in places)


@dataclass(frozen=True)
class Range:
    """The pairs in a range of resemblances."""

    low: float  # least resemblance
    pairs: int  # pairs from there to the next range
    found: int  # those that the deployment has found


@dataclass(frozen=True)
class Missed:
    """A similar pair that the deployment has not found."""

    newer: str  # its document key
    older: str
    resemblance: float


@dataclass(frozen=True)
class Recall:
    """The recall in a window."""

    documents: int  # documents that were joined
    waiting: int  # documents left out because they have no verdict yet
    pairs: int  # pairs with at least the resemblance
    found: int  # those that the deployment has found
    interval: tuple[float, float]  # 95 % interval of the recall
    ranges: tuple[Range, ...]  # the recall for each range of resemblances
    missed: tuple[Missed, ...]  # the first missed pairs

    @property
    def ratio(self) -> float | None:
        """The share of the pairs that were found, or None if the window has no pairs."""
        return self.found / self.pairs if self.pairs else None


async def audit_recall(
    deployment: Deployment, since_ms: int, resemblance: Fraction, one_in: int, wait_seconds: float, progress: Progress
) -> Recall:
    """Measure the recall of a deployment on the documents since a time, in milliseconds since 1970.

    Of a document with several states the last one counts. Removed documents are left out. Partners are looked for of
    every n-th document only, among all documents.
    """
    documents = await _documents(deployment, since_ms, wait_seconds, progress)
    found, matched = Found(), documents
    events = follow_events(deployment.settings, wait_seconds, since_ms=since_ms, until_end=True)
    async with aclosing(events) as arrivals:
        async for _, event in arrivals:
            if event is not None:
                found.add(event)
    if deployment.settings.verdicts == "all":
        matched = [document for document in documents if document.place in found.families]
    pairs = found.among(similar_pairs(matched, resemblance, one_in))
    return summed(pairs, len(matched), len(documents) - len(matched), resemblance)


def similar_pairs(documents: Sequence[Audited], resemblance: Fraction, one_in: int) -> Iterator[Pair]:
    """Yield each pair of a collection with at least the resemblance, for one document in so many.

    Of two sets with resemblance J, each of n symbols, both have a common symbol among their first n - ceil(J n) + 1
    ones, in any order of all symbols. So these alone are indexed (prefix filter, Chaudhuri et al. 2006).
    """
    holders = defaultdict[tuple[str, int], list[Audited]](list)
    for document in sorted(documents, key=lambda each: (each.time_ms, each.place)):
        own, collection = document.shingles, document.document_key.partition("/")[0]
        first = own[: own.size - ceil(resemblance * own.size) + 1].tolist()
        if _number(document.document_key) % one_in == 0:
            others = {other.document_key: other for symbol in first for other in holders[collection, symbol]}
            for other in others.values():
                if (shared := _resemblance(own, other.shingles, resemblance)) >= resemblance:
                    yield document, other, shared
        for symbol in first:
            holders[collection, symbol].append(document)


def _resemblance(one: Hashes, other: Hashes, least: Fraction) -> Fraction:
    """Return the resemblance of two sets, 0 if their sizes rule out the least one."""
    small, large = sorted((one.size, other.size))
    if small < least * large:
        return Fraction(0)
    common = int(np.intersect1d(one, other, assume_unique=True).size)
    return Fraction(common, small + large - common)


def _number(document_key: str) -> int:
    return int.from_bytes(blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=8).digest())


async def _documents(deployment: Deployment, since_ms: int, wait_seconds: float, progress: Progress) -> list[Audited]:
    """Return the last state of each document that was not removed."""
    found, size, job = dict[str, Audited](), 0, embedded(deployment)
    tps = await partitions(deployment.settings, [deployment.topic(DOCUMENTS)], wait_seconds)
    async with (
        consumer(deployment.settings, wait_seconds, fetch_wait_ms=1) as client,
        aclosing(follow(client, tps, since_ms=since_ms, until_end=True)) as records,
    ):
        async for record in records:
            progress.step()
            key, shingles = _shingles(deployment, job, record)
            former = found.pop(key, None)
            size += shingles.size - (former.shingles.size if former else 0)
            if shingles.size:
                found[key] = Audited(key, (record.partition, record.offset), record.timestamp_ms, shingles)
            if size > FEATURES_MAX:
                message = f"the window holds more than {FEATURES_MAX} shingles: choose a later --since"
                raise RefusalError(message, Exit.USAGE)
    progress.end()
    return list(found.values())


def _shingles(deployment: Deployment, job: Embedded, record: ConsumerRecord) -> tuple[str, Hashes]:
    """Return the key of a document and its shingles, none for a removal or a record that cannot be read."""
    try:
        parsed = parse_document(record, job.limits)
        if isinstance(parsed, Removal):
            return parsed.document_key, np.empty(0, np.uint64)
        document = job.pages.with_text(parsed).document
    except InvalidMessageError:
        return "", np.empty(0, np.uint64)
    shingles = shingle_set(document.text or "", deployment.scheme, deployment.key)
    return document_key(document.collection, document.id or ""), shingles


def summed(pairs: Iterable[tuple[Pair, bool]], documents: int, waiting: int, resemblance: Fraction) -> Recall:
    """Return the recall of pairs, each with whether it was found, among so many documents."""
    of_step, found_of_step = Counter[int](), Counter[int]()
    missed: list[Missed] = []
    for (newer, older, shared), is_found in pairs:
        step = int((shared - resemblance) / _STEP)
        of_step[step] += 1
        found_of_step[step] += is_found
        if not is_found and len(missed) < MISSED_SHOWN:
            missed.append(Missed(newer.document_key, older.document_key, round(float(shared), 4)))
    lows = {step: round(float(resemblance + step * _STEP), 4) for step in sorted(of_step)}
    ranges = tuple(Range(low, of_step[step], found_of_step[step]) for step, low in lows.items())
    total, hits = of_step.total(), found_of_step.total()
    interval = wilson(hits / max(1, total), total)
    return Recall(documents, waiting, total, hits, interval, ranges, tuple(missed))
