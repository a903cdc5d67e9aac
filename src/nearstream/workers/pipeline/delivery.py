"""Take a batch, deliver every result, then acknowledge.

This is the only place where offsets move. Faust's usual idioms acknowledge records whose results were never
delivered: an exception in `async for`, `take` or `take_events` commits the events that failed, the result of
`topic.send` is never awaited, and after a selective or unordered acknowledgement the next commit skips the gap. Hence
loops over batches that they request from our consumer: all or nothing, in order. Several loops of one step, its lanes,
have batches of different partitions in work, so that one batch is compared while another one waits for the index.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast

import faust

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.streams.store.limits import IndexBehindError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import first_failure
from nearstream.workers.kafka.records import hand_over
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.dead_letters import DeadLetterLimit, DeadLetterWindow
from nearstream.workers.pipeline.faust_consumer import BatchConsumer
from nearstream.workers.pipeline.retry import OutageTooLongError, RetryPolicy
from nearstream.workers.pipeline.step import Lost, Recovery, Send, Step

# Linger after a partial batch so that the next one is fuller. A single record is never delayed.
LINGER_SECONDS = 0.005
UNCONFIRMED_SECONDS = 5.0
HALT_LOG_SECONDS = 60.0
CHECK_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """The loop that all agents of one worker run."""

    app: faust.App  # the Faust app, for its consumer and producer
    health: Health  # where outages and a halt are recorded
    limit: DeadLetterLimit  # the dead-letter limit beyond which the worker halts
    retry_policy: RetryPolicy  # how long an outage is waited out

    @property
    def _consumer(self) -> BatchConsumer:
        return cast(BatchConsumer, self.app.consumer)  # Faust declares the base class.

    async def run(self, topic: str, step: Step) -> NoReturn:
        """Process batch after batch of a topic in each lane, without end.

        An error in one lane cancels the other lanes, whose batches are not acknowledged.
        """
        window = DeadLetterWindow(self.limit)
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(step.lanes.count):
                    lanes.create_task(self._run_lane(topic, step, window))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        raise AssertionError("all lanes were cancelled")

    async def _run_lane(self, topic: str, step: Step, window: DeadLetterWindow) -> NoReturn:
        while True:
            async with self._consumer.batch(topic, step.batch) as records:
                try:
                    await self._process(step, window, records)
                except (OutageTooLongError, SettingsError):
                    raise
                except Exception:
                    if len(records) == 1:
                        raise
                    await self._process_each(step, records)
            if len(records) < step.batch:
                await asyncio.sleep(LINGER_SECONDS)

    async def _process_each(self, step: Step, records: Sequence[ConsumerRecord]) -> None:
        """Process the records of a failed batch one by one, so that the log names the offset that fails."""
        for record in records:
            await self._process(step, DeadLetterWindow(self.limit), [record])

    async def _process(self, step: Step, window: DeadLetterWindow, records: Sequence[ConsumerRecord]) -> None:
        """Decide, deliver and acknowledge a whole batch, or acknowledge none of it."""
        try:
            with self.health.processing():
                outgoing = await self._deliver(step, window, records)
        except SettingsError as error:
            log.error("refused, nothing acknowledged: %s: %s", error, _offsets(records))  # noqa: TRY400 - no bug
            raise
        except Exception:
            log.exception("failed, nothing acknowledged: %s", _offsets(records))
            raise
        self._consumer.acknowledge(records)
        step.count(records, outgoing)

    async def _deliver(
        self, step: Step, window: DeadLetterWindow, records: Sequence[ConsumerRecord]
    ) -> Sequence[ProducerRecord]:
        while True:
            try:
                async with step.lanes.one():
                    outgoing = await self.retry_policy.call(step.name, partial(step.decide, records))
                    # The lane that halts keeps this lock, so nothing that is decided later is sent.
                    async with window.judging:
                        await self._halt_if(window.exceeded_limit(records, outgoing))
                    await self.retry_policy.call("deliver", partial(self._send_all, outgoing))
                    return outgoing
            except IndexBehindError as error:
                if step.recovery is None:
                    raise
                end = min(record.offset for record in records if record.partition == error.partition)
                lost = Lost(error.partition, error.checkpoint, end)
            async with step.lanes.all():
                await self._recover(step.recovery, lost)

    async def keep_whole(self, step: Step, topic: str) -> None:
        """Restore, every few seconds, what the index lost of our partitions.

        Where records arrive, `run` notices a loss itself. This finds losses in partitions of `topic` without new
        records: until their documents are restored, documents of other partitions do not find them. Never returns for
        a step with a recovery.
        """
        while step.recovery is not None:
            await asyncio.sleep(CHECK_SECONDS)
            partitions = [partition for name, partition in self.health.assigned or () if name == topic]
            async with step.lanes.all():
                # Keep this list until everything is restored. Asked again halfway, the index would report fewer losses.
                for lost in await self.retry_policy.call("catch_up", partial(step.recovery.lost, partitions)):
                    await self._recover(step.recovery, lost)

    async def repeat(self, stage: str, seconds: float, action: Callable[[Send], Awaitable[None]]) -> NoReturn:
        """Call `action` every few seconds while this worker has partitions, without end.

        It gets a function that sends records and returns when all are confirmed. After an outage it is called again.
        """
        while True:
            await asyncio.sleep(seconds)
            if self.health.assigned:
                await self.retry_policy.call(stage, partial(action, self._send_all))

    async def _recover(self, recovery: Recovery, lost: Lost) -> None:
        """Restore what the index lost, from the start again if anything fails, further back if it lost more."""
        while True:
            try:
                return await self.retry_policy.call("catch_up", partial(self._catch_up, recovery, lost))
            except IndexBehindError as error:
                lost = lost._replace(checkpoint=min(lost.checkpoint, error.checkpoint))

    async def _catch_up(self, recovery: Recovery, lost: Lost) -> None:
        log.warning(
            "Redis has lost its newest writes: offsets %d to %d of partition %d are matched again and their events sent"
            " again with equal ids, so nothing is to be done",
            *(lost.checkpoint + 1, lost.end - 1, lost.partition),
        )
        async for outgoing in recovery.catch_up(lost):
            await self._send_all(outgoing)
            self.health.caught_up += 1

    async def _halt_if(self, exceeded: str) -> None:
        """Return at once if no limit is exceeded, else never.

        A worker that exits instead would be restarted, or leave its partitions to another one, and the records would
        go on to the dead-letter topic.
        """
        while exceeded:
            self.health.halted = exceeded
            log.error("halted: dead-letter limit exceeded, consuming stopped until restart: %s", exceeded)
            await asyncio.sleep(HALT_LOG_SECONDS)

    async def _send_all(self, outgoing: Sequence[ProducerRecord]) -> None:
        """Send the records, wait until the broker has confirmed all, and raise the first failure.

        An idempotent producer raises nothing while the broker is away, so a late confirmation counts as an outage.
        """
        if not outgoing:
            return
        producer: Any = self.app.producer
        confirmations = await hand_over(producer._ensure_producer(), outgoing)
        _, late = await asyncio.wait(confirmations, timeout=UNCONFIRMED_SECONDS)
        if late:
            count = sum(confirmations[each][1] for each in late)
            with self.health.outage(f"Kafka has not confirmed {count} records for {UNCONFIRMED_SECONDS:g} s"):
                _, late = await asyncio.wait(late, timeout=self.retry_policy.seconds or None)
                if late:
                    raise OutageTooLongError(f"Kafka: no confirmation for {self.retry_policy.seconds:g} s")
        error = first_failure(
            (each.exception() for each in confirmations), [topic for topic, _ in confirmations.values()]
        )
        if error is not None:
            raise error


def _offsets(records: Sequence[ConsumerRecord]) -> str:
    by_partition: dict[tuple[str, int], list[int]] = {}
    for record in records:
        by_partition.setdefault((record.topic, record.partition), []).append(record.offset)
    return ", ".join(
        f"{topic} {part} offset {offsets[0]}"
        if len(offsets) == 1
        else f"{topic} {part} offsets {offsets[0]}-{offsets[-1]}"
        for (topic, part), offsets in by_partition.items()
    )
