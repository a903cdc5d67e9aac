"""Offsets move only when every result of a batch is delivered."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from faust.exceptions import ProducerSendError

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.dead_letter import DeadLetter, Payload, Reason, Stage, outgoing
from nearstream.streams.store.limits import IndexBehindError, IndexLostError, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline import delivery, retry
from nearstream.workers.pipeline.dead_letters import DeadLetterLimit
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.retry import OutageTooLongError, RetryPolicy
from nearstream.workers.pipeline.step import Decide, Lost, Recovery, Step

NO_LIMITS = DeadLetterLimit(0, 0.0)


def consumed(offset: int, partition: int = 0) -> ConsumerRecord:
    """Return a record as the consumer returns it."""
    return ConsumerRecord("in", partition, offset, 1000, b"k", b"%d" % offset, [])


class AllTakenError(Exception):
    """The source is empty, where a real worker would wait for more."""


@dataclass
class Source:
    """A substitute for our consumer that records acknowledgements."""

    batches: list[list[ConsumerRecord]]
    journal: list[str]
    asked: list[tuple[str, int]] = field(default_factory=list)

    @asynccontextmanager
    async def batch(self, topic: str, most: int) -> AsyncIterator[list[ConsumerRecord]]:
        self.asked.append((topic, most))
        if not self.batches:
            raise AllTakenError
        yield self.batches.pop(0)

    def acknowledge(self, records: Sequence[ConsumerRecord]) -> None:
        self.journal += [f"ack {record.partition}/{record.offset}" for record in records]


@dataclass
class Broker:
    """A substitute for Faust's producer.

    `outcomes` has one entry per send: its error, True for success, or None for no result yet.
    """

    journal: list[str]
    outcomes: list[Exception | bool | None] = field(default_factory=list)
    sent: list[tuple[object, ...]] = field(default_factory=list)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    refuses: Exception | None = None

    async def send(
        self, topic: str, key: bytes, value: bytes, partition: None, timestamp: float | None, headers: Headers
    ) -> asyncio.Future[None]:
        if self.refuses is not None:
            raise self.refuses
        self.journal.append(f"send {value.decode()}")
        self.sent.append((topic, key, value, partition, timestamp, headers))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        outcome = self.outcomes.pop(0) if self.outcomes else True
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        elif outcome:
            future.set_result(None)
        else:
            self.waiting.append(future)
            self.arrived.set()
        return future


@dataclass
class Bench:
    """A delivery loop over batches of two partitions that writes every action to a journal."""

    outcomes: list[Exception | bool | None] = field(default_factory=list)
    batches: list[list[ConsumerRecord]] = field(default_factory=lambda: [[consumed(7), consumed(3, 1), consumed(8)]])
    outage_seconds: float = 900
    journal: list[str] = field(default_factory=list)
    health: Health = field(default_factory=Health)
    limits: DeadLetterLimit = NO_LIMITS
    recovery: Recovery | None = None

    def __post_init__(self) -> None:
        self.broker = Broker(self.journal, self.outcomes)
        self.source = Source(self.batches, self.journal)
        self.counted: list[tuple[int, int]] = []

    async def run(self, decide: Decide | None = None) -> None:
        with suppress(AllTakenError):
            await self.delivery().run("in", self.step(decide or echo))

    async def keep_whole(self) -> None:
        await self.delivery().keep_whole(self.step(), "in")

    def step(self, decide: Decide | None = None) -> Step:
        return Step("test", 100, decide or echo, self.count, self.recovery)

    def delivery(self) -> Delivery:
        app: Any = SimpleNamespace(producer=self.broker, consumer=self.source)
        return Delivery(app, self.health, self.limits, RetryPolicy(self.health, self.outage_seconds))

    def count(self, records: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> None:
        self.counted.append((len(records), len(outgoing)))

    @property
    def acknowledged(self) -> list[str]:
        return [line for line in self.journal if line.startswith("ack")]


async def echo(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
    """Return one result for each record, with its value."""
    return [ProducerRecord("out", record.key, record.value, []) for record in records]


def failing(*errors: Exception) -> Decide:
    """Return a step that raises these errors in turn, then echoes."""
    left = list(errors)

    async def decide(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        if left:
            raise left.pop(0)
        return await echo(records)

    return decide


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def turns(count: int = 20) -> None:
    """Let all ready tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_batch_is_acked_only_after_every_delivery() -> None:
    bench = Bench(outcomes=[None, None, None])
    running = asyncio.create_task(bench.run())
    await bench.broker.arrived.wait()
    await turns()
    assert bench.journal == ["send 7", "send 3", "send 8"]
    for confirmed in bench.broker.waiting[1:]:
        confirmed.set_result(None)
    await turns()
    assert bench.acknowledged == []
    bench.broker.waiting[0].set_result(None)
    await running
    assert bench.acknowledged == ["ack 0/7", "ack 1/3", "ack 0/8"]


async def test_the_next_batch_starts_when_the_last_one_is_acked() -> None:
    bench = Bench(batches=[[consumed(1), consumed(2)], [consumed(3)]])
    await bench.run()
    assert bench.journal == ["send 1", "send 2", "ack 0/1", "ack 0/2", "send 3", "ack 0/3"]
    assert bench.source.asked == [("in", 100)] * 3


async def test_a_batch_without_results_is_acked() -> None:
    async def nothing(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        return []

    bench = Bench()
    await bench.run(nothing)
    assert bench.journal == ["ack 0/7", "ack 1/3", "ack 0/8"]


@pytest.mark.parametrize("error", [MessageSizeTooLargeError(), ValueError("bug")])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_delivery_that_fails_acks_nothing_from_its_record_on(error: Exception, place: int) -> None:
    """The batch is sent first, then record by record up to the one that fails."""
    of_batch: list[Exception | bool | None] = [True, True, True]
    of_batch[place] = error
    bench = Bench(outcomes=[*of_batch, *[True] * place, error])
    with pytest.raises(type(error)):
        await bench.run()
    assert bench.acknowledged == ["ack 0/7", "ack 1/3", "ack 0/8"][:place]
    assert len(bench.broker.sent) == 3 + place + 1


async def test_a_failure_that_does_not_come_again_costs_nothing() -> None:
    bench = Bench(outcomes=[True, ValueError("once")])
    await bench.run()
    assert bench.acknowledged == ["ack 0/7", "ack 1/3", "ack 0/8"]


async def test_f24_a_topic_that_may_not_be_written_ends_the_worker_naming_the_right() -> None:
    bench = Bench(outcomes=[True, TopicAuthorizationFailedError(), True])
    with pytest.raises(SettingsError, match="topic out: permission WRITE is missing"):
        await bench.run()
    assert bench.acknowledged == []


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (TopicAuthorizationFailedError("out"), SettingsError),
        (MessageSizeTooLargeError(), MessageSizeTooLargeError),
        (None, ProducerSendError),
    ],
)
async def test_what_faust_wraps_is_told_as_kafka_said_it(cause: Exception | None, expected: type[Exception]) -> None:
    bench = Bench()
    bench.broker.refuses = ProducerSendError("wrapped")
    bench.broker.refuses.__cause__ = cause
    with pytest.raises(expected):
        await bench.run()
    assert bench.journal == []


async def test_a_record_that_the_producer_does_not_take_acks_nothing() -> None:
    bench = Bench()
    bench.broker.refuses = MessageSizeTooLargeError()
    with pytest.raises(MessageSizeTooLargeError):
        await bench.run()
    assert bench.journal == []


@pytest.mark.parametrize(
    "error", [KafkaTimeoutError(), NotLeaderForPartitionError(), NotEnoughReplicasError(), KafkaConnectionError()]
)
async def test_a_retriable_failure_sends_the_whole_batch_again(error: Exception) -> None:
    bench = Bench(outcomes=[True, error, True])
    await bench.run()
    once = ["send 7", "send 3", "send 8"]
    assert bench.journal == [*once, *once, "ack 0/7", "ack 1/3", "ack 0/8"]
    assert bench.broker.sent[:3] == bench.broker.sent[3:]


async def test_a_batch_is_decided_once_however_often_it_is_sent() -> None:
    decided = []

    async def noted(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        decided.append([record.offset for record in records])
        return await echo(records)

    await Bench(outcomes=[KafkaTimeoutError()]).run(noted)
    assert decided == [[7, 3, 8]]


async def test_a_bug_acks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        raise ZeroDivisionError

    bench = Bench(batches=[[consumed(7), consumed(3, 1), consumed(9)], [consumed(10)]])
    with pytest.raises(ZeroDivisionError):
        await bench.run(broken)
    assert bench.journal == []
    assert "in 0 offsets 7-9, in 1 offset 3" in caplog.text
    assert caplog.messages[-1].endswith(": in 0 offset 7")


async def test_a_bug_on_one_record_is_told_with_its_offset_and_leaves_those_before_acked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken_at_9(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        if any(record.offset == 9 for record in records):
            raise ZeroDivisionError
        return await echo(records)

    bench = Bench(batches=[[consumed(7), consumed(8), consumed(9), consumed(10)]])
    with pytest.raises(ZeroDivisionError):
        await bench.run(broken_at_9)
    assert bench.journal == ["send 7", "ack 0/7", "send 8", "ack 0/8"]
    assert caplog.messages[-1].endswith(": in 0 offset 9")


@dataclass
class Index:
    """A substitute for the recovery of an index.

    `failures` are raised one by one instead of the second part.
    """

    failures: list[Exception] = field(default_factory=list)
    silent: list[Lost] = field(default_factory=list)
    asked: list[Lost] = field(default_factory=list)

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        return [self.silent.pop()] if self.silent else []

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[ProducerRecord]]:
        self.asked.append(lost)
        for number in (lost.checkpoint + 1, lost.checkpoint + 2):
            if self.failures and number > lost.checkpoint + 1:
                raise self.failures.pop()
            yield [ProducerRecord("out", b"k", b"%d" % number, [])]


def behind_once() -> Decide:
    lost = [IndexBehindError(1, 0)]

    async def decide(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        if lost:
            raise lost.pop()
        return await echo(records)

    return decide


async def test_an_index_that_is_behind_is_given_what_it_lost_part_by_part_first() -> None:
    bench = Bench(recovery=Index())
    await bench.run(behind_once())
    sent = ["send 1", "send 2", "send 7", "send 3", "send 8"]
    assert bench.journal == [*sent, "ack 0/7", "ack 1/3", "ack 0/8"]
    assert bench.recovery.asked == [Lost(1, 0, 3)]  # type: ignore[union-attr]
    assert bench.health.caught_up == 2


@pytest.mark.parametrize("failure", [IndexUnavailableError("away"), IndexBehindError(1, 0)])
async def test_what_goes_wrong_while_catching_up_begins_it_anew(failure: Exception) -> None:
    bench = Bench(recovery=Index([failure]))
    await bench.run(behind_once())
    assert bench.journal[:3] == ["send 1", "send 1", "send 2"]
    assert len(bench.acknowledged) == 3


async def test_what_silent_partitions_lost_is_made_good_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    index = Index(silent=[Lost(4, 8, 11)])
    bench = Bench(recovery=index)
    bench.health.assigned = frozenset({("in", 4), ("other", 1)})
    keeping = asyncio.create_task(bench.keep_whole())
    await until(lambda: bench.health.caught_up >= 2)
    keeping.cancel()
    assert bench.journal == ["send 9", "send 10"]
    assert index.asked == [Lost(4, 8, 11)]


@pytest.mark.parametrize(
    ("failure", "sent"),
    [
        (IndexUnavailableError("away"), ["send 9", "send 9", "send 10"]),
        (IndexLostError("emptied"), ["send 9", "send 9", "send 10"]),
        (IndexBehindError(4, 5), ["send 9", "send 6", "send 7"]),
        (IndexBehindError(4, 9), ["send 9", "send 9", "send 10"]),
    ],
)
async def test_nothing_that_silent_partitions_lost_is_forgotten_when_catching_up_fails(
    failure: Exception, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halfway through, the index reports a later checkpoint, so it would report fewer losses."""
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    bench = Bench(recovery=Index([failure], silent=[Lost(4, 8, 11)]))
    keeping = asyncio.create_task(bench.keep_whole())
    await until(lambda: bench.health.caught_up >= 3)
    keeping.cancel()
    assert bench.journal == sent


async def test_events_of_silent_partitions_that_no_broker_took_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    bench = Bench(outcomes=[KafkaTimeoutError("away")], recovery=Index(silent=[Lost(4, 8, 11)]))
    keeping = asyncio.create_task(bench.keep_whole())
    await until(lambda: bench.health.caught_up >= 2)
    keeping.cancel()
    assert bench.journal == ["send 9", "send 9", "send 10"]


async def test_an_index_that_is_behind_is_a_bug_where_none_is_asked() -> None:
    async def behind(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        raise IndexBehindError(0, 5)

    bench = Bench()
    with pytest.raises(IndexBehindError):
        await bench.run(behind)
    assert bench.journal == []


@pytest.mark.parametrize("error", [IndexUnavailableError("away"), IndexLostError("emptied"), KafkaTimeoutError("away")])
async def test_an_outage_pauses_and_retries(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with caplog.at_level(logging.WARNING):
        await bench.run(failing(error, error))
    assert bench.journal == ["send 7", "send 3", "send 8", "ack 0/7", "ack 1/3", "ack 0/8"]
    assert [record.getMessage().split(":")[0].split(" after")[0] for record in caplog.records] == [
        "outage",
        "outage over",
    ]


async def test_an_outage_beyond_its_limit_ends_the_worker_and_acks_nothing() -> None:
    async def away(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        raise IndexUnavailableError("Redis at h:6379")

    bench = Bench(outage_seconds=0.01)
    with pytest.raises(OutageTooLongError, match=r"Redis at h:6379: away for 0\.01 s"):
        await bench.run(away)
    assert bench.journal == []


async def test_a_lost_index_is_waited_for_without_limit() -> None:
    bench = Bench(outage_seconds=0.01)
    await bench.run(failing(IndexLostError("emptied"), IndexLostError("emptied")))
    assert len(bench.acknowledged) == 3


async def test_an_outage_that_turns_into_another_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    away = IndexUnavailableError("away")
    with caplog.at_level(logging.WARNING):
        await Bench().run(failing(away, away, IndexLostError("run nearstream rebuild")))
    assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
        "outage: away",
        "outage goes on: run nearstream rebuild",
        "outage over",
    ]


async def test_a_topic_that_no_broker_tells_of_is_waited_for() -> None:
    bench = Bench(outcomes=[UnknownTopicOrPartitionError()])
    await bench.run()
    assert len(bench.acknowledged) == 3


async def test_a_limit_of_zero_waits_for_ever() -> None:
    bench = Bench(outage_seconds=0)
    await bench.run(failing(IndexUnavailableError("away"), IndexUnavailableError("away")))
    assert len(bench.acknowledged) == 3


async def test_a_broker_that_confirms_nothing_is_an_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery, "UNCONFIRMED_SECONDS", 0.01)
    bench = Bench(outcomes=[True, None, True], outage_seconds=0.02)
    with pytest.raises(OutageTooLongError):
        await bench.run()
    assert bench.acknowledged == []
    assert "Kafka has not confirmed 1 records" in caplog.text


async def test_a_broker_that_confirms_late_ends_the_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery, "UNCONFIRMED_SECONDS", 0.01)
    bench = Bench(outcomes=[True, True, None])
    running = asyncio.create_task(bench.run())
    await until(lambda: "not confirmed" in caplog.text)
    assert bench.acknowledged == []
    bench.broker.waiting[0].set_result(None)
    await running
    assert len(bench.acknowledged) == 3
    assert len(bench.broker.sent) == 3


async def test_a_batch_is_counted_once_when_it_is_delivered() -> None:
    bench = Bench(outcomes=[KafkaTimeoutError()], batches=[[consumed(1), consumed(2)], [consumed(3)]])
    await bench.run()
    assert bench.counted == [(2, 2), (1, 1)]


async def test_limits_trip_before_anything_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        return [outgoing(letter(record), "dead", "w", Payload.FULL, 10_000) for record in records]

    bench = Bench(batches=[[consumed(1), consumed(2)], [consumed(3), consumed(4)]], limits=DeadLetterLimit(3, 0.0))
    running = asyncio.create_task(bench.run(refuse))
    await until(lambda: bench.health.halted)
    assert bench.acknowledged == ["ack 0/1", "ack 0/2"]
    assert len(bench.broker.sent) == 2
    assert bench.health.halted == "4 dead letters in a row (limit 3); this batch: 2 not_json"
    assert "halted: dead-letter limit exceeded, consuming stopped until restart: 4 dead letters" in caplog.text
    running.cancel()


def letter(record: ConsumerRecord) -> DeadLetter:
    return DeadLetter(record, Stage.DECODE, Reason.NOT_JSON, "an object expected")


async def test_a_result_is_sent_as_it_was_decided() -> None:
    headers: Headers = [("a", b"1"), ("b", None), ("a", b"2")]

    async def two(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        return [ProducerRecord("out", None, b"", headers, 1_772_439_300_001), ProducerRecord("out", b"k", b"v", [])]

    bench = Bench()
    await bench.run(two)
    assert bench.broker.sent == [
        ("out", None, b"", None, 1_772_439_300.001, headers),
        ("out", b"k", b"v", None, None, []),
    ]


def test_pauses_double_up_to_five_seconds_each_a_fifth_shorter_or_longer() -> None:
    pauses = retry.backoff()
    for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0):
        assert 0.8 * expected <= next(pauses) <= 1.2 * expected
