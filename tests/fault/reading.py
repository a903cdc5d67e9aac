"""What stood on the topics after a run, by what it is about."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from schemas.codec import decode_signature
from schemas.dead_letter import Stage
from schemas.record import Record, header
from schemas.topics import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES
from tests.fault.oracle import Place
from tests.integration.deployment import Deployment

Written = tuple[str, int, int]
"""Topic (without prefix), partition and offset of a record."""

_About = TypeVar("_About", bound=Hashable)


@dataclass(frozen=True)
class Read:
    """All records, in the order of their partitions.

    Attributes:
        prefix: What every topic's name begins with here.
        documents: The input.
        signed: Signatures by the place of their document.
        removals: Keys and times of the removals on `signatures`.
        refused: Dead letters of documents by the place of their document.
        told: Events by their id.
    """

    prefix: str
    documents: list[Record]
    signed: list[tuple[Place, Record]]
    removals: set[tuple[bytes | None, int]]
    refused: list[tuple[Place, Record]]
    told: list[tuple[str, Record]]

    def first(self, told: Iterable[tuple[_About, Record]]) -> dict[_About, Written]:
        """Where each thing was told first; all records about one thing are in one partition."""
        found: dict[_About, Written] = {}
        for about, record in told:
            found.setdefault(about, (record.topic.removeprefix(self.prefix), record.partition, record.offset))
        return found


async def read(deployment: Deployment) -> Read:
    """Everything on the deployment's topics."""
    signatures = await deployment.read(SIGNATURES.name)
    letters = await deployment.read(DEAD_LETTERS.name)
    events = [record for topic in EVENT_TOPICS for record in await deployment.read(topic.name)]
    return Read(
        deployment.settings.topic_prefix,
        await deployment.read(DOCUMENTS.name),
        origins(signatures),
        {(record.key, record.timestamp_ms) for record in signatures if record.value is None},
        [(place, record) for record in letters if (place := _refused_place(record)) is not None],
        [(text(record, "ce_id"), record) for record in events],
    )


def origins(signatures: Iterable[Record]) -> list[tuple[Place, Record]]:
    """Signatures by the place of their document."""
    return [(place, record) for record in signatures if (place := _origin(record)) is not None]


def text(record: Record, name: str) -> str:
    """A header of ours; empty if it is not there."""
    return (header(record.headers, name) or b"").decode()


def _origin(signature: Record) -> Place | None:
    origin = decode_signature(signature.value).origin if signature.value else None
    return (origin.partition, origin.offset) if origin else None


def _refused_place(letter: Record) -> Place | None:
    if text(letter, "nearstream-dead-stage") == Stage.MATCH:
        return None
    return int(text(letter, "nearstream-dead-partition")), int(text(letter, "nearstream-dead-offset"))
