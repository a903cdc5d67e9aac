"""Read what persons have said about alerts from its topic."""

import asyncio
import logging
import threading
from collections.abc import Callable

from nearstream.schemas.alerts.silence import Silence
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import SILENCES
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.whole_topic import read_topic

_RETRY_SECONDS = 2.0

Take = Callable[[bytes, Silence | None], None]
"""Is given the record key of what was said, and None if it was taken back."""

log = logging.getLogger(__name__)


async def read_silences(settings: Settings, take: Take, wait_seconds: float, *, until_end: bool) -> None:
    """Hand over what persons have said about alerts, as `read_topic` does."""

    def said(record: ConsumerRecord) -> None:
        take(record.key or b"", decode_json(Silence, record.value) if record.value else None)

    await read_topic(settings, SILENCES.name, said, wait_seconds, until_end=until_end)


def follow_in_thread(settings: Settings, take: Take, wait_seconds: float) -> None:
    """Hand over what is said, in a thread, until the process ends."""

    async def run() -> None:
        while True:
            try:
                await read_silences(settings, take, wait_seconds, until_end=False)
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                log.info("no news of silences: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    threading.Thread(target=asyncio.run, args=(run(),), name="silences", daemon=True).start()
