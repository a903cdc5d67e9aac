"""Take mail by LMTP and send it to the `documents` topic."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nearstream.schemas.documents.record import INPUT, ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.ingest.parse import parse_record
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.files.mail import MailReading
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError, retriable
from nearstream.workers.mail.lmtp import lmtp
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.document_records import record_key

CONFIRM_SECONDS = 20.0
_READERS = 4

ACCEPTED = b"250 2.0.0 OK"
LATER = b"451 4.3.0 Kafka has not confirmed the message, try again"
REFUSED = b"554 5.6.0 the message cannot be a document"

log = logging.getLogger(__name__)


@dataclass
class Receiver:
    """Turns messages into documents and sends them.

    Attributes:
        deployment: The topic, the key and the limits of documents.
        collection: Of the documents.
        reading: Reads messages.
        readers: Threads for reading, which waits while HTML becomes text.
        send: Sends records and waits until Kafka has confirmed them.
        ending: Gets the error that no message can be sent after.
        failing: Whether the last message was not confirmed.
    """

    deployment: Deployment
    collection: str
    reading: MailReading
    readers: Executor
    send: kafka_records.SendAll
    ending: "asyncio.Future[None]"
    failing: bool = field(default=False, init=False)

    async def deliver(self, message: bytes) -> bytes:
        """Send a message and return the reply, which accepts it only after Kafka has confirmed it."""
        try:
            record = await asyncio.get_running_loop().run_in_executor(self.readers, self._record, message)
        except (InvalidMessageError, UnreadableFileError) as error:
            log.warning("a message was refused: %s", error)
            return REFUSED
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                await self.send([record])
        except (KafkaUnreachableError, TimeoutError) as error:
            self._report(str(error) or f"no confirmation within {CONFIRM_SECONDS:g} s")
            return LATER
        except (KafkaError, SettingsError) as error:
            self._report(str(error))
            if not retriable(error) and not self.ending.done():
                self.ending.set_exception(error)
            return LATER
        if self.failing:
            log.info("Kafka confirms messages again")
        self.failing = False
        return ACCEPTED

    def _report(self, reason: str) -> None:
        if not self.failing:
            log.warning("mail is put off: %s", reason)
        self.failing = True

    def _record(self, message: bytes) -> ProducerRecord:
        """Return a message as a record of `documents`, under the key that `nearstream produce` gives it."""
        now = datetime.now(UTC)
        mail = self.reading.record(message, now)
        headers = [*mail.headers, ("nearstream-collection", self.collection.encode())]
        record = ConsumerRecord(INPUT, 0, 0, int(now.timestamp() * 1000), None, mail.value, headers)
        key = record_key(parse_record(record, self.deployment.document_limits))
        return ProducerRecord(self.deployment.topic(DOCUMENTS), key, mail.value, headers)


@asynccontextmanager
async def receiving(
    deployment: Deployment, address: str, collection: str, wait_seconds: float
) -> AsyncIterator[tuple[str, "asyncio.Future[None]"]]:
    """Take mail at `host:port` during the block.

    Yields:
        The address with the port that was taken, and a future that gets the error that no message can be sent after.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist, or the address cannot be used.
    """
    settings, ending = deployment.settings, asyncio.get_running_loop().create_future()
    await kafka_offsets.partitions(settings, [deployment.topic(DOCUMENTS)], wait_seconds)
    async with AsyncExitStack() as resources:
        send = await resources.enter_async_context(kafka_records.sender(settings, wait_seconds))
        reading = MailReading(deployment.key, settings.mail_content)
        resources.callback(reading.close)
        readers = resources.enter_context(ThreadPoolExecutor(_READERS, "read"))
        receiver = Receiver(deployment, collection, reading, readers, send, ending)
        yield await resources.enter_async_context(lmtp(address, receiver.deliver)), ending
