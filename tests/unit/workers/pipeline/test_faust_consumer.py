"""The consumer's acknowledgements, and its batches in a rebalance, a stop or a crash.

The fault suite runs it on a real broker.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from faust.transport.consumer import Fetcher
from faust.types.tuples import TP

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline import faust_consumer
from nearstream.workers.pipeline.faust_consumer import BatchConsumer, Transport
from nearstream.workers.worker.topology import create_app

GENERATION = 7


def fetched(offset: int, partition: int = 0, topic: str = "in") -> FetchedRecord[bytes, bytes]:
    """Return a record as aiokafka returns it."""
    headers = (("a", b"1"), ("b", None), ("a", b"\xff"))
    return FetchedRecord(topic, partition, offset, 1_772_439_300_001, 0, b"k", b"v", None, 1, 1, headers)


@dataclass
class Thread:
    """A substitute for the thread of aiokafka's client.

    It returns each of `answers` once, then nothing.
    """

    thread_loop: asyncio.AbstractEventLoop
    answers: list[list[FetchedRecord[bytes, bytes]]] = field(default_factory=list)
    asked: list[tuple[set[TP], int]] = field(default_factory=list)
    committed: list[dict[TP, int]] = field(default_factory=list)
    at_fetch: Any = None
    at_commit: Callable[[], Awaitable[object]] = field(default_factory=lambda: nothing)
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
    ) -> dict[TopicPartition, list[FetchedRecord[bytes, bytes]]]:
        self.asked.append((partitions, most))
        await asyncio.sleep(0)
        if self.at_fetch is not None:
            self.at_fetch()
        if not self.answers:
            await asyncio.sleep(seconds)
            return {}
        parts: dict[TopicPartition, list[FetchedRecord[bytes, bytes]]] = {}
        for record in self.answers.pop(0):
            parts.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return parts

    async def commit(self, offsets: dict[TP, int]) -> bool:
        await self.at_commit()
        self.committed.append(offsets)
        return True

    def assignment(self) -> set[TP]:
        return self.assigned


@pytest.fixture
async def consumer() -> BatchConsumer:
    """Return a consumer with partitions of two topics that may fetch."""
    app = create_app(Settings(), Health(), None, None, None)
    assert isinstance(app.transport, Transport)
    made = app.consumer
    assert isinstance(made, BatchConsumer)
    app.producer.flush = nothing  # type: ignore[method-assign]
    made._thread = Thread(asyncio.get_running_loop())  # type: ignore[assignment]
    made._set_active_tps({TP("in", 0), TP("in", 1), TP("other", 0)})
    app.consumer_generation_id = GENERATION
    made._fetching.set()
    return made


async def nothing() -> None:
    """Flush a producer without work."""


def thread(consumer: BatchConsumer) -> Thread:
    return consumer._thread  # type: ignore[return-value]


async def turns(count: int = 50) -> None:
    """Let all ready tasks run, including calls from threads."""
    for _ in range(count):
        await asyncio.sleep(0)


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


async def test_what_a_rebalance_overtakes_is_not_given_out(consumer: BatchConsumer) -> None:
    """The record was fetched for the earlier assignment and will be read again."""

    def overtaken() -> None:
        consumer.stop_flow()
        thread(consumer).at_fetch = None

    thread(consumer).at_fetch = overtaken
    thread(consumer).answers = [[fetched(7)], [fetched(5)]]
    async with taking(consumer) as taken:
        await turns()
        assert not taken.done()
        consumer.resume_flow()
        assert [record.offset for record in await taken] == [5]


async def test_a_fetch_that_outlasts_a_rebalance_passes_over_nothing(consumer: BatchConsumer) -> None:
    """The fetch returns records of newly assigned partitions before a batch may be taken."""

    def overtaken() -> None:
        consumer.stop_flow()
        consumer.app.consumer_generation_id = GENERATION + 1
        thread(consumer).at_fetch = None

    thread(consumer).at_fetch = overtaken
    thread(consumer).answers = [[fetched(0), fetched(1), fetched(5, 1)]]
    async with taking(consumer) as taken:
        await turns()
        assert not taken.done()
        assert thread(consumer).sought == [(TopicPartition("in", 0), 0), (TopicPartition("in", 1), 5)]


async def test_what_was_fetched_for_another_generation_is_not_given_out(consumer: BatchConsumer) -> None:
    def overtaken() -> None:
        loop.call_soon(setattr, consumer.app, "consumer_generation_id", GENERATION + 1)
        thread(consumer).at_fetch = None

    loop = asyncio.get_running_loop()
    thread(consumer).at_fetch = overtaken
    thread(consumer).answers = [[fetched(7)], [fetched(5)]]
    async with taking(consumer) as taken:
        assert [record.offset for record in await taken] == [5]


async def test_a_rebalance_waits_for_the_batch_in_flight_then_commits_it(consumer: BatchConsumer) -> None:
    thread(consumer).answers = [[fetched(7), fetched(3, 1), fetched(8)]]
    async with consumer.batch("in", 10) as records:
        waiting = asyncio.ensure_future(consumer.wait_empty())
        await turns()
        assert not waiting.done()
        consumer.acknowledge(records)
        await turns()
        assert not waiting.done()
    await waiting
    assert thread(consumer).committed == [{TP("in", 0): 9, TP("in", 1): 4}]


async def test_what_is_committed_is_not_committed_again(consumer: BatchConsumer) -> None:
    thread(consumer).answers = [[fetched(7)], [fetched(8)]]
    for _ in range(2):
        async with consumer.batch("in", 10) as records:
            consumer.acknowledge(records)
        await consumer.commit()
        await consumer.commit()
    assert thread(consumer).committed == [{TP("in", 0): 8}, {TP("in", 0): 9}]


async def test_what_is_no_longer_assigned_is_not_committed(consumer: BatchConsumer) -> None:
    """An empty commit is an error in aiokafka, which would end the worker."""
    thread(consumer).answers = [[fetched(7)]]
    async with consumer.batch("in", 10) as records:
        consumer.acknowledge(records)
    thread(consumer).assigned = {TP("other", 0)}
    assert not await consumer.commit()
    assert thread(consumer).committed == []


async def test_a_rebalance_waits_for_the_commit_under_way(consumer: BatchConsumer) -> None:
    """If the commit has to be repeated, it may arrive after one of the next owner."""
    thread(consumer).answers = [[fetched(7)]]
    async with consumer.batch("in", 10) as records:
        consumer.acknowledge(records)
    answered = asyncio.Event()
    thread(consumer).at_commit = answered.wait
    committing = asyncio.ensure_future(consumer.commit())
    waiting = asyncio.ensure_future(consumer.wait_empty())
    await turns()
    assert not waiting.done()
    answered.set()
    await asyncio.gather(committing, waiting)
    assert thread(consumer).committed == [{TP("in", 0): 8}]


async def test_a_batch_that_fails_commits_nothing_and_delays_no_stop(consumer: BatchConsumer) -> None:
    thread(consumer).answers = [[fetched(7)]]
    with pytest.raises(ZeroDivisionError):
        async with consumer.batch("in", 10):
            raise ZeroDivisionError
    await consumer.wait_empty()
    assert thread(consumer).committed == []


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
    thread(consumer).answers = [[fetched(7)]]
    async with consumer.batch("in", 10) as records:
        consumer.acknowledge(records)
    consumer._on_partitions_assigned = lambda *_: nothing()  # type: ignore[method-assign]
    await consumer.on_partitions_assigned({TP("in", 0)}, GENERATION + 1)
    await consumer.commit()
    assert thread(consumer).committed == []


async def test_a_stop_in_a_rebalance_is_no_crash(consumer: BatchConsumer) -> None:
    """Faust's fetcher cancels its task, and would crash if the task was cancelled during a rebalance."""
    consumer._fetching.clear()
    app, fetcher = consumer.app, Fetcher(consumer.app)
    app.rebalancing = True
    await fetcher.start()
    await turns()
    assert consumer._fetching.is_set()
    app._stopped.set()  # type: ignore[attr-defined]
    await fetcher.stop()
    assert not fetcher.crashed
    assert not consumer._fetching.is_set()


async def test_a_group_that_cannot_be_left_is_left_without_a_goodbye(
    consumer: BatchConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join waits for other members, but the thread ends all the same."""

    class Joining:
        stop = asyncio.Event().wait

    monkeypatch.setattr(faust_consumer, "LEAVE_SECONDS", 0.01)
    leaving = consumer._new_consumer_thread()
    leaving._consumer = Joining()
    async with asyncio.timeout(60):
        await leaving.on_thread_stop()
    leaving.thread_loop.close()


async def test_a_fetch_that_is_cancelled_while_the_broker_is_away_does_not_crash_the_stop(
    consumer: BatchConsumer,
) -> None:
    class Fetching:
        async def stop(self) -> None:
            fetch = asyncio.create_task(asyncio.sleep(60))
            fetch.cancel()
            await fetch

    leaving = consumer._new_consumer_thread()
    leaving._consumer = Fetching()
    await leaving.on_thread_stop()
    leaving.thread_loop.close()


async def test_an_error_while_leaving_is_raised(consumer: BatchConsumer) -> None:
    class Failing:
        async def stop(self) -> None:
            raise KafkaError

    leaving = consumer._new_consumer_thread()
    leaving._consumer = Failing()
    with pytest.raises(KafkaError):
        await leaving.on_thread_stop()
    leaving.thread_loop.close()


async def test_a_thread_that_a_crash_has_ended_is_stopped_without_an_error(consumer: BatchConsumer) -> None:
    ended = consumer._new_consumer_thread()
    ended.thread_loop.close()
    ended._stopped_set()
    assert ended.should_stop


@pytest.mark.parametrize("generation", [GENERATION, -1])
async def test_an_expelled_member_commits_nothing(consumer: BatchConsumer, generation: int) -> None:
    """Its commit could move the group back.

    Another member may have committed a higher offset and left.
    """
    committed = []

    class Client:
        _coordinator = SimpleNamespace(generation=generation)

        def assignment(self) -> set[TopicPartition]:
            return {TopicPartition("in", 0)}

        async def commit(self, offsets: object) -> None:
            committed.append(offsets)

    committing = consumer._new_consumer_thread()
    committing._consumer = Client()
    assert await committing._commit({TP("in", 0): 8}) is (generation == GENERATION)
    assert len(committed) == (generation == GENERATION)
    committing.thread_loop.close()


async def test_an_error_of_the_group_is_raised(consumer: BatchConsumer) -> None:
    """Otherwise aiokafka would not rejoin, and the worker would keep another member's partitions."""
    thread(consumer).answers = [[fetched(7)], [fetched(8)]]
    async with consumer.batch("in", 10):
        thread(consumer).errors = [KafkaError("error 15 on OffsetFetch")]
    with pytest.raises(KafkaError, match="error 15"):
        async with consumer.batch("in", 10):
            pass


async def test_the_broker_waits_for_quiet_partitions_only_briefly_while_others_are_busy(
    consumer: BatchConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    thread(consumer).answers = [[fetched(5)], [fetched(6)], [fetched(7)]]
    for now in (100.0, 100.5, 102.0):
        monkeypatch.setattr(faust_consumer, "monotonic", partial(float, now))
        async with consumer.batch("in", 10):
            waits.append(thread(consumer)._fetch_max_wait_ms)
    assert waits == [faust_consumer.IDLE_WAIT_MS, faust_consumer.BUSY_WAIT_MS, faust_consumer.IDLE_WAIT_MS]


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
