"""Several batches of one step in work: each law of delivery holds in every lane."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka import TopicPartition
from faust.types.tuples import TP

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.dead_letter import DeadLetter, Payload, Reason, Stage, outgoing
from nearstream.streams.store.limits import IndexBehindError, IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Shape, Store
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline import delivery, faust_consumer
from nearstream.workers.pipeline.dead_letters import DeadLetterLimit
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.faust_consumer import BatchConsumer, Transport
from nearstream.workers.pipeline.retry import RetryPolicy
from nearstream.workers.pipeline.step import Decide, Lanes, Lost, Recovery, Step
from nearstream.workers.worker.topology import create_app
from tests.support.matching import Topic, matching, prose, record, signed

Batch = Sequence[ConsumerRecord]


def consumed(offset: int, partition: int = 0) -> ConsumerRecord:
    """Return a record as the consumer returns it, whose value tells its place."""
    return ConsumerRecord("in", partition, offset, 1000, b"k", b"%d/%d" % (partition, offset), [])


async def echo(records: Batch) -> list[ProducerRecord]:
    """Return one result for each record, with its value."""
    return [ProducerRecord("out", each.key, each.value, []) for each in records]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def turns(count: int = 50) -> None:
    """Let all ready tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


@dataclass
class Bench:
    """A delivery with lanes over given batches, which waits for ever when all are taken."""

    batches: list[list[ConsumerRecord]]
    lanes: int = 2
    limits: DeadLetterLimit = field(default_factory=lambda: DeadLetterLimit(0, 0.0))
    recovery: Recovery | None = None
    journal: list[str] = field(default_factory=list)
    unconfirmed: dict[bytes, asyncio.Future[None]] = field(default_factory=dict)  # values that the broker holds up
    health: Health = field(default_factory=Health)
    in_work: int = 0
    most_in_work: int = 0

    @asynccontextmanager
    async def batch(self, _: str, __: int) -> AsyncIterator[list[ConsumerRecord]]:
        if not self.batches:
            await asyncio.Event().wait()
        self.in_work += 1
        self.most_in_work = max(self.most_in_work, self.in_work)
        try:
            yield self.batches.pop(0)
        finally:
            self.in_work -= 1

    def acknowledge(self, records: Batch) -> None:
        self.journal += [f"ack {each.partition}/{each.offset}" for each in records]

    async def send(
        self, _: str, __: bytes, value: bytes, ___: None, ____: float | None, _____: Headers
    ) -> asyncio.Future[None]:
        self.journal.append(f"send {value.decode()}")
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if value in self.unconfirmed:
            self.unconfirmed[value] = confirmed
        else:
            confirmed.set_result(None)
        return confirmed

    def hold_up(self, value: bytes) -> None:
        """Leave the record with this value unconfirmed."""
        self.unconfirmed[value] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def running(self, decide: Decide = echo) -> AsyncIterator["asyncio.Task[None]"]:
        """Run the delivery in a task, which is cancelled at the end."""
        task = asyncio.create_task(self.delivery().run("in", self.step(decide)))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])

    def step(self, decide: Decide = echo) -> Step:
        return Step("test", 1, decide, lambda *_: None, self.recovery, Lanes(self.lanes))

    def delivery(self) -> Delivery:
        app: Any = SimpleNamespace(producer=self, consumer=self)
        return Delivery(app, self.health, self.limits, RetryPolicy(self.health, 900))

    @property
    def acknowledged(self) -> list[str]:
        return [line.removeprefix("ack ") for line in self.journal if line.startswith("ack")]


async def test_a_batch_goes_on_while_another_one_waits_for_the_broker() -> None:
    bench = Bench([[consumed(7)], [consumed(3, 1)], [consumed(4, 1)]])
    bench.hold_up(b"0/7")
    async with bench.running():
        await until(lambda: len(bench.acknowledged) == 2)
        assert bench.acknowledged == ["1/3", "1/4"]
        bench.unconfirmed[b"0/7"].set_result(None)
        await until(lambda: len(bench.acknowledged) == 3)


@pytest.mark.parametrize("lanes", [1, 3])
async def test_no_more_batches_are_in_work_than_there_are_lanes(lanes: int) -> None:
    bench = Bench([[consumed(offset)] for offset in range(10)], lanes)
    async with bench.running():
        await until(lambda: len(bench.acknowledged) == 10)
    assert bench.most_in_work == lanes


async def test_a_failure_in_one_lane_ends_all_and_acks_nothing_of_theirs() -> None:
    async def broken_at_3(records: Batch) -> list[ProducerRecord]:
        await until(lambda: "send 0/7" in bench.journal)
        raise ZeroDivisionError

    async def decide(records: Batch) -> list[ProducerRecord]:
        return await (broken_at_3 if records[0].offset == 3 else echo)(records)

    bench = Bench([[consumed(7)], [consumed(3, 1)]])
    bench.hold_up(b"0/7")
    async with bench.running(decide) as task:
        with pytest.raises(ZeroDivisionError):
            await task
    assert bench.acknowledged == []
    assert bench.in_work == 0
    assert bench.health.in_work == frozenset()


async def test_a_stop_ends_all_lanes_and_acks_nothing_of_theirs() -> None:
    bench = Bench([[consumed(7)], [consumed(3, 1)], [consumed(1, 2)]], lanes=3)
    for value in (b"0/7", b"1/3"):
        bench.hold_up(value)
    async with bench.running() as task:
        await until(lambda: bench.acknowledged == ["2/1"] and len(bench.journal) == 4)
        assert len(bench.health.in_work) == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert bench.acknowledged == ["2/1"]
    assert bench.in_work == 0
    assert bench.health.in_work == frozenset()


async def test_lanes_share_one_limit_of_dead_letters_and_halt_together() -> None:
    """The good batch would begin the count anew, so it must not be sent either."""

    async def decide(records: Batch) -> list[ProducerRecord]:
        if records[0].offset == 9:
            await until(lambda: bench.health.halted)
            return await echo(records)
        letters = [DeadLetter(each, Stage.DECODE, Reason.NOT_JSON, "an object expected") for each in records]
        return [outgoing(letter, "dead", "w", Payload.FULL, 10_000) for letter in letters]

    bench = Bench(
        [[consumed(9, 1)], [consumed(1), consumed(2)], [consumed(3), consumed(4)]], limits=DeadLetterLimit(4, 0.0)
    )
    async with bench.running(decide):
        await until(lambda: bench.health.halted)
        await turns()
        assert bench.acknowledged == ["0/1", "0/2"]
        assert len(bench.journal) == 4
        assert "4 dead letters in a row" in bench.health.halted


@dataclass
class Restoring:
    """A substitute for the recovery of an index, which waits in the middle."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Lost] = field(default_factory=list)
    silent: list[Lost] = field(default_factory=list)

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        return [self.silent.pop()] if self.silent else []

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[ProducerRecord]]:
        self.asked.append(lost)
        yield [ProducerRecord("out", b"k", b"lost %d" % lost.partition, [])]
        await self.go_on.wait()


def behind_once(partitions: set[int], decided: list[int]) -> Decide:
    """Return a step that finds the index behind at the first batch of each of these partitions."""

    async def decide(records: Batch) -> list[ProducerRecord]:
        partition = records[0].partition
        decided.append(partition)
        await asyncio.sleep(0)
        if partition in partitions:
            partitions.remove(partition)
            raise IndexBehindError(partition, records[0].offset - 2)
        return await echo(records)

    return decide


async def test_a_recovery_waits_for_all_lanes_and_they_wait_for_it() -> None:
    recovery, decided = Restoring(), list[int]()
    bench = Bench([[consumed(7)], [consumed(3, 1)], [consumed(5, 2)]], recovery=recovery)
    bench.hold_up(b"1/3")
    async with bench.running(behind_once({0}, decided)):
        await until(lambda: "send 1/3" in bench.journal)
        await turns()
        assert recovery.asked == []
        bench.unconfirmed[b"1/3"].set_result(None)
        await until(lambda: recovery.asked)
        await turns()
        assert recovery.asked == [Lost(0, 5, 7)]
        assert decided == [0, 1]
        assert bench.acknowledged == ["1/3"]
        recovery.go_on.set()
        await until(lambda: len(bench.acknowledged) == 3)
    assert bench.journal.index("send lost 0") < bench.journal.index("send 0/7")


async def test_lanes_that_all_find_the_index_behind_recover_one_after_the_other() -> None:
    recovery = Restoring()
    recovery.go_on.set()
    bench = Bench([[consumed(7)], [consumed(3, 1)], [consumed(5, 2)]], lanes=3, recovery=recovery)
    async with bench.running(behind_once({0, 1, 2}, [])):
        await until(lambda: len(bench.acknowledged) == 3)
    assert sorted(recovery.asked) == [Lost(0, 5, 7), Lost(1, 1, 3), Lost(2, 3, 5)]
    assert bench.health.caught_up == 3


async def test_silent_partitions_are_restored_while_no_lane_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    recovery = Restoring(silent=[Lost(4, 8, 11)])
    recovery.go_on.set()
    bench = Bench([[consumed(7)], [consumed(3, 1)]], recovery=recovery)
    for value in (b"0/7", b"1/3"):
        bench.hold_up(value)
    step, loop = bench.step(), bench.delivery()
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(loop.run("in", step)), tasks.create_task(loop.keep_whole(step, "in"))]
        await until(lambda: {"send 0/7", "send 1/3"} <= set(bench.journal))
        bench.unconfirmed[b"0/7"].set_result(None)
        await until(lambda: bench.acknowledged)
        await turns()
        assert recovery.asked == []
        bench.unconfirmed[b"1/3"].set_result(None)
        await until(lambda: bench.health.caught_up)
        for task in running:
            task.cancel()
    assert bench.journal == ["send 0/7", "send 1/3", "ack 0/7", "ack 1/3", "send lost 4"]


@dataclass
class Log:
    """A substitute for the thread of aiokafka's client, over partitions that are read from their positions."""

    thread_loop: asyncio.AbstractEventLoop
    ends: dict[int, int]
    draw: Random = field(default_factory=lambda: Random(5))
    positions: Counter[int] = field(default_factory=Counter)
    asked: list[set[int]] = field(default_factory=list)
    committed: list[dict[TP, int]] = field(default_factory=list)

    @property
    def _coordinator(self) -> "Log":
        return self

    @property
    def _fetcher(self) -> "Log":
        return self

    def check_errors(self) -> None:
        """The group has none."""

    def _ensure_consumer(self) -> "Log":
        return self

    async def _fetch_records(
        self, _: object, partitions: set[TP], seconds: float, most: int
    ) -> dict[TopicPartition, list[FetchedRecord[bytes, bytes]]]:
        self.asked.append({each.partition for each in partitions})
        await asyncio.sleep(0)
        for part in self.draw.sample(sorted(self.asked[-1]), len(partitions)):
            start = self.positions[part]
            end = self.positions[part] = min(start + self.draw.randint(1, most), self.ends[part])
            await asyncio.sleep(0)
            if start < end:
                return {TopicPartition("in", part): [_fetched(offset, part) for offset in range(start, end)]}
        await asyncio.sleep(seconds)
        return {}

    async def commit(self, offsets: dict[TP, int]) -> bool:
        self.committed.append(offsets)
        return True

    def assignment(self) -> set[TP]:
        return {TP("in", part) for part in self.ends}


def _fetched(offset: int, partition: int) -> FetchedRecord[bytes, bytes]:
    return FetchedRecord("in", partition, offset, 1000, 0, b"k", b"v", None, 1, 1, ())


def consumer_of(ends: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> tuple[BatchConsumer, Log]:
    """Return a consumer over partitions with so many records each."""
    monkeypatch.setattr(faust_consumer, "FETCH_SECONDS", 0.01)
    app = create_app(Settings(), Health(), None, None, None)
    assert isinstance(app.transport, Transport)
    consumer, log = app.consumer, Log(asyncio.get_running_loop(), ends)
    assert isinstance(consumer, BatchConsumer)
    app.producer.flush = _nothing  # type: ignore[method-assign]
    consumer._thread = log  # type: ignore[assignment]
    consumer._set_active_tps(log.assignment())
    app.consumer_generation_id = 7
    consumer._fetching.set()
    return consumer, log


async def _nothing() -> None:
    """Flush a producer without work."""


async def _ended(tasks: Sequence["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize("lanes", [1, 3, 6])
async def test_batches_of_one_partition_follow_each_other(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {0: 40, 1: 40, 2: 7, 3: 25}
    consumer, _ = consumer_of(ends, monkeypatch)
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
                for _ in range(draw.randrange(30)):
                    await asyncio.sleep(0)
                seen[partition] += [each.offset for each in records]
                consumer.acknowledge(records)
                in_work.remove(partition)

    running = [asyncio.create_task(lane()) for _ in range(lanes)]
    await until(lambda: sum(map(len, seen.values())) == sum(ends.values()) or any(task.done() for task in running))
    await _ended(running)
    assert seen == {part: list(range(end)) for part, end in ends.items()}
    assert (most > 1) == (lanes > 1)
    await consumer.commit()
    assert consumer._next_offsets == {}


async def test_no_partition_in_work_is_asked_for_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer, log = consumer_of({0: 5, 1: 0}, monkeypatch)
    got = asyncio.Event()

    async def take() -> None:
        async with consumer.batch("in", 5) as records:
            assert [each.offset for each in records] == [3, 4]
            got.set()

    log.draw = Random(1)
    log.draw.randint = lambda *_: 3  # type: ignore[method-assign]
    async with consumer.batch("in", 3) as records:
        assert [each.offset for each in records] == [0, 1, 2]
        log.asked.clear()
        other = asyncio.create_task(take())
        await until(lambda: len(log.asked) >= 3)
        assert all(asked == {1} for asked in log.asked)
    await until(got.is_set)
    await other


async def test_with_all_partitions_in_work_a_release_wakes_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the client meanwhile, and the wait does not last until its limit."""
    consumer, log = consumer_of({0: 9}, monkeypatch)
    monkeypatch.setattr(faust_consumer, "FETCH_SECONDS", 3600.0)

    async def take() -> None:
        async with consumer.batch("in", 9):
            pass

    log.draw.randint = lambda *_: 3  # type: ignore[method-assign]
    async with consumer.batch("in", 3):
        log.asked.clear()
        other = asyncio.create_task(take())
        await turns()
        assert log.asked == []
    async with asyncio.timeout(60):
        await other


async def test_a_rebalance_waits_for_all_batches_then_commits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer, log = consumer_of({0: 3, 1: 4}, monkeypatch)
    log.draw.randint = lambda *_: 5  # type: ignore[method-assign]
    finish = {part: asyncio.Event() for part in log.ends}

    async def lane() -> None:
        async with consumer.batch("in", 5) as records:
            await finish[records[0].partition].wait()
            consumer.acknowledge(records)

    running = [asyncio.create_task(lane()) for _ in range(3)]
    await until(lambda: sum(log.positions.values()) == 7 and consumer._in_flight == 2)
    consumer.stop_flow()
    waiting = asyncio.ensure_future(consumer.wait_empty())
    finish[0].set()
    await turns()
    assert not waiting.done()
    finish[1].set()
    await waiting
    assert log.committed == [{TP("in", 0): 3, TP("in", 1): 4}]
    log.asked.clear()
    await turns()
    assert log.asked == []  # the third lane takes nothing during the rebalance
    await _ended(running)


class Slow(Local):
    """Slots that answer the calls of one partition only when told to."""

    def __init__(self, partition: int) -> None:
        super().__init__([Part(IndexLimits())])
        self.partition, self.go_on, self.asked = partition, asyncio.Event(), asyncio.Event()

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        if any(call.partition == self.partition for call in calls):
            self.asked.set()
            await self.go_on.wait()
        return await super().all(calls)


async def test_a_batch_that_ends_late_does_not_set_back_the_positions_of_other_partitions() -> None:
    """Otherwise a loss of what was done meanwhile would go unnoticed."""
    slots, topic = Slow(1), Topic()
    job = matching(topic, Store(slots, Shape(1, 2), IndexLimits()))
    mine = [record(signed(f"a{number}", prose(number), number), number) for number in range(4)]
    theirs = record(signed("b", prose(9)), 0)._replace(partition=1)
    await job.decide(mine[:1])
    late = asyncio.create_task(job.decide([theirs]))
    await slots.asked.wait()
    await job.decide(mine[1:3])
    slots.go_on.set()
    await late
    await job.decide(mine[3:])
    assert topic.covered == [(0, 0), (0, 2), (1, 0), (0, 3)]
    topic.known[0] = 2
    assert await job.lost([0, 1]) == [Lost(0, 2, 4)]


async def test_lanes_take_turns_with_recoveries_without_starving_them() -> None:
    lanes, order = Lanes(2), list[str]()

    async def work(name: str, hold: Callable[[], Any], turns_held: int) -> None:
        async with hold():
            order.append(name)
            await turns(turns_held)

    waits: list[Awaitable[None]] = [
        work("batch", lanes.one, 5),
        work("recovery", lanes.all, 5),
        work("later batch", lanes.one, 5),
        work("recovery", lanes.all, 5),
    ]
    await asyncio.gather(*waits)
    assert sorted(order) == ["batch", "later batch", "recovery", "recovery"]
    assert order.index("recovery") < order.index("later batch")
