"""Send the records of requests that change something, within bounds, whatever Kafka does."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.kept_sender import KeptSender, kept_sender
from nearstream.workers.monitoring.metrics import API_RECORDS

UNCONFIRMED = 64  # records
UNCONFIRMED_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 30.0
_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class OutboxFullError(Exception):
    """As many records as allowed wait for Kafka to confirm them."""


class Outbox:
    """Sends records to Kafka, which confirms each of them with all replicas in sync."""

    def __init__(self, sending: KeptSender) -> None:
        """Send by this sender."""
        self._sending = sending
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
        try:
            async with asyncio.timeout(seconds):
                await self._sending.send([record])
        except TimeoutError:
            raise KafkaUnreachableError(f"Kafka has not confirmed the record within {seconds:g} s") from None


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Outbox]:
    """Yield an outbox that connects while the block runs, however long that takes."""

    def report(error: Exception) -> None:
        log.warning("documents can be neither learned nor removed: %s", error)

    async with kept_sender(settings, _CONNECT_SECONDS, _RETRY_SECONDS, report) as sending:
        yield Outbox(sending)
