"""Send pages to Kafka, with another client after an error that one does not survive."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.records import SendAll, sender

RETRY_SECONDS = 10.0

log = logging.getLogger(__name__)


class PageSender:
    """Sends records of pages while a spider is open."""

    def __init__(self, settings: Settings, wait_seconds: float) -> None:
        """Prepare sending.

        Args:
            settings: Of the deployment.
            wait_seconds: How long a broker is waited for.
        """
        self._settings = settings
        self._wait_seconds = wait_seconds
        self._stack = AsyncExitStack()
        self._send_all: SendAll | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect to Kafka.

        Raises:
            KafkaUnreachableError: No broker answered in time.
        """
        stack = AsyncExitStack()
        self._send_all = await stack.enter_async_context(sender(self._settings, self._wait_seconds))
        self._stack = stack

    async def send(self, records: Sequence[ProducerRecord]) -> None:
        """Send records and wait until they are confirmed.

        Raises:
            KafkaUnreachableError: They were not confirmed in time, or there is no connection.
            SettingsError: The broker refuses them.
        """
        if self._send_all is None:
            raise KafkaUnreachableError("there is no connection to Kafka")
        try:
            await self._send_all(records)
        except KafkaError as error:
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
            raise KafkaUnreachableError(f"Kafka has not taken the page: {error}") from error

    async def close(self) -> None:
        """Disconnect."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        await self._stack.aclose()

    async def _renew(self) -> None:
        """Take another client in place of one that may not be able to send any more."""
        self._send_all = None
        await self._stack.aclose()
        while self._send_all is None:
            try:
                await self.open()
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                log.debug("there is no connection to Kafka: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
