"""The thread of Faust's consumer, whose commits and whose goodbye to the group always end.

These names of Faust's classes, and of aiokafka's, are overridden or used, because there is no public hook:

| name | what we do, and why |
|---|---|
| `AIOKafkaConsumerThread.on_start` | extend: let a partition with records delay the others only for a moment |
| `AIOKafkaConsumerThread.on_thread_stop` | override: leave the group within `LEAVE_SECONDS` |
| `AIOKafkaConsumerThread.commit` | extend: give up when the thread ends before it commits |
| `AIOKafkaConsumerThread._commit` | override: commit nothing once expelled from the group |
| `AIOKafkaConsumerThread._ensure_consumer` | call: it returns aiokafka's consumer |
| `AIOKafkaConsumer._coordinator` | read: aiokafka's side of the group |
| `AIOKafkaConsumer._fetcher` | read: it asks the brokers for records |
| `Fetcher._prefetch_backoff` | set: how long it waits, which Faust has no setting for |
| `GroupCoordinator.generation` | read: it is negative once the member is expelled |
| `ServiceThread._stopped_set` | extend: do not call into a thread whose loop is closed |
| `ServiceThread._stopped` | set: the thread has ended |
| `ServiceThread._shutdown` | wait for it: that thread answers no call any more |

`tests/unit/workers/pipeline/test_private_names.py` checks that each of them exists in the installed release.
"""

import asyncio
import logging
from collections.abc import Mapping

from faust.transport.drivers import aiokafka
from faust.types.tuples import TP

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
