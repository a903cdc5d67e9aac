"""Read all topics after a run and group the records by their subject."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.schemas.topics.codec import decode_signature
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES
from tests.fault.texts import Place
from tests.support.deployment import LocalDeployment

TOPICS = (DOCUMENTS, SIGNATURES, DEAD_LETTERS, *EVENT_TOPICS)
_VERDICT, _RETRACTION = "nearstream.verdict.v1", "nearstream.retraction.v1"

Written = tuple[str, int, int]
"""Topic (without prefix), partition and offset of a record."""

_About = TypeVar("_About", bound=Hashable)


@dataclass(frozen=True)
class Read:
    """All records, in the order of their partitions."""

    prefix: str  # the prefix of this deployment's topic names
    documents: list[ConsumerRecord]  # the input
    signed: list[tuple[Place, ConsumerRecord]]  # signatures with the partition and offset of their document
    removals: set[tuple[bytes | None, int]]  # keys and times of the removals on `signatures`
    # Dead letters of documents with the partition and offset of their document.
    refused: list[tuple[Place, ConsumerRecord]]
    verdicts: list[tuple[str, ConsumerRecord]]  # verdicts with their ids
    events: list[tuple[str, ConsumerRecord]]  # relation events with their ids
    retractions: list[tuple[str, ConsumerRecord]]  # retractions with their ids

    def first(self, told: Iterable[tuple[_About, ConsumerRecord]]) -> dict[_About, Written]:
        """Return the position of the first record about each subject.

        All records about one subject are in one partition.
        """
        found: dict[_About, Written] = {}
        for about, record in told:
            found.setdefault(about, (record.topic.removeprefix(self.prefix), record.partition, record.offset))
        return found


async def read(deployment: LocalDeployment) -> Read:
    """Read every record on the deployment's topics."""
    return grouped(deployment.settings.topic_prefix, await deployment.read(*(topic.name for topic in TOPICS)))


def grouped(prefix: str, records: Iterable[ConsumerRecord]) -> Read:
    """Group the records of all topics, whose names have this prefix."""
    by_topic: dict[str, list[ConsumerRecord]] = {prefix + topic.name: [] for topic in TOPICS}
    for record in records:
        by_topic[record.topic].append(record)
    documents, signatures, letters, *told = by_topic.values()
    by_kind: dict[str, list[tuple[str, ConsumerRecord]]] = defaultdict(list)
    for record in (record for records in told for record in records):
        kind = text(record, "ce_type")
        by_kind[kind if kind in (_VERDICT, _RETRACTION) else ""].append((text(record, "ce_id"), record))
    return Read(
        prefix,
        documents,
        origins(signatures),
        {(record.key, record.timestamp_ms) for record in signatures if record.value is None},
        [(place, record) for record in letters if (place := _refused_place(record)) is not None],
        by_kind[_VERDICT],
        by_kind[""],
        by_kind[_RETRACTION],
    )


def origins(signatures: Iterable[ConsumerRecord]) -> list[tuple[Place, ConsumerRecord]]:
    """Return the signatures with the partition and offset of their document."""
    return [(place, record) for record in signatures if (place := _origin(record)) is not None]


def text(record: ConsumerRecord, name: str) -> str:
    """Return the value of one of our headers, or an empty string."""
    return (header(record.headers, name) or b"").decode()


def _origin(signature: ConsumerRecord) -> Place | None:
    origin = decode_signature(signature.value).origin if signature.value else None
    return (origin.partition, origin.offset) if origin else None


def _refused_place(letter: ConsumerRecord) -> Place | None:
    if text(letter, "nearstream-dead-stage") == "match":
        return None
    return int(text(letter, "nearstream-dead-partition")), int(text(letter, "nearstream-dead-offset"))
