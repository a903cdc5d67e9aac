"""Faust's Kafka transport, with batches and an idempotent producer.

Faust joins and leaves the group and commits twice a second. Records do not take its way to an agent, which needs
three tasks and a dozen objects for each record, and whose list of acknowledged offsets skips gaps and is dropped by a
rebalance. Our consumer hands out batches on request instead, and keeps one number for each partition: the offset to
read next. The commits of its thread, and the goodbye of that thread to the group, always end.

Faust has no public hook for that. The methods below override its own, and say why. These names of Faust and of aiokafka
are used besides:

| name | what for |
|---|---|
| `Fetcher._prefetch_backoff` | set: how long it waits, which Faust has no setting for |
| `GroupCoordinator.generation` | read: it is negative once the member is expelled |
| `ServiceThread._stopped` | set: the thread has ended |
| `ServiceThread._shutdown` | wait for it: that thread answers no call any more |
| `AIOKafkaConsumerThread._ensure_consumer` | call: it returns aiokafka's consumer |
| `AIOKafkaConsumerThread._fetch_records` | call: fetch a batch of some partitions |
| `AIOKafkaConsumer._coordinator` | read: aiokafka's side of the group |
| `AIOKafkaConsumer._fetcher` | read: it asks the brokers for records |
| `Fetcher._fetch_max_wait_ms` | set: how long a broker waits for records, which Faust has no setting for |
| `GroupCoordinator.check_errors` | call: nothing else raises its errors, and until then it joins no rebalance |
| `Consumer._thread`, `ServiceThread.thread_loop` | read: fetches run in the loop of that thread |
| `Consumer._get_active_partitions` | call: the partitions that are assigned and not paused |
| `Consumer._commit` | call: commit these offsets in the thread |
| `Consumer.maybe_wait_for_commit_to_finish` | call: wait for the commit in progress |
| `Consumer.flow_active`, `.can_resume_flow`, `.stop_flow` | use: no batch is handed out during a rebalance |
| `App.consumer_generation_id` | read: a batch of an earlier generation is dropped |
| `Producer._ensure_producer` | call: it returns aiokafka's producer, which takes whole batches |
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from faust.transport.drivers import aiokafka
from faust.types.tuples import TP
from mode import Service

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.kafka.records import as_record

LEAVE_SECONDS = 10.0

# aiokafka sends no request at all while another partition of the broker has records that are younger.
PREFETCH_BACKOFF_SECONDS = 0.01

log = logging.getLogger(__name__)


class ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """Faust's consumer thread, which leaves the group within a time limit.

    A join in progress ends only when the other members have joined too, for which a broker waits up to a minute.
    Besides, aiokafka's fetcher may miss its cancellation just after a rebalance.
    """

    async def on_start(self) -> None:
        """Start to fetch, without long pauses while some partitions have records."""
        await super().on_start()
        self._ensure_consumer()._fetcher._prefetch_backoff = PREFETCH_BACKOFF_SECONDS

    @Service.task
    async def _watch_group(self) -> None:
        """Raise an error of the group while no partition is assigned."""
        while not self.should_stop:
            self._ensure_consumer()._coordinator.check_errors()
            await self.sleep(FETCH_SECONDS)

    async def on_thread_stop(self) -> None:
        """Leave the group, after everything is committed.

        This runs in a task of its own, because while the broker is away aiokafka passes on the cancellation of a fetch
        as if the caller were cancelled.
        """
        leaving = asyncio.ensure_future(super().on_thread_stop())
        in_time, _ = await asyncio.wait([leaving], timeout=LEAVE_SECONDS)
        if not in_time:
            log.warning("left the group without a goodbye: rebalance still running after %g s", LEAVE_SECONDS)
            leaving.cancel()
            await asyncio.wait([leaving], timeout=LEAVE_SECONDS)
        if leaving.done() and not leaving.cancelled():
            leaving.result()

    def _stopped_set(self) -> None:
        """Tell the thread to end, unless a crash has already ended it and closed its event loop."""
        try:
            super()._stopped_set()
        except RuntimeError:
            self._stopped.set()

    async def commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit in this thread, unless the thread ends first.

        A crash of the worker ends this thread too. It answers no call after that, and a stop that commits would wait
        for it without end.
        """
        committing = asyncio.ensure_future(super().commit(offsets))
        ending = asyncio.ensure_future(self._shutdown.wait())
        try:
            await asyncio.wait((committing, ending), return_when=asyncio.FIRST_COMPLETED)
            if not self._shutdown.is_set():
                return await committing
            committing.cancel()
            await asyncio.gather(committing, return_exceptions=True)  # it may have failed, because the loop is closed
            return False
        finally:
            committing.cancel()
            ending.cancel()

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit only while this member belongs to the group.

        A group without members accepts any commit, so an expelled member could move offsets backwards.
        """
        is_member = self._ensure_consumer()._coordinator.generation >= 0
        return is_member and await super()._commit(offsets)


FETCH_SECONDS = 1.0
POLL_SECONDS = 0.01  # between two looks for records of free partitions while others are in work

# aiokafka has one request at a time in flight to a broker, for the partitions without fetched records. While the broker
# waits for records of these, the other partitions run dry, and in a busy stream all wait for a quiet one.
BUSY_WAIT_MS = 20
IDLE_WAIT_MS = 100
BUSY_SECONDS = 1.0  # since records were last handed out


@dataclass
class Claims:
    """The partitions of a topic whose records are in work."""

    partitions: set[TP] = field(default_factory=set)  # These partitions. No other batch gets records of them.
    released: asyncio.Event = field(default_factory=asyncio.Event)  # set when some are free again
    # Held by the one who takes a batch, because two fetches could return records of one partition.
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def wait(self, seconds: float) -> None:
        """Wait until `released` is set, at most for this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.released.wait()


class BatchConsumer(aiokafka.Consumer):
    """Faust's consumer, which hands out batches on request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on to Faust
        super().__init__(*arguments, **options)
        self._fetching = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._in_flight = 0
        self._busy_until = 0.0
        self._claims: defaultdict[str, Claims] = defaultdict(Claims)
        self._next_offsets: dict[TP, int] = {}  # acknowledged, but not committed yet

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @asynccontextmanager
    async def batch(self, topic: str, max_records: int) -> AsyncIterator[list[ConsumerRecord]]:
        """Take the next records of a topic, at least one.

        Until this context is left, no other batch has records of their partitions, and a rebalance or a stop waits.
        """
        claims = self._claims[topic]
        async with claims.taking:
            records = await self._take(topic, claims, max_records)
            # Nothing waits between the check of the generation in `_take` and the end of this block: the batch could
            # belong to another generation by then.
            claimed = {TP(record.topic, record.partition) for record in records}
            claims.partitions |= claimed
            self._in_flight += 1
            self._idle.clear()
        try:
            yield records
        finally:
            claims.partitions -= claimed
            claims.released.set()
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def acknowledge(self, records: Sequence[ConsumerRecord]) -> None:
        """Include these records in the next commit.

        In each partition they must follow the records that were acknowledged before.
        """
        for record in records:
            self._next_offsets[TP(record.topic, record.partition)] = record.offset + 1

    async def _take(self, topic: str, claims: Claims, max_records: int) -> list[ConsumerRecord]:
        while True:
            await self._fetching.wait()
            if not self.flow_active:
                await self.can_resume_flow.wait()
            partitions = {partition for partition in self._get_active_partitions() if partition.topic == topic}
            claims.released.clear()
            free = partitions - claims.partitions
            if not free:
                await claims.wait(FETCH_SECONDS)
                continue
            # A fetch that waits would not see records of partitions that are released meanwhile.
            seconds = 0.0 if claims.partitions else FETCH_SECONDS
            fetching = self._fetch(free, max_records, seconds)
            fetch = asyncio.run_coroutine_threadsafe(fetching, self._thread.thread_loop)
            generation, records = await asyncio.wrap_future(fetch)
            # Records fetched before a rebalance are dropped. They are read again from the committed offset.
            if records and self.flow_active and generation == self.app.consumer_generation_id:
                self._busy_until = monotonic() + BUSY_SECONDS
                return records
            if not seconds:
                await claims.wait(POLL_SECONDS)

    async def _fetch(self, partitions: set[TP], max_records: int, seconds: float) -> tuple[int, list[ConsumerRecord]]:
        """Return the generation and the next records, in the consumer's thread.

        Waits up to `seconds` for a record.
        """
        thread = self._thread
        client = thread._ensure_consumer()
        client._coordinator.check_errors()
        client._fetcher._fetch_max_wait_ms = BUSY_WAIT_MS if monotonic() < self._busy_until else IDLE_WAIT_MS
        fetched = await thread._fetch_records(client, partitions, seconds, max_records)
        if not self.flow_active:
            # The fetch may outlast a rebalance and return records of partitions that were assigned meanwhile.
            # They are not handed out, so the position has to go back to the first of them.
            for partition, records in fetched.items():
                client.seek(partition, records[0].offset)
            fetched = {}
        return self.app.consumer_generation_id, [
            as_record(record) for records in fetched.values() for record in records
        ]

    async def perform_seek(self) -> None:
        """Do nothing: aiokafka starts each assignment at the committed offset.

        Faust would ask for the offsets first, and crash if the broker takes too long to answer.
        """

    async def _drain_messages(self, fetcher: Any) -> None:  # noqa: ANN401 - Faust's Fetcher
        """Allow batches while Faust's fetcher runs.

        It runs from the end of the first rebalance until the stop.
        """
        self._fetching.set()
        try:
            await fetcher.wait_until_stopped()
        except asyncio.CancelledError:
            # A stop ends with this cancellation. During a rebalance Faust would take it for a crash.
            if not self.app.should_stop:
                raise
        finally:
            self._fetching.clear()

    async def wait_empty(self) -> None:
        """Wait until no batch is in flight, then commit what was acknowledged."""
        if not self.should_stop:
            await self.wait(self._idle.wait())
            # Otherwise the commit in progress may reach the broker after a commit of the next owner.
            await self.wait(self.maybe_wait_for_commit_to_finish())
        await self.force_commit()

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Commit what was acknowledged, and return whether anything was committed."""
        acknowledged, self._next_offsets = self._next_offsets, {}
        assigned = self.assignment() if acknowledged else ()
        offsets = {partition: offset for partition, offset in acknowledged.items() if partition in assigned}
        return bool(offsets) and await self._commit(offsets)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Hand out no batch until the next assignment.

        During a stop too, the batch in flight is finished and committed first.
        """
        self.stop_flow()  # Faust does this only for a consumer that has partitions.
        if self.app.should_stop:
            await self.wait_empty()
        await super().on_partitions_revoked(revoked)

    def close(self) -> None:
        """Do nothing: the client has to stay open for the last commit.

        If a stop meets a rebalance, Faust would close it here, and from the wrong thread.
        """

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Forget what was acknowledged in an earlier generation."""
        self._next_offsets.clear()
        await super().on_partitions_assigned(assigned, generation_id)

    @Service.task
    async def _commit_livelock_detector(self) -> None:
        """Do nothing: the watchdog replaces this check of records that Faust handed out itself."""


class IdempotentProducer(aiokafka.Producer):
    """Faust's producer, whose retries neither duplicate nor reorder records."""

    def _settings_extra(self) -> dict[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class Transport(aiokafka.Transport):
    """Faust's transport with our consumer and our producer."""

    Consumer = BatchConsumer
    Producer = IdempotentProducer
