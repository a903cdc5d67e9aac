"""Rebuild a lost index from the `signatures` topic, without sending events.

Documents are compared again, because families are decided by comparisons.
"""

import asyncio
import heapq
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from functools import partial

from nearstream.schemas.codec import InvalidMessageError, decode_signature
from nearstream.schemas.dead_letter import Stage
from nearstream.schemas.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics import SIGNATURES
from nearstream.streams.arriving import Arrival
from nearstream.streams.matcher import Matcher
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.streams.store.store import Position
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.rebuilt_index import RebuiltIndex, former_families
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.dead_letters import decide_apart
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.signature_records import arrival_of
from nearstream.workers.pipeline.step import cooperative_yield
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.rebuild import LEASE_SECONDS, IndexRebuild, RebuildRefusedError

BATCH = 32
_AGAIN = 256  # offsets before the checkpoint from which an interrupted rebuild continues
_NAMED = 5  # schemes that a message names


@dataclass
class Rebuilt:
    """The number of records by outcome.

    Attributes:
        admitted: Documents.
        removed: Removals.
        skipped: Records that are unreadable, have another scheme, or got a dead letter.
        labels: Labels, given or taken back.
    """

    admitted: int = 0
    removed: int = 0
    skipped: int = 0
    labels: int = 0

    def count(self, arrival: Arrival | None) -> None:
        """Count a record, and None for one that was skipped."""
        if arrival is None:
            self.skipped += 1
        elif arrival.labelling is not None:
            self.labels += 1
        elif arrival.signature is None:
            self.removed += 1
        else:
            self.admitted += 1


@dataclass(frozen=True)
class _Rebuild:
    """A rebuild in progress.

    Attributes:
        rebuild: The index with its lease.
        deployment: The deployment whose signatures are read.
        matcher: Matches them.
        index: The index at the time of the records.
        progress: Counts the records.
        wait_seconds: Longest wait for a broker.
        known: By partition, the last offset that an interrupted rebuild admitted.
        rebuilt: The number of further records by outcome.
    """

    rebuild: IndexRebuild
    deployment: Deployment
    matcher: Matcher
    index: RebuiltIndex
    progress: Progress
    wait_seconds: float
    known: dict[int, int]
    rebuilt: Rebuilt = field(default_factory=Rebuilt)

    async def admit(self, records: list[ConsumerRecord], previous: dict[int, int], now_ms: int) -> None:
        """Match a batch, and set `previous` to its last admitted offsets.

        A record on which that fails gets a dead letter.
        """
        self.index.now_ms = now_ms
        dead_letters = await decide_apart(records, partial(self._match, previous=previous), self._refused)
        if dead_letters:
            async with kafka_records.sender(self.deployment.settings, self.wait_seconds) as send_all:
                await send_all(dead_letters)
        self.progress.step(len(records))

    async def _match(self, records: Sequence[ConsumerRecord], previous: dict[int, int]) -> list[ProducerRecord]:
        """Match records. They have no results."""
        reached = dict(previous)
        arrivals: list[Arrival] = []
        counted: list[Arrival | None] = []
        for record in records:
            arrival = self._arrival(record, reached.get(record.partition, -1))
            if arrival is not None:
                arrivals.append(arrival)
                reached[record.partition] = record.offset
            if record.offset > self.known.get(record.partition, -1):
                counted.append(arrival)
        await self.matcher.match_all(arrivals, cooperative_yield())
        previous.update(reached)
        for each in counted:
            self.rebuilt.count(each)
        return []

    async def _refused(self, record: ConsumerRecord, error: BaseException) -> ProducerRecord:
        self.rebuilt.count(None)
        return self.deployment.dead_letter_writer("rebuild").unprocessable(record, Stage.MATCH, error)

    def _arrival(self, record: ConsumerRecord, previous: int) -> Arrival | None:
        try:
            return arrival_of(record, previous, self.deployment.scheme, self.deployment.document_limits)
        except InvalidMessageError:
            return None


async def require_own_signatures(deployment: Deployment, wait_seconds: float) -> None:
    """Refuse a scheme or key of which the topic holds no signature, although it holds others.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist, or all its signatures are of other schemes, which the message names.
    """
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)
    others: set[str] = set()
    for partition, end in (await kafka_offsets.end_offsets(settings, topic, wait_seconds)).items():
        async with aclosing(kafka_records.read_range(settings, topic, partition, 0, end)) as records:
            async for record in records:
                scheme = _scheme_of(record)
                if scheme == deployment.scheme.name:
                    return
                others |= {scheme} if scheme and len(others) < _NAMED else set()
    if others:
        raise SettingsError(
            f"NEARSTREAM_SCHEME, NEARSTREAM_HASH_KEY: the signatures on {topic} have the scheme"
            f" {', '.join(sorted(others))}, the settings give {deployment.scheme.name}: restore the former values (and"
            " NEARSTREAM_BANDS, _ROWS, _TOPIC_PREFIX)"
        )


def _scheme_of(record: ConsumerRecord) -> str:
    """Return the scheme of a signature, empty for any other record."""
    try:
        return decode_signature(record.value).scheme if record.value else ""
    except InvalidMessageError:
        return ""


async def rebuild(deployment: Deployment, address: IndexAddress, wait_seconds: float, *, quiet: bool) -> Rebuilt:
    """Admit what the group has matched, in order of time.

    A rebuild that was interrupted is continued.

    Args:
        deployment: The deployment whose signatures are read.
        address: The index to fill.
        wait_seconds: Longest wait for a broker.
        quiet: Write no progress line.

    Raises:
        RebuildRefusedError: The index holds documents, or another rebuild is in progress.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        IndexUnavailableError: Redis does not answer.
        SettingsError: The topic does not exist, or the index has another scheme or key.
    """
    settings = deployment.settings
    ends = await _matched(settings, wait_seconds)
    families = await former_families(deployment, wait_seconds)
    rebuilding = await IndexRebuild.begin(address)
    try:
        previous = await rebuilding.index.checkpoints()
        # The last batch may have been admitted without its families, so it is matched again.
        starts = {partition: max(previous.get(partition, -1) + 1 - _AGAIN, 0) for partition in ends}
        total = sum(max(end - starts[partition], 0) for partition, end in ends.items())
        progress = Progress("rebuilt", total, quiet)
        index = RebuiltIndex(rebuilding.index, families)
        run = _Rebuild(rebuilding, deployment, deployment.matcher(index), index, progress, wait_seconds, dict(previous))
        renewing = asyncio.create_task(_renew(rebuilding))
        try:
            await _fill(run, settings, starts, ends, previous)
        except IndexLostError:
            await rebuilding.renew()  # It raises another error if another rebuild has taken the index.
            raise
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
        await rebuilding.finish()
    finally:
        await rebuilding.close()
    run.progress.end()
    return run.rebuilt


async def _fill(
    run: _Rebuild, settings: Settings, starts: dict[int, int], ends: dict[int, int], previous: dict[int, int]
) -> None:
    batch: list[ConsumerRecord] = []
    now_ms = 0
    async with aclosing(_by_time(settings, starts, ends)) as records:
        async for record in records:
            batch.append(record)
            if len(batch) == BATCH:
                now_ms = _time_of(batch, now_ms)
                await run.admit(batch, previous, now_ms)
                batch = []
    if batch:
        await run.admit(batch, previous, _time_of(batch, now_ms))
    # Pass over records that were skipped at the end, or the index would seem to have lost them.
    await run.rebuild.index.pass_over(
        [Position(part, end - 1, previous.get(part, -1)) for part, end in ends.items() if end]
    )


def _time_of(batch: Sequence[ConsumerRecord], before_ms: int) -> int:
    """Return the time of a batch, which is not before that of the last one and not ahead of the clock."""
    return max(before_ms, min(batch[-1].timestamp_ms, time.time_ns() // 1_000_000))


async def _matched(settings: Settings, wait_seconds: float) -> dict[int, int]:
    """Return the offset up to which each partition was matched.

    If the group has never matched anything, it is the end of each partition.
    """
    topic = settings.topic_prefix + SIGNATURES.name
    ends = await kafka_offsets.end_offsets(settings, topic, wait_seconds)
    known = await kafka_offsets.committed(settings, topic, ends)
    if all(offset < 0 for offset in known.values()):
        return ends
    return {partition: max(known.get(partition, -1), 0) for partition in ends}


async def _by_time(settings: Settings, starts: dict[int, int], ends: dict[int, int]) -> AsyncGenerator[ConsumerRecord]:
    """Yield the records of all partitions, merged by their time.

    The order within a partition is kept.
    """
    topic = settings.topic_prefix + SIGNATURES.name
    async with AsyncExitStack() as stack:
        heap: list[tuple[int, int, ConsumerRecord, AsyncIterator[ConsumerRecord]]] = []
        for partition, start in starts.items():
            if start < ends[partition]:
                reading = kafka_records.read_range(settings, topic, partition, start, ends[partition])
                await _push(heap, partition, await stack.enter_async_context(aclosing(reading)))
        while heap:
            _, partition, record, records = heapq.heappop(heap)
            yield record
            await _push(heap, partition, records)


async def _push(
    heap: list[tuple[int, int, ConsumerRecord, AsyncIterator[ConsumerRecord]]],
    partition: int,
    records: AsyncIterator[ConsumerRecord],
) -> None:
    record = await anext(records, None)
    if record is not None:
        heapq.heappush(heap, (record.timestamp_ms, partition, record, records))


async def _renew(rebuilding: IndexRebuild) -> None:
    """Renew the lease on the index until cancelled.

    If another rebuild has taken the index, return: admissions are refused from then on.
    """
    with suppress(RebuildRefusedError):
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(IndexUnavailableError):  # The next attempt is still within the lease.
                await rebuilding.renew()
