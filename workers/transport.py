"""Faust's transport, with a consumer that a loop takes batches from, and an idempotent producer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from faust.transport.drivers import aiokafka
from faust.types.tuples import TP
from mode import Service

from schemas.record import Record
from workers.kafka_records import as_record

FETCH_SECONDS = 1.0
LEAVE_SECONDS = 10.0

log = logging.getLogger(__name__)


class ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """Faust's thread of the consumer, which leaves a group within a time.

    A join under way ends only when the others are as far, for which a broker waits up to a minute; and aiokafka's
    fetcher may miss that it is cancelled just after a rebalance.
    """

    async def on_thread_stop(self) -> None:
        """Called in a stop, when all is committed."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await super().on_thread_stop()
        except TimeoutError:
            log.warning("the group is left without a word, after %g s: a rebalance does not end", LEAVE_SECONDS)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Nothing for who was put out: a group without members takes offsets from anybody, older ones too."""
        is_member = self._ensure_consumer()._coordinator.generation >= 0
        return is_member and await super()._commit(offsets)


class BatchConsumer(aiokafka.Consumer):
    """Faust's consumer, asked for batches instead of handing on record by record.

    Faust still joins and leaves the group, commits twice a second. But its way of a record to an agent takes three
    tasks and a dozen objects; its books of what is acknowledged pass over gaps, and a rebalance drops them. Here they
    are one number a partition: the offset that comes next.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as Faust's
        super().__init__(*arguments, **options)
        self._fetching = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._in_flight = 0
        self._next: dict[TP, int] = {}

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @asynccontextmanager
    async def batch(self, topic: str, most: int) -> AsyncIterator[list[Record]]:
        """The next records of a topic, at least one; a rebalance or a stop waits until this context is left."""
        records = await self._take(topic, most)
        self._in_flight += 1  # nothing may be awaited since the records were found to be of this generation
        self._idle.clear()
        try:
            yield records
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def acknowledge(self, records: Sequence[Record]) -> None:
        """Lets the next commit cover these, which follow on what was acknowledged before in their partitions."""
        for record in records:
            self._next[TP(record.topic, record.partition)] = record.offset + 1

    async def _take(self, topic: str, most: int) -> list[Record]:
        while True:
            await self._fetching.wait()
            if not self.flow_active:
                await self.can_resume_flow.wait()
            partitions = {place for place in self._get_active_partitions() if place.topic == topic}
            if not partitions:
                await asyncio.sleep(FETCH_SECONDS)
                continue
            fetch = asyncio.run_coroutine_threadsafe(self._fetch(partitions, most), self._thread.thread_loop)
            generation, records = await asyncio.wrap_future(fetch)
            # What a rebalance overtook since is read again, from the committed offset.
            if records and self.flow_active and generation == self.app.consumer_generation_id:
                return records

    async def _fetch(self, partitions: set[TP], most: int) -> tuple[int, list[Record]]:
        """In the consumer's thread: what is there, waited for if there is nothing; with the generation it is for."""
        thread = self._thread
        client = thread._ensure_consumer()
        client._coordinator.check_errors()  # nobody else asks, and until then it joins no rebalance
        found = await thread._fetch_records(client, partitions, FETCH_SECONDS, most)
        if not self.flow_active:
            # A fetch outlasts a rebalance, and reads what is newly assigned.
            for place, records in found.items():
                client.seek(place, records[0].offset)
            found = {}
        return self.app.consumer_generation_id, [as_record(record) for part in found.values() for record in part]

    async def perform_seek(self) -> None:
        """Nothing: aiokafka begins each assignment where the group is, however late a broker tells it."""

    async def _drain_messages(self, fetcher: Any) -> None:  # noqa: ANN401 - Faust's Fetcher
        """What Faust runs from the end of the first rebalance to the stop."""
        self._fetching.set()
        try:
            await fetcher.wait_until_stopped()
        except asyncio.CancelledError:  # the end of a stop; Faust would take it for a crash in a rebalance
            if not self.app.should_stop:
                raise
        finally:
            self._fetching.clear()

    async def wait_empty(self) -> None:
        """Returns when no batch is in flight, at a crash at once; what was acknowledged is committed."""
        if not self.should_stop:
            await self.wait(self._idle.wait())
            await self.wait(self.maybe_wait_for_commit_to_finish())  # else it may come after one of the next owner
        await self.force_commit()

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Whether what was acknowledged is committed; what the broker refuses, for a rebalance, is read again."""
        done, self._next = self._next, {}
        ours = self.assignment() if done else ()
        offsets = {place: offset for place, offset in done.items() if place in ours}
        return bool(offsets) and await self._commit(offsets)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """The batch in flight is waited for in a stop too; nothing is taken until Faust has the next assignment."""
        self.stop_flow()  # Faust does not if there are no partitions
        if self.app.should_stop:
            await self.wait_empty()
        await super().on_partitions_revoked(revoked)

    def close(self) -> None:
        """Nothing: a stop that meets a rebalance would close the client from a wrong thread, before the last commit."""

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """What was acknowledged in another generation is of no more use."""
        self._next.clear()
        await super().on_partitions_assigned(assigned, generation_id)

    @Service.task
    async def _commit_livelock_detector(self) -> None:
        """Faust's looks at records that it handed on; the guard takes its place."""


class IdempotentProducer(aiokafka.Producer):
    """Faust's producer, riding out broker outages: retries neither double nor reorder."""

    def _settings_extra(self) -> dict[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class Transport(aiokafka.Transport):
    """Faust's transport with both."""

    Consumer = BatchConsumer
    Producer = IdempotentProducer
