"""Remove documents by their ids."""

from collections.abc import Sequence
from dataclasses import dataclass

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.inspection import DocumentStatus
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.document_records import removal_of
from nearstream.workers.redis.index.index import RedisIndex, index_to_read
from nearstream.workers.redis.reading.inspect import inspect_document


@dataclass(frozen=True)
class Removed:
    """A document whose removal was sent.

    Attributes:
        document_key: `<collection>/<id>`.
        status: Its status when the removal was sent: live, expired, or unknown to the index.
    """

    document_key: str
    status: DocumentStatus


async def remove_documents(
    deployment: Deployment, ids: Sequence[str], collection: str, wait_seconds: float
) -> list[Removed]:
    """Send the removal of each document, and return what the index held of it before.

    Raises:
        IndexUnavailableError: Redis did not answer within `wait_seconds`. Nothing was sent.
        IndexLostError: There is no index. Nothing was sent.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The index or the topic does not fit the settings.
    """
    settings, topic = deployment.settings, deployment.topic(DOCUMENTS)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        removed = [Removed(key, await _status(index, key)) for key in (document_key(collection, name) for name in ids)]
    await kafka_offsets.partitions(settings, [topic], wait_seconds)
    async with kafka_records.sender(settings, wait_seconds) as send_all:
        await send_all([removal_of(topic, name, collection) for name in ids])
    return removed


async def _status(index: RedisIndex, key: str) -> DocumentStatus:
    states = await inspect_document(index, key)
    if not states:
        return DocumentStatus.UNKNOWN
    return DocumentStatus.EXPIRED if states[0].expired else DocumentStatus.LIVE
