"""What became of one document, from the index and the signatures topic; nothing is altered."""

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from schemas.codec import InvalidMessageError, decode_signature
from schemas.record import Record
from schemas.signature import Signature
from schemas.topics import SIGNATURES
from streams.scheme import Scheme
from workers import assembly
from workers.kafka_search import newest_of_key, record_at
from workers.redis_calls import until_answered
from workers.redis_index import RedisIndex
from workers.redis_inspect import DocumentFacts, inspect_document
from workers.settings import Settings
from workers.show import escaped


class Standing(StrEnum):
    """Whether a document can be found."""

    LIVE = "live"
    EXPIRED = "expired"
    REMOVED = "removed"
    WAITING = "waiting"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Inspected:
    """What is known of a document.

    Attributes:
        document_key: `<collection>/<id>`.
        standing: Of the document; former states are told by `facts`.
        why: What the standing was read from; empty of a live document whose buckets are known.
        scheme: Name of the scheme that it was looked up under.
        facts: What the index holds; None: nothing.
    """

    document_key: str
    standing: Standing
    why: str
    scheme: str
    facts: DocumentFacts | None


async def inspect(settings: Settings, document_key: str, wait_seconds: float, *, quiet: bool) -> Inspected:
    """What became of a document.

    Raises:
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
        IndexLostError: There is no index.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: Index or topic do not fit the settings.
    """
    key = assembly.hash_key(settings)
    scheme = assembly.scheme(settings, key)
    address = replace(assembly.index_address(settings, key), beside=True)
    index = await until_answered(partial(RedisIndex.open_to_read, address), wait_seconds)
    try:
        facts = await inspect_document(index, document_key)
        record = await _record(settings, document_key, facts, wait_seconds, quiet=quiet)
        if facts is None:
            standing, why = absent(record, await index.checkpoints(), scheme, settings.retention_seconds)
            return Inspected(document_key, standing, why, scheme.name, None)
        standing = Standing.EXPIRED if facts.states[0].expired else Standing.LIVE
        signature = _readable(record, scheme)
        if signature is None or signature.digest != facts.states[0].signature.digest:
            why = "its buckets are not known: the signatures topic no longer holds the signature of its current state"
            return Inspected(document_key, standing, why, scheme.name, facts)
        facts = await inspect_document(index, document_key, scheme.keys(signature, key)) or facts
        return Inspected(document_key, standing, "", scheme.name, facts)
    finally:
        await index.close()


async def _record(
    settings: Settings, document_key: str, facts: DocumentFacts | None, wait_seconds: float, *, quiet: bool
) -> Record | None:
    """The record that the current state was made from; if it is not known any more, the newest one of the document."""
    topic, name = settings.topic_prefix + SIGNATURES.name, document_key.encode("utf-8", "surrogatepass")
    position = facts and facts.states[0].position
    if position:
        record = await record_at(settings, topic, *position, wait_seconds)
        if record is not None and record.key == name:
            return record
    return await newest_of_key(settings, topic, name, wait_seconds, quiet=quiet)


def _readable(record: Record | None, scheme: Scheme) -> Signature | None:
    """The signature of a record, if the scheme has keys for it."""
    if record is None or record.value is None:
        return None
    try:
        signature = decode_signature(record.value)
        scheme.check(signature)
    except InvalidMessageError:
        return None
    return signature if signature.n_bytes else None


def absent(
    record: Record | None, checkpoints: dict[int, int], scheme: Scheme, retention_seconds: int
) -> tuple[Standing, str]:
    """Why the index does not hold a document.

    Args:
        record: The document's newest one on `signatures`; None: there is none.
        checkpoints: Last offsets that the index has admitted, by partition.
        scheme: That of the index.
        retention_seconds: How long a document is found; 0: for ever.
    """
    if record is None:
        return Standing.UNKNOWN, "neither the index nor its partition of the signatures topic holds it"
    place = f"partition {record.partition} offset {record.offset} of the signatures topic"
    if record.value is not None and _readable(record, scheme) is None:
        return Standing.UNKNOWN, f"{place} holds {_unreadable(record.value, scheme)}"
    if record.offset > checkpoints.get(record.partition, -1):
        return Standing.WAITING, f"{place} has yet to be matched"
    if record.value is None:
        return Standing.REMOVED, f"by {place}"
    if retention_seconds and record.timestamp_ms + 1000 * retention_seconds < time.time_ns() // 1_000_000:
        return Standing.EXPIRED, f"{place} is older than the retention"
    return Standing.UNKNOWN, f"{place} was matched, but the index does not hold it: it may have been filled anew since"


def _unreadable(value: bytes, scheme: Scheme) -> str:
    try:
        signature = decode_signature(value)
    except InvalidMessageError as error:
        return f"no signature: {error}"
    if signature.scheme != scheme.name:
        return f"a signature of another scheme: {escaped(signature.scheme)}, the index has {scheme.name}"
    return "the signature of an empty text" if not signature.n_bytes else "a signature that was refused"
