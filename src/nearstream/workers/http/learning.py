"""Hand documents to the workers: to be added to the index, removed from it, or labelled.

Records of Kafka are the only way into the index, so that order, redelivery and a rebuild hold for these too. Within
bounds they wait for Kafka to confirm them.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from nearstream.schemas.checks.check import LearnReason
from nearstream.schemas.documents.record import INPUT, ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import Label
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import Removal, parse_record, record_key, removal_of
from nearstream.streams.signing.signer import Unsigned
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.config.tokens import ApiToken
from nearstream.workers.files.mail import mail_record
from nearstream.workers.http.requests import require, unconfirmed
from nearstream.workers.http.work import RareLog, in_thread
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.records import KeptSender, kept_sender
from nearstream.workers.monitoring.metrics import API_RECORDS
from nearstream.workers.pipeline.sign import signature_record
from nearstream.workers.pipeline.signature_records import label_record

UNCONFIRMED = 64  # records
UNCONFIRMED_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 30.0
_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)
_LEARN_SECONDS = 10.0
_CONFIRM_SECONDS = 5.0


class OutboxFullError(Exception):
    """As many records as allowed wait for Kafka to confirm them."""


class Outbox:
    """Sends records to Kafka, which confirms each of them with all replicas in sync."""

    def __init__(self, sending: KeptSender) -> None:
        self._sending = sending
        self._records = 0
        self._bytes = 0

    async def send(self, record: ProducerRecord, seconds: float) -> None:
        """Send a record and wait until Kafka has confirmed it. One that is not confirmed in time may still arrive.

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


class Sends(Protocol):
    """Sends records, and waits until they are confirmed."""

    async def send(self, record: ProducerRecord, seconds: float) -> None:
        """Send a record within a time."""


@dataclass(frozen=True)
class Learner:
    """Sends documents, removals and labels to the workers."""

    outbox: Sends  # sends the records
    topic: str  # name of the topic `documents`
    signatures: str  # name of the topic `signatures`
    limits: DocumentLimits  # limits of a document
    cpu: Executor  # a thread for reading a document once more
    rare_log: RareLog = field(default_factory=lambda: RareLog(log))  # logs why Kafka refuses records

    async def learn(self, reading: asyncio.Future[ConsumerRecord | Unsigned], access: ApiToken) -> LearnReason:
        """Send a document, or one of a whole mail, and return why Kafka has not confirmed it, or an empty text."""
        source = await asyncio.shield(reading)
        record = await in_thread(self.cpu, self._record, source, access)
        return await self._sent(record, _LEARN_SECONDS)

    async def remove(self, name: str, collection: str) -> None:
        """Send the removal of a document, or refuse the request if it is not confirmed."""
        await self._confirmed(removal_of(self.topic, name, collection))

    async def label(self, document_key: str, label: Label | None) -> None:
        """Send the label of a document, or refuse the request if it is not confirmed.

        Without a label (None) the former one is taken back. Labels are records of `signatures` with keys of their own,
        so compaction and a rebuild keep them.
        """
        await self._confirmed(label_record(self.signatures, document_key, label, time.time_ns() // 1_000_000))

    async def learn_signature(self, signature: Signature) -> None:
        """Send the signature of a document, or refuse the request if it is not confirmed."""
        await self._confirmed(signature_record(self.signatures, signature))

    async def _confirmed(self, record: ProducerRecord) -> None:
        reason = await self._sent(record, _CONFIRM_SECONDS)
        if reason:
            raise unconfirmed(reason)

    def _record(self, source: ConsumerRecord | Unsigned, access: ApiToken) -> ProducerRecord:
        if isinstance(source, Unsigned):
            value, headers, _ = mail_record(source.document, source.degraded)
            source = ConsumerRecord(INPUT, 0, 0, time.time_ns() // 1_000_000, None, value, headers)
        # As a worker will read it, so that no document is said to be learned that a worker refuses.
        parsed = parse_record(source, self.limits)
        if isinstance(parsed, Removal):
            require(access, parsed.collection)
        else:
            require(access, parsed.document.collection, parsed.document.against)
        return ProducerRecord(self.topic, record_key(parsed), source.value, source.headers)

    async def _sent(self, record: ProducerRecord, seconds: float) -> LearnReason:
        try:
            await self.outbox.send(record, seconds)
        except KafkaUnreachableError:
            return "kafka_unavailable"
        except OutboxFullError:
            return "outbox_full"
        except IndexUnavailableError:
            return "index_unavailable"
        except SettingsError as error:
            self.rare_log.warning(f"Kafka refuses records: {error}")
            return "kafka_refused"
        return ""
