"""Documents, labels and removals that are brought into a store as a worker does."""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.labels.label import LabelKind, label_key
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.labels import Labelling
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.store import Position, Store
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.pipeline.signature_records import at_home
from tests.support.made_up import KEY, STANDARD, TEXT, sign


class Filing:
    """Brings records into a store, with the positions that they have in Kafka."""

    def __init__(self, store: Store) -> None:
        """Begin at the first offsets."""
        self.store = store
        self._matcher = Matcher(store, STANDARD, KEY)
        self._offsets = Counter[int]()

    async def put(self, name: str, text: Sequence[str] = TEXT, **fields: object) -> Matched:
        """Match a document, by default one that is observed now."""
        given = {"observed_at": datetime.now(UTC), **fields}
        return await self.match(sign(list(text), name, **given))

    async def match(self, signature: Signature) -> Matched:
        """Match a signature."""
        return await self._bring(self.arrival(signature))

    def arrival(self, signature: Signature) -> Arrival:
        """Return a signature as the next record of its partition."""
        return Arrival(signature.document_key, signature, self._position(signature.document_key))

    def ends(self) -> list[Position]:
        """Return the last position of each partition."""
        return [Position(*each) for each in self._offsets.items()]

    async def remove(self, name: str) -> Matched:
        """Remove a document of the default collection."""
        key, now_ms = f"default/{name}", to_milliseconds(datetime.now(UTC))
        position = self._position(key)
        removal = Origin("documents", *position)
        return await self._bring(Arrival(key, None, position, removed_at_ms=now_ms, removal=removal))

    async def label(self, name: str, label: LabelKind | None = "spam", weight: int = 1, age_seconds: float = 1) -> None:
        """Label a document of the default collection, or take its label back."""
        key, given_ms = f"default/{name}", time.time_ns() // 1_000_000 - int(1_000 * age_seconds)
        labelling = Labelling(label, weight, given_ms)
        await self._bring(Arrival(key, None, self._position(label_key(key)), labelling=labelling))

    async def label_of_former_release(self, name: str, label: LabelKind) -> None:
        """Label a document with a record in a partition of its own."""
        key, partitions = f"default/{name}", self.store.shape.partitions
        other = Position((partition_of(key.encode(), partitions) + 1) % partitions, 1_000)
        labelling = Labelling(label, 1, time.time_ns() // 1_000_000 - 1_000)
        await self._bring(at_home(Arrival(key, None, other, labelling=labelling), partitions))

    async def _bring(self, arrival: Arrival) -> Matched:
        (matched,) = await self._matcher.match_all([arrival])
        return matched

    def _position(self, record_key: str) -> Position:
        partition = partition_of(record_key.encode(), self.store.shape.partitions)
        self._offsets[partition] += 1
        return Position(partition, self._offsets[partition])
