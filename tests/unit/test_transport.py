"""Faust's consumer, asked for batches: what a rebalance, a stop, a crash make of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from faust.transport.consumer import Fetcher
from faust.types.tuples import TP

from schemas.record import Record
from workers import transport
from workers.app import create_app
from workers.health import Health
from workers.settings import Settings
from workers.transport import BatchConsumer, Transport

GENERATION = 7


def fetched(offset: int, partition: int = 0, topic: str = "in") -> ConsumerRecord[bytes, bytes]:
    """As aiokafka hands it on."""
    headers = (("a", b"1"), ("b", None), ("a", b"\xff"))
    return ConsumerRecord(topic, partition, offset, 1_772_439_300_001, 0, b"k", b"v", None, 1, 1, headers)


@dataclass
class Thread:
    """Stands in for the thread of aiokafka's client; `answers` come one by one, then nothing does."""

    thread_loop: asyncio.AbstractEventLoop
    answers: list[list[ConsumerRecord[bytes, bytes]]] = field(default_factory=list)
    asked: list[tuple[set[TP], int]] = field(default_factory=list)
    committed: list[dict[TP, int]] = field(default_factory=list)
    at_fetch: Any = None
    at_commit: Callable[[], Awaitable[object]] = field(default_factory=lambda: nothing)
    sought: list[tuple[TopicPartition, int]] = field(default_factory=list)
    unheard: list[Exception] = field(default_factory=list)
    assigned: set[TP] = field(default_factory=lambda: {TP("in", 0), TP("in", 1), TP("other", 0)})

    @property
    def _coordinator(self) -> "Thread":
        return self

    def check_errors(self) -> None:
        if self.unheard:
            raise self.unheard.pop()

    def _ensure_consumer(self) -> "Thread":
        return self

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.sought.append((place, offset))

    async def _fetch_records(
        self, _: object, partitions: set[TP], seconds: float, most: int
    ) -> dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]:
        self.asked.append((partitions, most))
        await asyncio.sleep(0)
        if self.at_fetch is not None:
            self.at_fetch()
        if not self.answers:
            await asyncio.sleep(seconds)
            return {}
        parts: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]] = {}
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
async def consumer(tmp_path: Path) -> BatchConsumer:
    """One that is assigned partitions of two topics and may fetch."""
    app = create_app(Settings(), str(tmp_path), Health(), None, None)
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
    """What a producer without work flushes."""


def thread(consumer: BatchConsumer) -> Thread:
    return consumer._thread  # type: ignore[return-value]


async def turns(count: int = 50) -> None:
    """Lets everything that is ready run, threads' calls too."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def taking(consumer: BatchConsumer) -> AsyncIterator[asyncio.Future[list[Record]]]:
    """Somebody who takes one batch, and is sent away in the end."""

    async def take() -> list[Record]:
        async with consumer.batch("in", 10) as records:
            return records

    taken = asyncio.ensure_future(take())
    try:
        yield taken
    finally:
        taken.cancel()
        await asyncio.wait([taken])


async def test_a_record_is_read_as_it_was_sent(consumer: BatchConsumer) -> None:
    thread(consumer).answers = [[fetched(7), fetched(3, 1)]]
    headers = [("a", b"1"), ("b", None), ("a", b"\xff")]
    async with consumer.batch("in", 10) as records:
        assert records == [
            Record("in", 0, 7, 1_772_439_300_001, b"k", b"v", headers),
            Record("in", 1, 3, 1_772_439_300_001, b"k", b"v", headers),
        ]
    assert thread(consumer).asked == [({TP("in", 0), TP("in", 1)}, 10)]


async def test_nothing_is_taken_before_faust_fetches_or_in_a_rebalance(consumer: BatchConsumer) -> None:
    consumer._fetching.clear()
    consumer.stop_flow()
    thread(consumer).answers = [[fetched(7)]]
    async with taking(consumer) as taken:
        await turns()
        consumer._fetching.set()
        await turns()
        assert thread(consumer).asked == []
        consumer.resume_flow()
        assert [record.offset for record in await taken] == [7]


async def test_what_a_rebalance_overtakes_is_not_given_out(consumer: BatchConsumer) -> None:
    """It was fetched for the partitions of before; what is theirs is read again."""

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
    """It reads what is newly assigned before anybody may take it."""

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


async def test_nothing_is_taken_between_two_assignments_by_who_had_no_partitions(consumer: BatchConsumer) -> None:
    """Faust does not hold it up."""
    consumer._on_partitions_revoked = consumer._on_partitions_assigned = lambda *_: nothing()  # type: ignore[method-assign]
    thread(consumer).answers = [[fetched(7)]]
    await consumer.on_partitions_revoked(set())
    assert not consumer.flow_active
    await consumer.on_partitions_assigned({TP("in", 0)}, GENERATION)
    async with taking(consumer) as taken:
        await turns()
        assert thread(consumer).asked == []
        consumer.resume_flow()
        assert [record.offset for record in await taken] == [7]


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
    """A commit of nothing is an error to aiokafka, and would end the worker."""
    thread(consumer).answers = [[fetched(7)]]
    async with consumer.batch("in", 10) as records:
        consumer.acknowledge(records)
    thread(consumer).assigned = {TP("other", 0)}
    assert not await consumer.commit()
    assert thread(consumer).committed == []


async def test_a_rebalance_waits_for_the_commit_under_way(consumer: BatchConsumer) -> None:
    """It may have to be repeated, and then come after that of the next owner."""
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


async def test_a_batch_that_fails_commits_nothing_and_holds_up_no_stop(consumer: BatchConsumer) -> None:
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
    """Faust would close the client at once; a commit without it never ends."""
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
    """Faust's fetcher cancels what it runs, and crashes if it says so while a rebalance is under way."""
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


async def test_a_group_that_cannot_be_left_is_left_without_a_word(
    consumer: BatchConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for others to join; the thread ends all the same."""

    class Joining:
        stop = asyncio.Event().wait

    monkeypatch.setattr(transport, "LEAVE_SECONDS", 0.01)
    leaving = consumer._new_consumer_thread()
    leaving._consumer = Joining()
    async with asyncio.timeout(5):
        await leaving.on_thread_stop()
    leaving.thread_loop.close()


@pytest.mark.parametrize("generation", [GENERATION, -1])
async def test_who_was_put_out_of_the_group_commits_nothing(consumer: BatchConsumer, generation: int) -> None:
    """Another may have gone further, and left: then the group would go back."""
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


async def test_an_assignment_waits_for_no_answer_of_a_broker(consumer: BatchConsumer) -> None:
    """Faust would ask for each committed offset, and crash if that took 40 s."""
    await consumer.perform_seek()
    assert thread(consumer).sought == []


async def test_an_error_of_the_group_is_heard(consumer: BatchConsumer) -> None:
    """Until it is, aiokafka joins no rebalance; the worker would read on what is another's by then."""
    thread(consumer).answers = [[fetched(7)], [fetched(8)]]
    async with consumer.batch("in", 10):
        thread(consumer).unheard = [KafkaError("error 15 on OffsetFetch")]
    with pytest.raises(KafkaError, match="error 15"):
        async with consumer.batch("in", 10):
            pass
