"""Find out what became of one document.

The answer comes from the index and the `signatures` topic.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nearstream.schemas.documents.document import MAIL_SOURCE
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.streams.matching.reach import Reach, reach
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.client import TopicPartition, consumer
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.operations.terminal import Progress, escaped
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex, index_to_read
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.reading.inspect import StateFacts, inspect_document
from nearstream.workers.redis.reading.members import labelled_family

# A search goes backwards in blocks of this many offsets. Each block is twice as long as the one before.
FIRST_BLOCK = 1_000
LONGEST_BLOCK = 64_000
# A shorter search shows no progress.
NOTABLE_SEARCH = 20_000


# Whether a document can be found, or why not.
DocumentStatus = Literal["live", "expired", "removed", "waiting", "unknown"]


@dataclass(frozen=True)
class Inspected:
    """What is known of a document."""

    document_key: str  # `<collection>/<id>`
    status: DocumentStatus  # its status
    reason: str  # What the status follows from. Empty for a live document whose keys are known.
    scheme: str  # name of the scheme of the index
    states: tuple[StateFacts, ...] = ()  # those that the index holds, the newest first
    reached: Reach | None = None  # What labels of its family say of a mail. None: there are no labels.
    # The whole signature of its current state, as `signatures` has it. None: its record is gone.
    signature: Signature | None = None


async def inspect(deployment: Deployment, document_key: str, wait_seconds: float, *, quiet: bool) -> Inspected:
    """Find out what became of a document."""
    settings, scheme = deployment.settings, deployment.scheme
    address = replace(deployment.index_address(), beside=True)
    async with index_to_read(address, wait_seconds) as index:
        states = await inspect_document(index, document_key)
        record = await _record(settings, document_key, states, wait_seconds, quiet=quiet)
        if not states:
            status, reason = explain_absence(record, await index.checkpoints(), scheme, settings.retention_seconds)
            return Inspected(document_key, status, reason, scheme.name)
        status = "expired" if states[0].expired else "live"
        reached = await _reached(index, settings, states[0])
        signature = _readable(record, scheme)
        if signature is None or signature.digest != states[0].signature.digest:
            reason = "its keys are unknown: the signatures topic no longer holds the signature of its current state"
            return Inspected(document_key, status, reason, scheme.name, states, reached)
        return Inspected(document_key, status, "", scheme.name, states, reached, signature)


async def _reached(index: RedisIndex, settings: Settings, state: StateFacts) -> Reach | None:
    """Return what labels of the family of a mail say of it."""
    family = state.family.facts if state.family else None
    if family is None or state.signature.source != MAIL_SOURCE:
        return None
    guards, delay_ms = LabelGuards(index.connection, settings.namespace), 1000 * settings.label_delay_seconds
    details = await labelled_family(index, guards, state.signature.collection, family, delay_ms)
    return reach(state.signature, details) if details.labelled and details.label_state != "suspended" else None


async def _record(
    settings: Settings, document_key: str, states: Sequence[StateFacts], wait_seconds: float, *, quiet: bool
) -> ConsumerRecord | None:
    topic, key = settings.topic_prefix + SIGNATURES.name, document_key.encode("utf-8", "surrogatepass")
    if states:
        record = await record_at(settings, topic, *states[0].position, wait_seconds)
        if record is not None and record.key == key:
            return record
    return await newest_of_key(settings, topic, key, wait_seconds, quiet=quiet)


def _readable(record: ConsumerRecord | None, scheme: Scheme) -> Signature | None:
    if record is None or record.value is None:
        return None
    try:
        signature = decode_signature(record.value)
        scheme.check(signature)
    except InvalidMessageError:
        return None
    return signature if signature.n_bytes else None


def explain_absence(
    record: ConsumerRecord | None, checkpoints: dict[int, int], scheme: Scheme, retention_seconds: int
) -> tuple[DocumentStatus, str]:
    """Explain by its newest record on `signatures` why the index does not hold a document."""
    if record is None:
        return "unknown", "neither the index nor its partition of the signatures topic holds it"
    position = f"partition {record.partition} offset {record.offset} of the signatures topic"
    if record.value is not None and _readable(record, scheme) is None:
        return "unknown", f"{position} holds {_unreadable(record.value, scheme)}"
    if record.offset > checkpoints.get(record.partition, -1):
        return "waiting", f"{position} is not matched yet"
    if record.value is None:
        return "removed", f"by {position}"
    if retention_seconds and record.timestamp_ms + 1000 * retention_seconds < time.time_ns() // 1_000_000:
        return "expired", f"{position} is older than the retention"
    return (
        "unknown",
        f"{position} was matched, but the index does not hold it: it may have been rebuilt since",
    )


def _unreadable(value: bytes, scheme: Scheme) -> str:
    try:
        signature = decode_signature(value)
    except InvalidMessageError as error:
        return f"no signature: {error}"
    if signature.scheme != scheme.name:
        return f"a signature of another scheme: {escaped(signature.scheme)}, the index has {scheme.name}"
    return "the signature of an empty text" if not signature.n_bytes else "a signature that was refused"


async def record_at(
    settings: Settings, topic: str, partition: int, offset: int, wait_seconds: float
) -> ConsumerRecord | None:
    """Return the record at this offset, if the topic holds it."""
    async with consumer(settings, wait_seconds, fetch_wait_ms=1) as client:
        return await kafka_records.record_at(client, TopicPartition(topic, partition), offset)


async def newest_of_key(
    settings: Settings, topic: str, key: bytes, wait_seconds: float, *, quiet: bool
) -> ConsumerRecord | None:
    """Return the newest record with this key, or None.

    Only the partition that producers choose for the key is searched, from its end: a new record is found at once, an
    unknown key takes the whole partition.
    """
    tps = await partitions(settings, [topic], wait_seconds)
    tp = tps[partition_of(key, len(tps))]
    async with consumer(settings, wait_seconds, fetch_wait_ms=1) as client:
        first, end = (await client.beginning_offsets([tp]))[tp], (await client.end_offsets([tp]))[tp]
        progress = Progress("searched", end - first, quiet or end - first < NOTABLE_SEARCH)
        found, block = None, FIRST_BLOCK
        while found is None and end > first:
            start = max(first, end - block)
            async for record in kafka_records.between(client, tp, start, end):
                found = record if record.key == key else found
            progress.step(end - start)
            end, block = start, min(2 * block, LONGEST_BLOCK)
        progress.end()
        return found
