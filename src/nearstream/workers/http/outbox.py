"""Send the records of requests that change something, within bounds, whatever Kafka does."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.records import SendAll, sender
from nearstream.workers.monitoring.metrics import API_RECORDS

UNCONFIRMED = 64  # records
UNCONFIRMED_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


class OutboxFullError(Exception):
    """As many records as allowed wait for Kafka to confirm them."""


class Outbox:
    """Sends records to Kafka, which confirms each of them with all replicas in sync."""

    def __init__(self) -> None:
        """Make an outbox that is not connected."""
        self._send_all: SendAll | None = None
        self._failed = asyncio.Event()
        self._records = 0
        self._bytes = 0

    async def send(self, record: ProducerRecord, seconds: float) -> None:
        """Send a record and wait until Kafka has confirmed it.

        A record that is not confirmed in time may still arrive.

        Raises:
            KafkaUnreachableError: Kafka has not confirmed it within `seconds`, or there is no connection.
            OutboxFullError: Too many records are unconfirmed.
            SettingsError: The broker refuses the record.
        """
        size = len(record.value or b"")
        if self._records >= UNCONFIRMED or self._bytes + size > UNCONFIRMED_BYTES:
            raise OutboxFullError
        self._records, self._bytes = self._records + 1, self._bytes + size
        try:
            await self._confirmed(record, seconds)
        except BaseException:
            API_RECORDS.labels("failed").inc()
            raise
        finally:
            self._records, self._bytes = self._records - 1, self._bytes - size
        API_RECORDS.labels("confirmed").inc()

    async def _confirmed(self, record: ProducerRecord, seconds: float) -> None:
        if self._send_all is None:
            raise KafkaUnreachableError("there is no connection to Kafka")
        try:
            async with asyncio.timeout(seconds):
                await self._send_all([record])
        except TimeoutError:
            raise KafkaUnreachableError(f"Kafka has not confirmed the record within {seconds:g} s") from None
        except KafkaError as error:
            self._failed.set()  # after some errors a producer cannot send any more
            raise KafkaUnreachableError(f"Kafka has not taken the record: {error}") from error

    async def stay_connected(self, settings: Settings) -> None:
        """Keep a producer until this is cancelled, and replace one that failed."""
        while True:
            self._failed.clear()
            try:
                async with sender(settings, _CONNECT_SECONDS) as self._send_all:
                    log.info("connected to Kafka")
                    await self._failed.wait()
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                log.warning("documents can be neither learned nor removed: %s", error)
            finally:
                self._send_all = None
            await asyncio.sleep(_RETRY_SECONDS)


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Outbox]:
    """Yield an outbox that connects while the block runs, however long that takes."""
    outbox = Outbox()
    task = asyncio.create_task(outbox.stay_connected(settings))
    try:
        yield outbox
    finally:
        for _ in range(2):  # the second time it waits no longer for records that Kafka does not confirm
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_SECONDS)
