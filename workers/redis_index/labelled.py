"""The labelled documents of a family, read from the index as it stores them."""

from typing import NamedTuple

from nearstream.streams.alerting.floods import LabelledGrowth, rate_before
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import ask
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.families import slots_of
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import LABELLED, KeyKind, LabelCode
from nearstream.workers.redis_index.members import StoredFamily, count_addresses, living, stored_family
from nearstream.workers.redis_index.sharding import shard_of
from nearstream.workers.redis_index.values import integer_of, number_bytes


class LabelledState(NamedTuple):
    """A labelled document of a family.

    Attributes:
        number: Number of its state within the shard.
        given_ms: When it got its label.
    """

    number: int
    given_ms: int


async def labelled_states(index: RedisIndex, family: StoredFamily) -> list[LabelledState]:
    """Return the states of a family whose documents got a label.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    shard = family.shard
    key = shard.tag + KeyKind.LABELLED + number_bytes(family.facts.number)
    with errors_mapped():
        found = await ask(index.client, "HGETALL", key)
    states = [LABELLED.unpack(packed) for packed in found.values()]
    return [
        LabelledState(integer_of(number), integer_of(given))
        for number, kind, _, given in states
        if kind != LabelCode.LABEL_NONE
    ]


async def labelled_documents(index: RedisIndex, family: StoredFamily) -> list[str]:
    """Return the ids of the labelled documents of a family that are live.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    records = [await living(index, family, state.number) for state in await labelled_states(index, family)]
    return [record.id for record in records if record is not None]


class LabelledFamilies:
    """Reads how fast labelled families grow, from an index that need not be there yet."""

    def __init__(self, address: IndexAddress) -> None:
        """Take the address of the index."""
        self._address = address
        self._index: RedisIndex | None = None

    async def growth(self, document_key: str) -> LabelledGrowth | None:
        """Return the growth of the family of a document, None if nothing in it is labelled.

        Raises:
            IndexUnavailableError: The server does not answer.
            SettingsError: The server refuses the user, or the index has another scheme or key.
        """
        try:
            if self._index is None:
                self._index = await RedisIndex.open_to_read(self._address)
            return await _growth(self._index, document_key)
        except IndexLostError:
            return None  # without an index no label counts

    async def close(self) -> None:
        """Close the connections."""
        if self._index is not None:
            await self._index.close()


async def _growth(index: RedisIndex, document_key: str) -> LabelledGrowth | None:
    shard = index.shards[shard_of(document_key, len(index.shards))]
    with errors_mapped():
        if not await ask(index.client, "HGET", shard.key, "labels"):  # as for most crawlers, who need no further calls
            return None
    family = await stored_family(index, document_key)
    if family is None or not family.packed:
        return None
    states = await labelled_states(index, family)
    if not states:
        return None
    before = rate_before(slots_of(family.packed), min(state.given_ms for state in states))
    return LabelledGrowth(before, family.facts.joined[0], *await count_addresses(index, family))
