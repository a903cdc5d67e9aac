"""Offsets move only when every result of a batch is delivered, in every lane of a step."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
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
    UnknownTopicOrPartitionError,
)

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.dead_letter import DeadLetter, Reason, outgoing
from nearstream.streams.store.limits import IndexBehindError, IndexLostError, IndexUnavailableError
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline import delivery
from nearstream.workers.pipeline.dead_letters import DeadLetterLimit
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.retry import OutageTooLongError, RetryPolicy
from nearstream.workers.pipeline.step import Decide, Lanes, Lost, Step
from tests.support.turns import turns, until

Batch = Sequence[ConsumerRecord]
AWAY, LOST = IndexUnavailableError("away"), IndexLostError("run nearstream rebuild")


def consumed(offset: int, partition: int = 0) -> ConsumerRecord:
    """Return a record as the consumer returns it, whose value tells its place."""
    return ConsumerRecord("in", partition, offset, 1000, b"k", b"%d/%d" % (partition, offset), [])


class AllTakenError(Exception):
    """The source is empty, where a real worker would wait for more."""


@dataclass
class Index:
    """A substitute for the recovery of an index, which has two parts and waits behind them until it may go on.

    `failures` are raised one by one instead of the second part.
    """

    failures: list[Exception] = field(default_factory=list)
    silent: list[Lost] = field(default_factory=list)
    asked: list[Lost] = field(default_factory=list)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        return [self.silent.pop()] if self.silent else []

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[ProducerRecord]]:
        self.asked.append(lost)
        for number in (lost.checkpoint + 1, lost.checkpoint + 2):
            if self.failures and number > lost.checkpoint + 1:
                raise self.failures.pop()
            yield [ProducerRecord("out", b"k", b"lost %d" % number, [])]
        await self.may_go_on.wait()


def index(*silent: Lost, failures: Sequence[Exception] = ()) -> Index:
    """Return a recovery that does not wait."""
    made = Index(list(failures), list(silent))
    made.may_go_on.set()
    return made


@dataclass
class Bench:
    """A delivery over given batches, between our consumer and Faust's producer, that writes each action to a journal.

    `outcomes` has what happens to the sendings of a value in turn: its error, or None for no confirmation yet.
    """

    batches: list[list[ConsumerRecord]] = field(default_factory=lambda: [[consumed(7), consumed(3, 1), consumed(8)]])
    outcomes: dict[str, list[Exception | None]] = field(default_factory=dict)
    lanes: int = 1
    outage_seconds: float = 900
    limits: DeadLetterLimit = field(default_factory=lambda: DeadLetterLimit(0, 0.0))
    recovery: Index | None = None
    journal: list[str] = field(default_factory=list)
    sent: list[ProducerRecord] = field(default_factory=list)
    unconfirmed: dict[str, "asyncio.Future[None]"] = field(default_factory=dict)
    counted: list[tuple[int, int]] = field(default_factory=list)
    health: Health = field(default_factory=Health)
    in_work: int = 0

    @asynccontextmanager
    async def batch(self, topic: str, most: int) -> AsyncIterator[list[ConsumerRecord]]:
        assert (topic, most) == ("in", 100)
        await until(lambda: self.batches or not self.in_work)
        if not self.batches:
            raise AllTakenError
        self.in_work += 1
        try:
            yield self.batches.pop(0)
        finally:
            self.in_work -= 1

    def acknowledge(self, records: Batch) -> None:
        self.journal += [f"ack {each.partition}/{each.offset}" for each in records]

    def _ensure_producer(self) -> "Bench":
        return self

    async def hand_over(self, records: Sequence[ProducerRecord]) -> dict["asyncio.Future[None]", tuple[str, int]]:
        """Take records one by one, in place of `hand_over` of `workers/kafka/records.py`."""
        return {self._taken(record): (record.topic, 1) for record in records}

    def _taken(self, record: ProducerRecord) -> "asyncio.Future[None]":
        value = (record.value or b"").decode()
        self.journal.append(f"send {value}")
        self.sent.append(record)
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self.outcomes.get(value)
        outcome = waiting.pop(0) if waiting else True
        if isinstance(outcome, Exception):
            confirmed.set_exception(outcome)
        elif outcome is None:
            self.unconfirmed[value] = confirmed
        else:
            confirmed.set_result(None)
        return confirmed

    def confirm(self, value: str) -> None:
        self.unconfirmed[value].set_result(None)

    async def run(self, decide: Decide | None = None) -> None:
        """Deliver all batches."""
        with suppress(AllTakenError):
            await self.delivery().run("in", self.step(decide))

    @asynccontextmanager
    async def running(self, decide: Decide | None = None) -> AsyncIterator["asyncio.Task[None]"]:
        """Deliver in a task, beside the watch over silent partitions. Both are cancelled at the end."""
        running = asyncio.create_task(self.run(decide))
        watching = asyncio.create_task(self.delivery().keep_whole(self.step(), "in"))
        try:
            yield running
        finally:
            for task in (running, watching):
                task.cancel()
            await asyncio.wait([running, watching])

    def step(self, decide: Decide | None = None) -> Step:
        return Step("test", 100, decide or echo, self._count, self.recovery, self._lanes)

    def delivery(self) -> Delivery:
        app: Any = SimpleNamespace(producer=self, consumer=self)
        return Delivery(app, self.health, self.limits, RetryPolicy(self.health, self.outage_seconds))

    def __post_init__(self) -> None:
        self._lanes = Lanes(self.lanes)

    def _count(self, records: Batch, outgoing: Sequence[ProducerRecord]) -> None:
        self.counted.append((len(records), len(outgoing)))

    @property
    def acknowledged(self) -> list[str]:
        return [line.removeprefix("ack ") for line in self.journal if line.startswith("ack")]


@pytest.fixture(autouse=True)
def _producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "hand_over", Bench.hand_over)


WHOLE = ["0/7", "1/3", "0/8"]  # the batch that a bench has by default


async def echo(records: Batch) -> list[ProducerRecord]:
    """Return one result for each record, with its value."""
    return [ProducerRecord("out", record.key, record.value, []) for record in records]


def failing(*errors: Exception) -> Decide:
    """Return a step that raises these errors in turn, then echoes."""
    left = list(errors)

    async def decide(records: Batch) -> list[ProducerRecord]:
        if left:
            raise left.pop(0)
        return await echo(records)

    return decide


async def test_a_batch_is_acked_only_after_every_delivery() -> None:
    bench = Bench(outcomes={value: [None] for value in WHOLE})
    async with bench.running() as task:
        await until(lambda: len(bench.unconfirmed) == 3)
        assert bench.journal == [f"send {value}" for value in WHOLE]
        for value in WHOLE[1:]:
            bench.confirm(value)
        await turns()
        assert bench.acknowledged == []
        bench.confirm(WHOLE[0])
        await task
    assert bench.acknowledged == WHOLE


async def test_a_result_is_sent_as_it_was_decided_and_a_batch_without_results_is_acked() -> None:
    headers: Headers = [("a", b"1"), ("b", None), ("a", b"2")]
    results = [
        [ProducerRecord("out", None, b"", headers, 1_772_439_300_001), ProducerRecord("out", b"k", b"v", [])],
        [],
    ]

    async def decide(records: Batch) -> list[ProducerRecord]:
        return results.pop(0)

    sent = results[0]
    bench = Bench([[consumed(1)], [consumed(2)]])
    await bench.run(decide)
    assert bench.sent == sent
    assert bench.acknowledged == ["0/1", "0/2"]


async def test_a_delivery_that_fails_acks_nothing_from_its_record_on() -> None:
    """The batch is sent first, then record by record up to the one that fails."""
    for error in (MessageSizeTooLargeError(), ValueError("bug")):
        for place, value in enumerate(WHOLE):
            bench = Bench(outcomes={value: [error, error]})
            with pytest.raises(type(error)):
                await bench.run()
            assert bench.acknowledged == WHOLE[:place]
            assert len(bench.sent) == 3 + place + 1
    once = Bench(outcomes={"1/3": [ValueError("once")]})
    await once.run()
    assert once.acknowledged == WHOLE


async def test_a_retriable_failure_sends_the_whole_batch_again_and_decides_and_counts_it_once() -> None:
    decided: list[list[int]] = []

    async def noted(records: Batch) -> list[ProducerRecord]:
        decided.append([record.offset for record in records])
        return await echo(records)

    errors = (
        KafkaTimeoutError(),
        NotLeaderForPartitionError(),
        NotEnoughReplicasError(),
        KafkaConnectionError(),
        UnknownTopicOrPartitionError(),  # that no broker tells of yet
    )
    for error in errors:
        bench = Bench(outcomes={"1/3": [error]})
        await bench.run(noted)
        assert bench.journal == [f"{action} {value}" for action in ("send", "send", "ack") for value in WHOLE]
        assert bench.sent[:3] == bench.sent[3:]
        assert bench.counted == [(3, 3)]
    assert decided == [[7, 3, 8]] * len(errors)


async def test_a_bug_on_one_record_is_told_with_its_offset_and_leaves_those_before_acked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken_at_9(records: Batch) -> list[ProducerRecord]:
        if any(record.offset == 9 for record in records):
            raise ZeroDivisionError
        return await echo(records)

    bench = Bench([[consumed(7), consumed(3, 1), consumed(9), consumed(10)], [consumed(11)]])
    with pytest.raises(ZeroDivisionError):
        await bench.run(broken_at_9)
    assert bench.journal == ["send 0/7", "ack 0/7", "send 1/3", "ack 1/3"]
    assert "in 0 offsets 7-10, in 1 offset 3" in caplog.text
    assert caplog.messages[-1].endswith(": in 0 offset 9")


@pytest.mark.parametrize("failures", [[], [AWAY], [IndexBehindError(1, 0)]], ids=["whole", "away", "behind again"])
async def test_an_index_that_is_behind_is_given_what_it_lost_first_and_from_its_beginning_after_a_failure(
    failures: list[Exception],
) -> None:
    bench = Bench(recovery=index(failures=failures))
    begun_anew = ["send lost 1"] * len(failures)
    await bench.run(failing(IndexBehindError(1, 0)))
    actions = [f"{action} {value}" for action in ("send", "ack") for value in WHOLE]
    assert bench.journal == [*begun_anew, "send lost 1", "send lost 2", *actions]
    assert bench.recovery is not None
    assert bench.recovery.asked == [Lost(1, 0, 3)] * (1 + len(failures))


@pytest.mark.parametrize(
    ("failure", "sent"),
    [
        (None, [9, 10]),
        (AWAY, [9, 9, 10]),
        (LOST, [9, 9, 10]),
        (IndexBehindError(4, 5), [9, 6, 7]),
        (IndexBehindError(4, 9), [9, 9, 10]),
        (KafkaTimeoutError("no broker took the first part"), [9, 9, 10]),
    ],
)
async def test_nothing_that_silent_partitions_lost_is_forgotten_when_catching_up_fails(
    failure: Exception | None, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halfway through, the index reports a later checkpoint, so it would report fewer losses."""
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    of_broker = isinstance(failure, KafkaTimeoutError)
    bench = Bench([], recovery=index(Lost(4, 8, 11), failures=[failure] if failure and not of_broker else []))
    bench.outcomes = {"lost 9": [failure]} if of_broker else {}
    async with bench.running():
        await until(lambda: len(bench.journal) >= len(sent))
        await turns()
    assert bench.journal == [f"send lost {number}" for number in sent]


@pytest.mark.parametrize(
    ("errors", "outage_seconds", "told"),
    [
        ([AWAY, AWAY], 900, ["outage: away", "outage over"]),
        ([AWAY, AWAY], 0, ["outage: away", "outage over"]),  # a limit of zero waits for ever
        ([LOST, LOST], 0.01, ["outage: run nearstream rebuild", "outage over"]),  # waited for without limit
        ([AWAY, AWAY, LOST], 900, ["outage: away", "outage goes on: run nearstream rebuild", "outage over"]),
        ([KafkaTimeoutError("away")], 900, ["outage: KafkaTimeoutError: away", "outage over"]),
    ],
)
async def test_an_outage_pauses_and_retries(
    errors: list[Exception], outage_seconds: float, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(outage_seconds=outage_seconds)
    with caplog.at_level(logging.WARNING):
        await bench.run(failing(*errors))
    assert bench.journal == [f"{action} {value}" for action in ("send", "ack") for value in WHOLE]
    assert [message.split(" after")[0] for message in caplog.messages] == told


async def test_an_outage_beyond_its_limit_ends_the_worker_and_acks_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery, "UNCONFIRMED_SECONDS", 0.01)
    away = Bench(outage_seconds=0.01)
    with pytest.raises(OutageTooLongError, match=r"Redis at h:6379: away for 0\.01 s"):
        await away.run(failing(*[IndexUnavailableError("Redis at h:6379")] * 99))
    unconfirmed = Bench(outcomes={"1/3": [None]}, outage_seconds=0.02)
    with pytest.raises(OutageTooLongError):
        await unconfirmed.run()
    assert "Kafka has not confirmed 1 records" in caplog.text
    assert away.acknowledged == unconfirmed.acknowledged == []


async def test_lanes_share_one_limit_of_dead_letters_and_halt_together_before_anything_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The good batch would begin the count anew, so it must not be sent either."""

    async def decide(records: Batch) -> list[ProducerRecord]:
        if records[0].offset == 9:
            await until(lambda: bench.health.halted)
            return await echo(records)
        letters = [DeadLetter(each, "decode", Reason.NOT_JSON, "an object expected") for each in records]
        return [outgoing(letter, "dead", "w", "full", 10_000) for letter in letters]

    batches = [[consumed(9, 1)], [consumed(1), consumed(2)], [consumed(3), consumed(4)]]
    bench = Bench(batches, lanes=2, limits=DeadLetterLimit(4, 0.0))
    async with bench.running(decide):
        await until(lambda: bench.health.halted)
        await turns()
        assert bench.acknowledged == ["0/1", "0/2"]
        assert len(bench.sent) == 2
    assert bench.health.halted == "4 dead letters in a row (limit 4); this batch: 2 not_json"
    assert "halted: dead-letter limit exceeded, consuming stopped until restart: 4 dead letters" in caplog.text


@pytest.mark.parametrize("is_stop", [False, True], ids=["a failure", "a stop"])
async def test_a_failure_in_one_lane_or_a_stop_ends_all_and_acks_nothing_of_theirs(is_stop: bool) -> None:
    bench = Bench([[consumed(7)], [consumed(3, 1)], [consumed(1, 2)]], {"0/7": [None]}, lanes=3)

    async def decide(records: Batch) -> list[ProducerRecord]:
        if records[0].offset == 3:
            await until(lambda: bench.acknowledged == ["2/1"] and "0/7" in bench.unconfirmed and not is_stop)
            raise ZeroDivisionError
        return await echo(records)

    async with bench.running(decide) as task:
        if is_stop:
            await until(lambda: bench.acknowledged == ["2/1"] and len(bench.health.in_work) == 2)
            task.cancel()
        with pytest.raises(asyncio.CancelledError if is_stop else ZeroDivisionError):
            await task
    assert bench.acknowledged == ["2/1"]
    assert (bench.in_work, bench.health.in_work) == (0, frozenset())


async def test_a_recovery_waits_for_all_lanes_and_they_wait_for_it() -> None:
    recovery, decided = Index(), list[int]()

    async def behind_once(records: Batch) -> list[ProducerRecord]:
        decided.append(records[0].partition)
        await asyncio.sleep(0)
        if decided == [0, 1] and records[0].partition == 0:
            raise IndexBehindError(0, 5)
        return await echo(records)

    batches = [[consumed(7)], [consumed(3, 1)], [consumed(5, 2)]]
    bench = Bench(batches, {"1/3": [None]}, lanes=2, recovery=recovery)
    async with bench.running(behind_once):
        await until(lambda: "1/3" in bench.unconfirmed)
        await turns()
        assert recovery.asked == []
        bench.confirm("1/3")
        await until(lambda: recovery.asked)
        await turns()
        assert recovery.asked == [Lost(0, 5, 7)]
        assert decided == [0, 1]
        assert bench.acknowledged == ["1/3"]
        recovery.may_go_on.set()
        await until(lambda: len(bench.acknowledged) == 3)
    assert bench.journal.index("send lost 7") < bench.journal.index("send 0/7")


async def test_silent_partitions_are_restored_while_no_lane_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHECK_SECONDS", 0.001)
    recovery = index(Lost(4, 8, 11))
    bench = Bench([[consumed(7)], [consumed(3, 1)]], {"0/7": [None], "1/3": [None]}, lanes=2, recovery=recovery)
    bench.health.assigned = frozenset({("in", 4), ("other", 1)})
    async with bench.running():
        await until(lambda: len(bench.unconfirmed) == 2)
        bench.confirm("0/7")
        await until(lambda: bench.acknowledged)
        await turns()
        assert recovery.asked == []
        bench.confirm("1/3")
        await until(lambda: bench.health.caught_up >= 2)
    assert bench.journal[2:] == ["ack 0/7", "ack 1/3", "send lost 9", "send lost 10"]
