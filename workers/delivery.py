"""Take a batch, deliver every result, then acknowledge: the only place where offsets move.

Faust's usual idioms acknowledge what was never delivered: an exception in `async for`, `take` or
`take_events` commits the failing events, `topic.send` is awaited by nobody, and a selective or
unordered acknowledgement is jumped by the next commit. Hence one loop, all or nothing, in order,
over batches that its consumer is asked for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, cast

import faust
from faust.exceptions import ProducerSendError

from schemas.record import Outgoing, Record
from streams.index import IndexBehindError
from workers.health import Health
from workers.kafka_tools import first_failure
from workers.limits import Limits, Refusals
from workers.outages import OutageTooLongError, Patience
from workers.recovery import Lost, Recovery
from workers.settings import SettingsError
from workers.transport import BatchConsumer

# After a batch that was not full: a lone record waits for nothing, those behind it for company.
COMPANY_SECONDS = 0.005
UNCONFIRMED_SECONDS = 5.0
HOLD_LOG_SECONDS = 60.0
CHECK_SECONDS = 5.0

log = logging.getLogger(__name__)

Decide = Callable[[Sequence[Record]], Awaitable[Sequence[Outgoing]]]
Count = Callable[[Sequence[Record], Sequence[Outgoing]], None]


@dataclass(frozen=True)
class Step:
    """What an agent does with a batch.

    Attributes:
        name: Label of its time.
        batch: Most records at once.
        decide: What follows from them; raises an outage, then it is asked again.
        count: Called once for each batch, when all is delivered.
        recovery: What is done when the index lost writes; None: it asks no index.
        turn: One batch, or one recovery, at a time.
    """

    name: str
    batch: int
    decide: Decide
    count: Count
    recovery: Recovery | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)


@dataclass(frozen=True)
class Delivery:
    """The loop, shared by all agents of one worker.

    Attributes:
        app: Gives the consumer, the producer.
        health: Told of outages, of a hold.
        limits: How many dead letters are borne.
        patience: How outages are borne.
    """

    app: faust.App
    health: Health
    limits: Limits
    patience: Patience

    @property
    def _consumer(self) -> BatchConsumer:
        return cast(BatchConsumer, self.app.consumer)  # Faust declares its base; the app's transport makes ours

    async def run(self, topic: str, step: Step) -> NoReturn:
        """Decides and delivers batch after batch of a topic; never returns.

        Raises:
            OutageTooLongError: Nothing of the batch is acknowledged.
            SettingsError: A server refuses us; the same.
            Exception: A bug, or a delivery that no retry cures; nothing is acknowledged from its record on.
        """
        refusals = Refusals(self.limits)
        while True:
            async with self._consumer.batch(topic, step.batch) as records:
                try:
                    await self._carry(step, refusals, records)
                except (OutageTooLongError, SettingsError):
                    raise
                except Exception:
                    if len(records) == 1:
                        raise
                    await self._carry_each(step, records)
            if len(records) < step.batch:
                await asyncio.sleep(COMPANY_SECONDS)

    async def _carry_each(self, step: Step, records: Sequence[Record]) -> None:
        """Finds the record on which a batch failed: those before it are done, the log names its offset."""
        for record in records:
            await self._carry(step, Refusals(self.limits), [record])

    async def _carry(self, step: Step, refusals: Refusals, records: Sequence[Record]) -> None:
        """All of a batch decided, delivered, acknowledged; if that fails, nothing of it is acknowledged."""
        try:
            async with step.turn:
                outgoing = await self._decided(step, records)
                await self._hold(refusals.beyond_limit(records, outgoing))
                await self.patience.through("deliver", partial(self._send_all, outgoing))
        except SettingsError as error:
            log.error("refused, nothing of this is acknowledged: %s: %s", error, _places(records))  # noqa: TRY400 - no bug
            raise
        except Exception:
            log.exception("failed, nothing of this is acknowledged: %s", _places(records))
            raise
        self._consumer.acknowledge(records)
        step.count(records, outgoing)

    async def keep_whole(self, step: Step, topic: str) -> None:
        """Finds what the index lost of partitions of `topic` on which nothing arrives; never returns.

        Without it their documents were not met by those of others until then.
        """
        while step.recovery is not None:
            await asyncio.sleep(CHECK_SECONDS)
            ours = [partition for name, partition in self.health.assigned or () if name == topic]
            async with step.turn:
                # What was found is kept until it is made good: asked again amid that, the index tells less.
                for lost in await self.patience.through("catch_up", partial(step.recovery.lost, ours)):
                    await self._make_good(step.recovery, lost)

    async def _decided(self, step: Step, records: Sequence[Record]) -> Sequence[Outgoing]:
        """What follows from a batch, once the index has been given again what it lost before it."""
        while True:
            try:
                return await self.patience.through(step.name, partial(step.decide, records))
            except IndexBehindError as error:
                if step.recovery is None:
                    raise
                end = min(record.offset for record in records if record.partition == error.partition)
                lost = Lost(error.partition, error.checkpoint, end)
            await self._make_good(step.recovery, lost)

    async def _make_good(self, recovery: Recovery, lost: Lost) -> None:
        """Catches up; begins anew, from further back if more was lost, when anything goes wrong meanwhile."""
        while True:
            try:
                return await self.patience.through("catch_up", partial(self._catch_up, recovery, lost))
            except IndexBehindError as error:
                lost = lost._replace(checkpoint=min(lost.checkpoint, error.checkpoint))

    async def _catch_up(self, recovery: Recovery, lost: Lost) -> None:
        log.warning(
            "the index lost offsets %d to %d of partition %d", lost.checkpoint + 1, lost.end - 1, lost.partition
        )
        async for outgoing in recovery.catch_up(lost):
            await self._send_all(outgoing)
            self.health.caught_up += 1

    async def _hold(self, broken: str) -> None:
        """Returns at once if no limit is broken, else never.

        A worker that went away would start again, or leave its partitions to another, which drained on.
        """
        while broken:
            self.health.held = broken
            log.error("hold, nothing more is consumed until someone has looked: %s", broken)
            await asyncio.sleep(HOLD_LOG_SECONDS)

    async def _send_all(self, outgoing: Sequence[Outgoing]) -> None:
        """Returns when the broker has confirmed every record; raises the first failure."""
        producer: Any = self.app.producer  # its type denies null header values, which are sent well
        waiting: list[asyncio.Future[Any]] = []
        for record in outgoing:
            seconds = None if record.timestamp_ms is None else record.timestamp_ms / 1000
            try:
                sent = await producer.send(record.topic, record.key, record.value, None, seconds, record.headers)
            except ProducerSendError as error:  # Faust's wrapper of what Kafka said
                raise first_failure([error.__cause__], [record.topic]) or error from None
            waiting.append(asyncio.ensure_future(sent))
        if waiting:
            await self._confirmed(waiting, [record.topic for record in outgoing])

    async def _confirmed(self, waiting: Sequence[asyncio.Future[Any]], topics: Sequence[str]) -> None:
        """An idempotent producer raises nothing while the broker is away, so silence is an outage too."""
        _, unconfirmed = await asyncio.wait(waiting, timeout=UNCONFIRMED_SECONDS)
        if unconfirmed:
            with self.health.outage(
                f"Kafka has not confirmed {len(unconfirmed)} records for {UNCONFIRMED_SECONDS:g} s"
            ):
                _, unconfirmed = await asyncio.wait(waiting, timeout=self.patience.seconds or None)
                if unconfirmed:
                    raise OutageTooLongError(f"Kafka: no confirmation for {self.patience.seconds:g} s")
        error = first_failure((done.exception() for done in waiting), topics)
        if error is not None:
            raise error


def _places(records: Sequence[Record]) -> str:
    """First and last offset of each partition, for the log; of one record its own."""
    spans: dict[tuple[str, int], list[int]] = {}
    for record in records:
        spans.setdefault((record.topic, record.partition), []).append(record.offset)
    return ", ".join(
        f"{topic} {part} offset {at[0]}" if len(at) == 1 else f"{topic} {part} offsets {at[0]}-{at[-1]}"
        for (topic, part), at in spans.items()
    )
