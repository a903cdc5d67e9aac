"""Send records by a producer in whose place another one comes when it fails."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.records import SendAll, sender

_STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass
class KeptSender:
    """Sends records while there is a connection."""

    is_connected: asyncio.Event = field(default_factory=asyncio.Event)  # set while there is one
    _send_all: SendAll | None = None
    _failed: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, records: Sequence[ProducerRecord]) -> None:
        """Send records and wait until they are confirmed."""
        if self._send_all is None:
            raise KafkaUnreachableError("there is no connection to Kafka")
        try:
            await self._send_all(records)
        except KafkaError as error:
            self._send_all = None  # after some errors a producer cannot send any more
            self._failed.set()
            raise KafkaUnreachableError(f"Kafka has not taken the record: {error}") from error

    async def stay_connected(
        self, settings: Settings, wait_seconds: float, retry_seconds: float, report: Callable[[Exception], None]
    ) -> None:
        """Keep a producer until this is cancelled, and report why there is none for a time."""
        while True:
            self._failed.clear()
            try:
                async with sender(settings, wait_seconds) as self._send_all:
                    log.info("connected to Kafka")
                    self.is_connected.set()
                    await self._failed.wait()
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                report(error)
            finally:
                self._send_all = None
                self.is_connected.clear()
            await asyncio.sleep(retry_seconds)


@asynccontextmanager
async def kept_sender(
    settings: Settings, wait_seconds: float, retry_seconds: float, report: Callable[[Exception], None]
) -> AsyncIterator[KeptSender]:
    """Yield a sender that connects while the block runs, however long that takes, as `stay_connected` does."""
    kept = KeptSender()
    task = asyncio.create_task(kept.stay_connected(settings, wait_seconds, retry_seconds, report))
    try:
        yield kept
    finally:
        for _ in range(2):  # the second time it waits no longer for records that Kafka does not confirm
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_SECONDS)
