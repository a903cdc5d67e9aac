"""Say of documents that they are spam, or ham, by their ids or their files."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import Label
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.sign import signature_record
from nearstream.workers.pipeline.signature_records import label_record
from nearstream.workers.redis.index.documents import current_state
from nearstream.workers.redis.index.index import RedisIndex, index_to_read
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.reading.labelled import labels_of
from nearstream.workers.redis.reading.members import spellings, stored_family


class Target(NamedTuple):
    """A document to be labelled.

    Attributes:
        collection: Its collection.
        document_id: Its id.
        signature: Its signature, with which one is labelled that the index does not have. None: only its id is known.
    """

    collection: str
    document_id: str
    signature: Signature | None = None


class Labelled(NamedTuple):
    """What became of a document to be labelled.

    Attributes:
        document_id: Its id.
        is_sent: Whether its label was sent.
        is_new: Its signature was sent before, because the index did not have it.
        known: Of one that is unknown: another way to write its id, which the index knows. None: it knows none.
    """

    document_id: str
    is_sent: bool
    is_new: bool = False
    known: str | None = None


async def label_documents(
    deployment: Deployment, targets: Sequence[Target], label: Label, wait_seconds: float
) -> list[Labelled]:
    """Send the label of each document that the index has, or whose signature is given.

    Raises:
        IndexUnavailableError: Redis did not answer within `wait_seconds`. Nothing was sent.
        IndexLostError: There is no index. Nothing was sent.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The index or the topic does not fit the settings.
    """
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        looked_up = [await _look_up(index, target) for target in targets]
    given_ms, records = time.time_ns() // 1_000_000, []
    for target, labelled in zip(targets, looked_up, strict=True):
        if labelled.is_new and target.signature is not None:
            records.append(signature_record(topic, target.signature))
        if labelled.is_sent:
            records.append(label_record(topic, document_key(target.collection, target.document_id), label, given_ms))
    if records:
        await kafka_offsets.partitions(settings, [topic], wait_seconds)
        async with kafka_records.sender(settings, wait_seconds) as send_all:
            await send_all(records)
    return looked_up


async def decide_label(
    deployment: Deployment, collection: str, family: str, wait_seconds: float, *, confirms: bool
) -> list[str] | None:
    """Confirm the suspended labels of a family, or take them back.

    Returns the ids of the labelled documents. None: no label of this family is suspended or confirmed.

    Raises:
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
        IndexLostError: There is no index.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The index or the topic does not fit the settings.
    """
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        guards = LabelGuards(index.client, settings.namespace)
        guard = await guards.read(collection, family)
        if guard is None:
            return None
        stored = await stored_family(index, document_key(collection, guard.document))
        names = [name for name, _ in await labels_of(index, stored)] if stored else []
        if confirms:
            await guards.confirm(collection, family, guard)
            return names
        given_ms = time.time_ns() // 1_000_000
        await kafka_offsets.partitions(settings, [topic], wait_seconds)
        async with kafka_records.sender(settings, wait_seconds) as send_all:
            await send_all([label_record(topic, document_key(collection, name), None, given_ms) for name in names])
        await guards.forget(collection, family)
        return names


async def _look_up(index: RedisIndex, target: Target) -> Labelled:
    known = [
        each
        for each in spellings(target.document_id)
        if await current_state(index, document_key(target.collection, each))
    ]
    if target.document_id in known:
        return Labelled(target.document_id, is_sent=True)
    if target.signature is not None:
        return Labelled(target.document_id, is_sent=True, is_new=True)
    return Labelled(target.document_id, is_sent=False, known=next(iter(known), None))
