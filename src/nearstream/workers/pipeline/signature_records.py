"""Records of `signatures`: signatures, removals and labels."""

import re
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import ID_PATTERN, NAME_PATTERN, YEAR_9999_MS
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import Label, label_key, labelled_document
from nearstream.schemas.topics.codec import InvalidMessageError, decode_json, decode_signature, encode_json, origin_of
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.labels import Labelling
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.store import Position
from nearstream.workers.kafka.partitioning import partition_of


def label_record(topic: str, document_key: str, label: Label | None, given_ms: int) -> ProducerRecord:
    """Return the record of `signatures` that gives a document a label, or takes it back.

    Its key is another one than that of the document, so that compaction keeps both.
    """
    value = None if label is None else encode_json(label)
    return ProducerRecord(topic, label_key(document_key).encode(), value, [], given_ms)


def arrival_of(record: ConsumerRecord, scheme: Scheme, limits: DocumentLimits) -> Arrival:
    """Return what a record of `signatures` brings to the matcher."""
    position = Position(record.partition, record.offset)
    labelled = labelled_document(_key(record))
    if labelled is not None:
        return Arrival(labelled, None, position, labelling=_labelling(record))
    key, signature = _read_signature(record, scheme, limits)
    if signature is None:
        removal = origin_of(record.headers)
        sent = None if removal is None else replace_fields(removal, sent_at_ms=record.timestamp_ms)
        return Arrival(key, None, position, record.timestamp_ms, sent)
    return Arrival(key, signature, position)


def at_home(arrival: Arrival, partitions: int) -> Arrival:
    """Return an arrival with a position in the partition of its document.

    A producer with another partitioner may send a label to another partition. Such a label comes before all records in
    the partition of its document, so the next label of this document counts.
    """
    if arrival.labelling is None or arrival.position is None:
        return arrival
    home = partition_of(arrival.document_key.encode("utf-8", "surrogatepass"), partitions)
    return arrival if arrival.position.partition == home else replace(arrival, position=Position(home, -1))


def _labelling(record: ConsumerRecord) -> Labelling:
    _check_timestamp(record, "a label")
    if record.value is None:
        return Labelling(None, 0, record.timestamp_ms)
    label = decode_json(Label, record.value)
    return Labelling(label.label, label.weight, record.timestamp_ms)


def _check_timestamp(record: ConsumerRecord, what: str) -> None:
    if not 0 <= record.timestamp_ms <= YEAR_9999_MS:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, f"{what} with a time from 1970 to 9999 expected")


def _read_signature(record: ConsumerRecord, scheme: Scheme, limits: DocumentLimits) -> tuple[str, Signature | None]:
    """Return the document key and the signature of a record of `signatures`."""
    key = _key(record)
    if record.value is None:
        _check_timestamp(record, "a removal")
        return key, None
    signature = decode_signature(record.value)
    scheme.check(signature)
    if signature.document_key != key:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "the document key as record key expected")
    if not signature.n_bytes:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a signature of a text that is not empty expected")
    _check_time(signature, record, limits)
    return key, signature


def _key(record: ConsumerRecord) -> str:
    """Return a record key, whose collection and id are bounded."""
    try:
        key = (record.key or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a record key in UTF-8 expected") from None
    collection, _, document_id = (labelled_document(key) or key).partition("/")
    if key and not (re.search(NAME_PATTERN, collection) and re.search(ID_PATTERN, document_id)):
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a record key <collection>/<id> expected")
    return key


def _check_time(signature: Signature, record: ConsumerRecord, limits: DocumentLimits) -> None:
    latest_ms = record.timestamp_ms + 1000 * limits.clock_skew_seconds
    if not 0 <= signature.observed_at_ms <= latest_ms:
        raise InvalidMessageError(
            Reason.INVALID_SIGNATURE,
            f"observed_at from 1970 to {limits.clock_skew_seconds} s after the record's time expected",
        )
