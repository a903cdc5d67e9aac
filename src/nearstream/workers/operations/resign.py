"""Sign documents again whose signatures have another scheme.

A signature of another scheme or key is of no use, so a replay does not send it again. Its document may still be on
`documents`, at the position that the signature names. Signed there with the scheme of the deployment, it gives the
signature that a worker with the right settings would have sent, with an equal origin, and so events with equal ids.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.ingest.parse import Removal
from nearstream.workers.kafka.client import AIOKafkaConsumer, TopicPartition
from nearstream.workers.kafka.records import record_at
from nearstream.workers.operations.claim import require_scheme
from nearstream.workers.pipeline.deployment import Deployment

# Imported on use, since most replays sign nothing.
if TYPE_CHECKING:
    from nearstream.streams.signing.signer import Signer, Unsigned
    from nearstream.workers.crawl.page import PageReader

# Why a document is not signed again.
UNREADABLE = "its signature cannot be read"
NO_DOCUMENT = "its signature names no record of documents"
DOCUMENT_GONE = "documents no longer holds its document"
DOCUMENT_REFUSED = "its document cannot be signed"


class NotSentError(Exception):
    """A refused record is not sent again. The message says why."""


@dataclass
class Resigner:
    """Replaces signatures of other schemes.

    Attributes:
        deployment: The deployment whose scheme is wanted.
        client: Reads the documents.
        wait_seconds: How long to wait for Kafka, and for Redis.
    """

    deployment: Deployment
    client: AIOKafkaConsumer
    wait_seconds: float
    _signer: "Signer | None" = field(default=None, init=False)
    _pages: "PageReader | None" = field(default=None, init=False)

    async def resign(self, refused: ConsumerRecord, partitions: Collection[TopicPartition]) -> ConsumerRecord:
        """Return a record of `signatures` with a signature of the deployment's scheme.

        Args:
            refused: A record that was refused because of its scheme.
            partitions: All partitions of `documents`.

        Raises:
            NotSentError: The document is gone or cannot be signed.
            SettingsError: Our settings would not sign as the workers do.
            IndexUnavailableError: Redis did not answer whether they do.
            KafkaUnreachableError: No broker answered.
        """
        try:
            signature = decode_signature(refused.value or b"")
        except InvalidMessageError:
            raise NotSentError(UNREADABLE) from None
        signer = await self._checked_signer()
        if signature.scheme == self.deployment.scheme.name:
            return refused  # It is right, and the worker that refused it had other settings.
        document = await self._document(signature.origin, partitions)
        return refused._replace(value=encode_signature(self._signed(signer, document, signature.document_key)))

    async def _checked_signer(self) -> "Signer":
        if self._signer is None:
            await require_scheme(self.deployment, self.wait_seconds)
            self._signer = self.deployment.signer()
        return self._signer

    async def _document(self, origin: Origin | None, partitions: Collection[TopicPartition]) -> ConsumerRecord:
        if origin is None or origin.topic != self.deployment.topic(DOCUMENTS):
            raise NotSentError(NO_DOCUMENT)
        tp = TopicPartition(origin.topic, origin.partition)
        record = await record_at(self.client, tp, origin.offset) if tp in partitions else None
        if record is None:
            raise NotSentError(DOCUMENT_GONE)
        return record

    def _signed(self, signer: "Signer", document: ConsumerRecord, document_key: str) -> Signature:
        from nearstream.workers.pipeline.sign import parse_document

        try:
            parsed = parse_document(document, self.deployment.document_limits)
            signature = None if isinstance(parsed, Removal) else signer.sign(*self._with_text(parsed))
        except InvalidMessageError:
            raise NotSentError(DOCUMENT_REFUSED) from None
        # If the topic was deleted and created again, another document may have this offset.
        if signature is None or signature.document_key != document_key:
            raise NotSentError(DOCUMENT_GONE)
        return signature

    def _with_text(self, document: "Unsigned") -> "Unsigned":
        self._pages = self._pages or self.deployment.page_reader()
        return self._pages.with_text(document)
