"""An index while it is rebuilt, with the families known before."""

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from nearstream.schemas.codec import InvalidMessageError, decode_event
from nearstream.schemas.document import document_key, to_milliseconds
from nearstream.schemas.topics import VERDICTS
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Admission, Admitted, IndexState
from nearstream.streams.index.family import HOUR_MS, Settled, Settlement
from nearstream.streams.signing.scheme import Keys
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.index import RedisIndex

# By document key and version: id of the family, and when its founder was observed.
FormerFamilies = Mapping[tuple[str, str], tuple[str, int]]


@dataclass
class RebuiltIndex:
    """An index that takes each batch at the time of its records.

    A family keeps the id that the last verdict about its new founder named. The documents may be compared in another
    order than at first, and its first founder may have been removed.

    Attributes:
        inner: The index.
        families: The families that were known before.
        now_ms: The time of the batch, in milliseconds since 1970.
    """

    inner: RedisIndex
    families: FormerFamilies
    now_ms: int = 0

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        """Add each document and return its earlier neighbours."""
        return await self.inner.admit(batch, self.now_ms)

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        """Add states, given by number, to the buckets that they left out."""
        return await self.inner.enter(batch)

    async def settle(self, batch: Sequence[Settlement]) -> Sequence[Settled]:
        """Record decisions."""
        return await self.inner.settle([self._named(settlement) for settlement in batch], self.now_ms)

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """Return up to `limit` neighbours of some keys."""
        return await self.inner.look_up(keys, limit, self.now_ms)

    async def state(self) -> IndexState:
        """Return whether the index can be trusted now."""
        return await self.inner.state()

    def _named(self, settlement: Settlement) -> Settlement:
        """Return a settlement with the former id of the family that is joined, and without old addresses."""
        joined = (pair.candidate for pair in settlement.pairs if pair.number == settlement.joins)
        founder = next(joined, None)
        signature = settlement.arriving if founder is None else founder.signature
        known = self.families.get((signature.document_key, signature.version))
        if self.now_ms < time.time_ns() // 1_000_000 - HOUR_MS:
            # No answer counts its addresses any more.
            settlement = replace(settlement, arriving=with_fields(settlement.arriving, sender=b"", recipients=b""))
        return settlement if known is None else replace(settlement, family_id=known[0], first_seen_ms=known[1])


async def former_families(deployment: Deployment, wait_seconds: float) -> FormerFamilies:
    """Return the families of documents, as the verdicts on their topic name them.

    Without verdicts (`NEARSTREAM_VERDICTS=none`) it is empty.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    settings, topic = deployment.settings, deployment.topic(VERDICTS)
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for partition, end in (await kafka_offsets.end_offsets(settings, topic, wait_seconds)).items():
        async with aclosing(kafka_records.read_range(settings, topic, partition, 0, end)) as records:
            async for record in records:
                verdict = _verdict(record.value or b"")
                if verdict is not None and verdict.scheme == deployment.scheme.name and verdict.family.ordinal > 1:
                    key = document_key(verdict.collection, verdict.id), verdict.version
                    found[key] = verdict.family.id, to_milliseconds(verdict.family.first_seen)
    return found


def _verdict(value: bytes) -> DocumentVerdict | None:
    try:
        event = decode_event(value)
    except InvalidMessageError:
        return None
    return event if isinstance(event, DocumentVerdict) else None
