"""The labelled documents of a family."""

from asyncio import Lock

from nearstream.streams.alerting.floods import LabelledGrowth, rate_before
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.labels import Labelling, unpack_label
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.members import living, stored_family
from nearstream.workers.redis.server.address import IndexAddress


async def labels_of(index: RedisIndex, family: FamilyFacts) -> list[tuple[str, Labelling]]:
    """Return the ids and labels of the live labelled documents of a family, in the order in which they were given."""
    growth = family.growth
    given = {number: unpack_label(packed) for _, number, packed in (growth.marks if growth else ())}
    found = [(record.id, given[number]) for number, record in (await living(index, [*given])).items()]
    return sorted(found, key=lambda each: (each[1].given_ms, each[0]))


class LabelledFamilies:
    """Reads how fast labelled families grow, from an index that need not be there yet."""

    def __init__(self, address: IndexAddress) -> None:
        """Take the address of the index."""
        self._address = address
        self._index: RedisIndex | None = None
        self._opening = Lock()  # several families are read at once, and all of them from one connection

    async def growth(self, document_key: str) -> LabelledGrowth | None:
        """Return the growth of the family of a document, None if nothing in it is labelled."""
        try:
            async with self._opening:
                self._index = self._index or await RedisIndex.open_to_read(self._address)
            return await _growth(self._index, document_key)
        except IndexLostError:
            return None  # without an index no label counts

    async def close(self) -> None:
        """Close the connections."""
        if self._index is not None:
            await self._index.close()


async def _growth(index: RedisIndex, document_key: str) -> LabelledGrowth | None:
    family = await stored_family(index, document_key)
    growth = family.growth if family else None
    if growth is None or not growth.marks:
        return None
    before = rate_before(growth.joins, min(unpack_label(packed).given_ms for _, _, packed in growth.marks))
    return LabelledGrowth(before, growth.joined[0], growth.senders, growth.recipients)
