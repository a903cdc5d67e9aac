"""The families that were known before an index was lost, as verdicts name them."""

from collections.abc import Sequence
from contextlib import aclosing

from nearstream.schemas.documents.document import document_key, to_milliseconds
from nearstream.schemas.documents.event_id import family_id
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event
from nearstream.schemas.topics.table import VERDICTS
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.messages import Join
from nearstream.streams.store.registration import Status
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.rebuild import FormerFamilies


async def former_families(deployment: Deployment, wait_seconds: float) -> FormerFamilies:
    """Return the families of documents, as the last verdicts on their topic name them.

    Without verdicts (`NEARSTREAM_VERDICTS=none`) it is empty.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    settings, topic, scheme = deployment.settings, deployment.topic(VERDICTS), deployment.scheme.name
    found: dict[bytes, tuple[bytes, int]] = {}
    for partition, end in (await kafka_offsets.end_offsets(settings, topic, wait_seconds)).items():
        async with aclosing(kafka_records.read_range(settings, topic, partition, 0, end)) as records:
            async for record in records:
                verdict = _verdict(record.value or b"")
                if verdict is not None and verdict.scheme == scheme and verdict.family.ordinal > 1:
                    own = family_id(document_key(verdict.collection, verdict.id), verdict.version, scheme)
                    former = bytes.fromhex(verdict.family.id), to_milliseconds(verdict.family.first_seen)
                    found[bytes.fromhex(own)] = former
    return found


def _verdict(value: bytes) -> DocumentVerdict | None:
    try:
        event = decode_event(value)
    except InvalidMessageError:
        return None
    return event if isinstance(event, DocumentVerdict) else None


def founder_joins(families: FormerFamilies, arrivals: Sequence[Arrival], found: Sequence[Matched]) -> list[Join]:
    """Return what gives families whose first founder was removed their former ids."""
    joins = []
    for arrival, matched in zip(arrivals, found, strict=True):
        registered, signature = matched.registered, arrival.signature
        if signature is None or matched.verdict is None or registered.status not in (Status.NEW, Status.KNOWN):
            continue
        own_id = bytes.fromhex(family_id(arrival.document_key, signature.version, signature.scheme))
        if own_id in families and matched.verdict.family.ordinal == 1:
            number, is_dead = registered.number, registered.is_dead or registered.is_late
            joins.append(Join(number, number, is_dead, True, b"", 0, own_id, signature.observed_at_ms))
    return joins
