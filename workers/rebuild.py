"""A lost index filled anew from the `signatures` topic; no event is sent."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass

from schemas.codec import InvalidMessageError
from schemas.record import Record
from schemas.topics import SIGNATURES
from streams.completion import Bounds
from streams.hashing import HashKey
from streams.index import Admission, IndexLostError, IndexUnavailableError, Position
from streams.scheme import Keys, Scheme
from workers import assembly, kafka_offsets, kafka_records
from workers.matching import signed
from workers.redis_address import IndexAddress
from workers.redis_rebuild import LEASE_SECONDS, IndexRebuild, RebuildRefusedError
from workers.settings import Settings
from workers.show import Progress

BATCH = 32
_NO_KEYS = Keys(b"", None, (), ())


@dataclass
class Rebuilt:
    """What became of the records: documents admitted, removals, records of other schemes or unreadable."""

    admitted: int = 0
    removed: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class _Run:
    """One rebuild under way."""

    rebuild: IndexRebuild
    scheme: Scheme
    key: HashKey
    bounds: Bounds
    rebuilt: Rebuilt
    progress: Progress

    async def admit(self, records: list[Record], previous: dict[int, int], now_ms: int) -> None:
        """Admits a batch; `previous` is moved on to its last offsets."""
        admissions = []
        for record in records:
            admission = self._admission(record, previous.get(record.partition, -1))
            if admission is None:
                self.rebuilt.skipped += 1
                continue
            admissions.append(admission)
            previous[record.partition] = record.offset
            self.rebuilt.removed += admission.signature is None
            self.rebuilt.admitted += admission.signature is not None
        await self.rebuild.index.admit(admissions, now_ms)
        self.progress.step(len(records))

    def _admission(self, record: Record, previous: int) -> Admission | None:
        position = Position(record.partition, record.offset, previous)
        try:
            key, signature = signed(record, self.scheme, self.bounds)
        except InvalidMessageError:
            return None
        if signature is None:
            return Admission(key, None, _NO_KEYS, position)
        return Admission(key, self.scheme.kept(signature), self.scheme.keys(signature, self.key), position)


async def rebuild(settings: Settings, address: IndexAddress, wait_seconds: float, *, quiet: bool) -> Rebuilt:
    """Admits what the group has matched, in order of time; takes up a rebuild that was cut off.

    Args:
        settings: Where the signatures are, and whose.
        address: The index to be filled.
        wait_seconds: Longest wait for a broker.
        quiet: No progress line.

    Raises:
        RebuildRefusedError: The index holds documents, or another rebuild is under way.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        IndexUnavailableError: Redis does not answer.
        SettingsError: Topic, scheme or key do not fit.
    """
    key = assembly.hash_key(settings)
    ends = await _matched(settings, wait_seconds)
    begun = await IndexRebuild.begin(address)
    try:
        previous = await begun.index.checkpoints()
        starts = {partition: previous.get(partition, -1) + 1 for partition in ends}
        total = sum(max(end - starts[partition], 0) for partition, end in ends.items())
        scheme, progress = assembly.scheme(settings, key), Progress("rebuilt", total, quiet)
        run = _Run(begun, scheme, key, assembly.bounds(settings), Rebuilt(), progress)
        renewing = asyncio.create_task(_renew(begun))
        try:
            await _fill(run, settings, starts, ends, previous)
        except IndexLostError:
            await begun.renew()  # raises if another rebuild has taken the index
            raise
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
        await begun.finish()
    finally:
        await begun.close()
    run.progress.end()
    return run.rebuilt


async def _fill(
    run: _Run, settings: Settings, starts: dict[int, int], ends: dict[int, int], previous: dict[int, int]
) -> None:
    batch: list[Record] = []
    now_ms = 0
    async with aclosing(_by_time(settings, starts, ends)) as records:
        async for record in records:
            batch.append(record)
            if len(batch) == BATCH:
                now_ms = max(now_ms, batch[-1].timestamp_ms)
                await run.admit(batch, previous, now_ms)
                batch = []
    if batch:
        await run.admit(batch, previous, max(now_ms, batch[-1].timestamp_ms))
    # What was skipped at the end is no loss either.
    await run.rebuild.index.pass_over(
        [Position(part, end - 1, previous.get(part, -1)) for part, end in ends.items() if end]
    )


async def _matched(settings: Settings, wait_seconds: float) -> dict[int, int]:
    """Offset up to which each partition was matched; where none ever was, its end."""
    topic = settings.topic_prefix + SIGNATURES.name
    ends = await kafka_offsets.end_offsets(settings, topic, wait_seconds)
    known = await kafka_offsets.committed(settings, topic, ends)
    if all(offset < 0 for offset in known.values()):
        return ends
    return {partition: max(known.get(partition, -1), 0) for partition in ends}


async def _by_time(settings: Settings, starts: dict[int, int], ends: dict[int, int]) -> AsyncGenerator[Record]:
    """Records of all partitions, merged by their time; order within a partition holds."""
    topic = settings.topic_prefix + SIGNATURES.name
    async with AsyncExitStack() as stack:
        heap: list[tuple[int, int, Record, AsyncIterator[Record]]] = []
        for partition, start in starts.items():
            if start < ends[partition]:
                reading = kafka_records.read_range(settings, topic, partition, start, ends[partition])
                await _push(heap, partition, await stack.enter_async_context(aclosing(reading)))
        while heap:
            _, partition, record, records = heapq.heappop(heap)
            yield record
            await _push(heap, partition, records)


async def _push(
    heap: list[tuple[int, int, Record, AsyncIterator[Record]]], partition: int, records: AsyncIterator[Record]
) -> None:
    record = await anext(records, None)
    if record is not None:
        heapq.heappush(heap, (record.timestamp_ms, partition, record, records))


async def _renew(begun: IndexRebuild) -> None:
    """Holds the index until cancelled, or until another rebuild has taken it: then admissions are refused."""
    with suppress(RebuildRefusedError):
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(IndexUnavailableError):  # the next attempt is within the lease
                await begun.renew()
