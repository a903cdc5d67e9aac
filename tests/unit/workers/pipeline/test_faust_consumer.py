"""The consumer's acknowledgements, and its batches in a rebalance, a stop or a crash.

The fault suite runs it on a real broker.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace

import pytest
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from faust.types.tuples import TP

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline import faust_consumer
from nearstream.workers.pipeline.faust_consumer import BatchConsumer, Transport
from nearstream.workers.worker.topology import create_app
from tests.support.turns import turns, until

GENERATION = 7
Fetched = list[FetchedRecord[bytes, bytes]]


def fetched(offset: int, partition: int = 0) -> FetchedRecord[bytes, bytes]:
    """Return a record as aiokafka returns it."""
    return FetchedRecord("in", partition, offset, 1_772_439_300_001, 0, b"k", b"v", None, 1, 1, ())


async def nothing() -> None:
    """Flush a producer without work."""


@dataclass
class Thread:
    """A substitute for the thread of aiokafka's client.

    A fetch returns the next of `answers`. Without any, it returns some records of one of the asked partitions, each of
    which ends at its offset in `ends`.
    """

    thread_loop: asyncio.AbstractEventLoop
    answers: list[Fetched] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    draw: Random = field(default_factory=lambda: Random(5))
    positions: Counter[int] = field(default_factory=Counter)
    asked: list[set[int]] = field(default_factory=list)
    committed: list[dict[TP, int]] = field(default_factory=list)
    at_fetch: list[Callable[[], object]] = field(default_factory=list)  # what happens in each of the next fetches
    at_commit: Callable[[], Awaitable[object]] = nothing
    sought: list[tuple[TopicPartition, int]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    assigned: set[TP] = field(default_factory=lambda: {TP("in", 0), TP("in", 1), TP("other", 0)})
    _fetch_max_wait_ms: int = 0

    @property
    def _fetcher(self) -> "Thread":
        return self

    @property
    def _coordinator(self) -> "Thread":
        return self

    def check_errors(self) -> None:
        if self.errors:
            raise self.errors.pop()

    def _ensure_consumer(self) -> "Thread":
        return self

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append((partition, offset))

    async def _fetch_records(
        self, _: object, partitions: set[TP], seconds: float, most: int
    ) -> dict[TopicPartition, Fetched]:
        self.asked.append({each.partition for each in partitions})
        await asyncio.sleep(0)
        if self.at_fetch:
            self.at_fetch.pop(0)()
        found = self.answers.pop(0) if self.answers else await self._some(self.asked[-1] & self.ends.keys(), most)
        if not found:
            await asyncio.sleep(seconds)
        parts: dict[TopicPartition, Fetched] = {}
        for record in found:
            parts.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return parts

    async def _some(self, partitions: set[int], most: int) -> Fetched:
        for part in self.draw.sample(sorted(partitions), len(partitions)):
            start = self.positions[part]
            end = self.positions[part] = min(start + self.draw.randint(1, most), self.ends[part])
            await asyncio.sleep(0)
            if start < end:
                return [fetched(offset, part) for offset in range(start, end)]
        return []

    async def commit(self, offsets: dict[TP, int]) -> bool:
        await self.at_commit()
        self.committed.append(offsets)
        return True

    def assignment(self) -> set[TP]:
        return self.assigned


@pytest.fixture
async def consumer(monkeypatch: pytest.MonkeyPatch) -> BatchConsumer:
    """Return a consumer with partitions of two topics that may fetch."""
    monkeypatch.setattr(faust_consumer, "FETCH_SECONDS", 0.01)
    app = create_app(Settings(), Health(), None, None, None)
    assert isinstance(app.transport, Transport)
    made = app.consumer
    assert isinstance(made, BatchConsumer)
    app.producer.flush = nothing  # type: ignore[method-assign]
    made._thread = Thread(asyncio.get_running_loop())  # type: ignore[assignment]
    made._set_active_tps(made._thread.assigned)  # type: ignore[attr-defined]
    app.consumer_generation_id = GENERATION
    made._fetching.set()
    return made


def thread(consumer: BatchConsumer, ends: dict[int, int] | None = None) -> Thread:
    """Return the substitute for the client's thread, over partitions of `in` that end at these offsets."""
    found: Thread = consumer._thread  # type: ignore[assignment]
    if ends is not None:
        found.ends, found.assigned = ends, {TP("in", part) for part in ends}
        consumer._set_active_tps(found.assigned)
    return found


async def acknowledged(consumer: BatchConsumer, *records: FetchedRecord[bytes, bytes]) -> None:
    """Let a batch of these records be done."""
    thread(consumer).answers = [list(records)]
    async with consumer.batch("in", 10) as batch:
        consumer.acknowledge(batch)


@asynccontextmanager
async def taking(consumer: BatchConsumer) -> AsyncIterator[asyncio.Future[list[ConsumerRecord]]]:
    """Take a batch in a task, which is cancelled at the end."""

    async def take() -> list[ConsumerRecord]:
        async with consumer.batch("in", 10) as records:
            return records

    taken = asyncio.ensure_future(take())
    try:
        yield taken
    finally:
        taken.cancel()
        await asyncio.wait([taken])


@pytest.mark.parametrize("is_over", [False, True], ids=["a rebalance goes on", "it is over"])
async def test_what_a_rebalance_overtakes_is_not_given_out(is_over: bool, consumer: BatchConsumer) -> None:
    """The record was fetched for the earlier assignment and will be read again."""

    def next_generation() -> None:
        asyncio.get_running_loop().call_soon(setattr, consumer.app, "consumer_generation_id", GENERATION + 1)

    thread(consumer).at_fetch = [next_generation if is_over else consumer.stop_flow]
    thread(consumer).answers = [[fetched(7)], [fetched(5)]]
    async with taking(consumer) as taken:
        if not is_over:
            await turns()
            assert not taken.done()
            consumer.resume_flow()
        assert [record.offset for record in await taken] == [5]


async def test_a_fetch_that_outlasts_a_rebalance_passes_over_nothing(consumer: BatchConsumer) -> None:
    """The fetch returns records of newly assigned partitions before a batch may be taken."""

    def overtaken() -> None:
        consumer.stop_flow()
        consumer.app.consumer_generation_id = GENERATION + 1

    thread(consumer).at_fetch = [overtaken]
    thread(consumer).answers = [[fetched(0), fetched(1), fetched(5, 1)]]
    async with taking(consumer) as taken:
        await turns()
        assert not taken.done()
        assert thread(consumer).sought == [(TopicPartition("in", 0), 0), (TopicPartition("in", 1), 5)]


async def test_a_rebalance_waits_for_the_commit_under_way(consumer: BatchConsumer) -> None:
    """If the commit has to be repeated, it may arrive after one of the next owner."""
    await acknowledged(consumer, fetched(7))
    answered = asyncio.Event()
    thread(consumer).at_commit = answered.wait
    committing = asyncio.ensure_future(consumer.commit())
    waiting = asyncio.ensure_future(consumer.wait_empty())
    await turns()
    assert not waiting.done()
    answered.set()
    await asyncio.gather(committing, waiting)
    assert thread(consumer).committed == [{TP("in", 0): 8}]


async def test_a_crash_waits_for_no_batch(consumer: BatchConsumer) -> None:
    thread(consumer).answers = [[fetched(7)]]
    async with consumer.batch("in", 10):
        waiting = asyncio.ensure_future(consumer.wait_empty())
        await turns()
        assert not waiting.done()
        consumer._crash(ZeroDivisionError())
        await waiting
    assert thread(consumer).committed == []


async def test_a_rebalance_in_a_stop_lets_the_batch_in_flight_be_committed(consumer: BatchConsumer) -> None:
    """Faust would close the client at once, and a commit without a client never returns."""
    thread(consumer).answers = [[fetched(7)]]
    consumer.app._stopped.set()  # type: ignore[attr-defined]
    async with consumer.batch("in", 10) as records:
        revoking = asyncio.ensure_future(consumer.on_partitions_revoked({TP("in", 0), TP("in", 1)}))
        await turns()
        assert not revoking.done()
        consumer.acknowledge(records)
    await revoking
    assert thread(consumer).committed == [{TP("in", 0): 8}]


async def test_what_was_acknowledged_is_forgotten_by_the_next_generation(consumer: BatchConsumer) -> None:
    await acknowledged(consumer, fetched(7))
    consumer._on_partitions_assigned = lambda *_: nothing()  # type: ignore[method-assign]
    await consumer.on_partitions_assigned({TP("in", 0)}, GENERATION + 1)
    await consumer.commit()
    assert thread(consumer).committed == []


async def test_a_thread_that_a_crash_has_ended_is_stopped_without_an_error(consumer: BatchConsumer) -> None:
    ended = consumer._new_consumer_thread()
    ended.thread_loop.close()
    ended._stopped_set()
    assert ended.should_stop


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_commit_that_meets_the_end_of_its_thread_is_given_up(consumer: BatchConsumer, is_closed: bool) -> None:
    """A crash ends the thread, and the stop that follows commits once more."""
    ended = consumer._new_consumer_thread()  # its loop never runs, so that nothing answers
    if is_closed:
        ended.thread_loop.close()
    committing = asyncio.ensure_future(ended.commit({TP("in", 0): 8}))
    ended.set_shutdown()
    async with asyncio.timeout(60):
        assert await committing is False
    ended.thread_loop.close()


@pytest.mark.parametrize("generation", [GENERATION, -1])
async def test_an_expelled_member_commits_nothing(consumer: BatchConsumer, generation: int) -> None:
    """Its commit could move the group back.

    Another member may have committed a higher offset and left.
    """
    committed: list[object] = []

    async def commit(offsets: object) -> None:
        committed.append(offsets)

    coordinator, assigned = SimpleNamespace(generation=generation), {TopicPartition("in", 0)}
    committing = consumer._new_consumer_thread()
    committing._consumer = SimpleNamespace(_coordinator=coordinator, assignment=lambda: assigned, commit=commit)
    assert await committing._commit({TP("in", 0): 8}) is (generation == GENERATION)
    assert len(committed) == (generation == GENERATION)
    committing.thread_loop.close()


async def test_an_error_of_the_group_is_raised(consumer: BatchConsumer) -> None:
    """Otherwise aiokafka would not rejoin, and the worker would keep another member's partitions."""
    thread(consumer).errors = [KafkaError("error 15 on OffsetFetch")]
    with pytest.raises(KafkaError, match="error 15"):
        async with consumer.batch("in", 10):
            pass


@pytest.mark.parametrize("lanes", [1, 3, 6])
async def test_batches_of_one_partition_follow_each_other_and_a_rebalance_waits_for_all(
    lanes: int, consumer: BatchConsumer
) -> None:
    ends = {0: 40, 1: 40, 2: 7, 3: 25}
    client = thread(consumer, ends)
    draw, in_work, seen = Random(lanes), set[int](), defaultdict[int, list[int]](list)
    most = 0

    async def lane() -> None:
        nonlocal most
        while True:
            async with consumer.batch("in", 5) as records:
                (partition,) = {each.partition for each in records}
                assert partition not in in_work
                in_work.add(partition)
                most = max(most, len(in_work))
                await turns(draw.randrange(30))
                seen[partition] += [each.offset for each in records]
                consumer.acknowledge(records)
                in_work.remove(partition)

    running = [asyncio.create_task(lane()) for _ in range(lanes)]
    await until(lambda: len(seen) == len(ends) or any(task.done() for task in running))
    consumer.stop_flow()
    await consumer.wait_empty()
    assert not in_work
    assert client.committed[-1].items() <= {TP("in", part): len(offsets) for part, offsets in seen.items()}.items()
    client.positions = Counter({part: len(offsets) for part, offsets in seen.items()})  # as committed
    consumer.resume_flow()
    await until(lambda: sum(map(len, seen.values())) == sum(ends.values()) or any(task.done() for task in running))
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    assert seen == {part: list(range(end)) for part, end in ends.items()}
    assert (most > 1) == (lanes > 1)


@pytest.mark.parametrize("has_other", [True, False], ids=["one is free", "all are in work"])
async def test_no_partition_in_work_is_asked_for_until_its_release_wakes_the_next_batch(
    has_other: bool, consumer: BatchConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all are in work, nothing is asked of the client, and the wait does not last until its limit."""
    if not has_other:
        monkeypatch.setattr(faust_consumer, "FETCH_SECONDS", 3600.0)
    client = thread(consumer, {0: 5, 1: 0} if has_other else {0: 5})
    client.draw.randint = lambda *_: 3  # type: ignore[method-assign]
    async with AsyncExitStack() as work, asyncio.timeout(60):
        records = await work.enter_async_context(consumer.batch("in", 3))
        assert [each.offset for each in records] == [0, 1, 2]
        client.asked.clear()
        async with taking(consumer) as taken:
            if has_other:
                await until(lambda: len(client.asked) >= 3)
            await turns()
            assert all(asked == {1} for asked in client.asked)
            assert bool(client.asked) is has_other
            await work.aclose()
            assert [each.offset for each in await taken] == [3, 4]
