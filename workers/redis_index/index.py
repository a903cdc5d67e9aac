"""The shared index on Redis or Valkey. `layout.py` describes what it stores."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Self, TypeVar

from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Admission, Admitted, IndexLostError, IndexState, Position
from nearstream.streams.index.details import FamilyDetails
from nearstream.streams.index.family import Settled, Settlement
from nearstream.streams.signing.scheme import Keys
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import Caller, Client, connect, connect_to_ask
from nearstream.workers.redis_index.layout import IndexLayout
from nearstream.workers.redis_index.opening import open_layouts, read_layouts
from nearstream.workers.redis_index.shard import Neighbours, Shard
from nearstream.workers.redis_index.sharding import (
    answer_of_shard,
    candidate_of_shard,
    number_of_shard,
    route,
    settled_of_shard,
    settlement_in_shard,
    shard_and_number,
)
from nearstream.workers.redis_index.shared_connection import SharedConnection

_WORST_FIRST = (
    IndexState.LOST,
    IndexState.REBUILDING,
    IndexState.BEHIND,
    IndexState.READ_ONLY,
    IndexState.READY,
)

_Reply = TypeVar("_Reply")
_Find = Callable[[Client, IndexAddress], Awaitable[list[IndexLayout]]]

_open_existing = partial(open_layouts, may_create=False)


class RedisIndex:
    """An index that any number of workers share."""

    def __init__(
        self,
        client: Client,
        address: IndexAddress,
        layouts: Sequence[IndexLayout],
        asking: SharedConnection | None = None,
    ) -> None:
        """Take an open client and the layouts of the shards, as `open_layouts` returns them.

        `asking` is a connection for the calls that only read. Without one, the client asks too.
        """
        self.client = client
        self.address = address
        self._asking = asking
        self.shards = tuple(
            Shard(client, address, address.key_of(index), layout, asking) for index, layout in enumerate(layouts)
        )

    @classmethod
    async def open(cls, address: IndexAddress, *, may_create: bool) -> Self:
        """Open the index at this address.

        Args:
            address: Its address.
            may_create: Nothing was ever admitted, so a missing index is new rather than lost.

        Raises:
            SettingsError: The server, our rights, the scheme or the key do not fit.
            IndexLostError: There is no index, although there was one.
            IndexUnavailableError: The server does not answer.
        """
        return await cls._opened(address, partial(open_layouts, may_create=may_create))

    @classmethod
    async def open_to_read(cls, address: IndexAddress) -> Self:
        """Open the index read-only, which works on a server that refuses writes.

        Raises:
            SettingsError: The scheme or the key do not fit, or another release made the index.
            IndexLostError: There is no index.
            IndexUnavailableError: The server does not answer.
        """
        return await cls._opened(address, read_layouts, connect_to_ask(address.connection))

    @classmethod
    async def _opened(cls, address: IndexAddress, find: _Find, asking: SharedConnection | None = None) -> Self:
        client = connect(address.connection)
        try:
            layouts = await find(client, address)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, layouts, asking)

    @property
    def layout(self) -> IndexLayout:
        """The layout of the first shard."""
        return self.shards[0].layout

    @property
    def asking(self) -> Caller:
        """What asks the server for calls that only read."""
        return self._asking or self.client

    async def close(self) -> None:
        """Close the connections."""
        if self._asking is not None:
            await self._asking.aclose()
        await self.client.aclose()

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Add each document and return its earlier neighbours.

        The time is that of the server unless `now_ms` is given. Once a lost index has been rebuilt, the next call uses
        the new one.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then repeat the batch.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied.
        """
        return await self._reopening(partial(self._admit, batch, now_ms))

    async def _reopening(self, ask: Callable[[], Awaitable[_Reply]], find: _Find = _open_existing) -> _Reply:
        """Return the answer of `ask`, reopening a lost index once."""
        try:
            return await ask()
        except IndexLostError:
            layouts = await find(self.client, self.address)
            for shard, layout in zip(self.shards, layouts, strict=True):
                shard.layout = layout
        return await ask()

    async def _admit(self, batch: Sequence[Admission], now_ms: int | None) -> Sequence[Admitted]:
        if len(self.shards) == 1:
            return await self.shards[0].admit(batch, now_ms)
        split = route(batch, len(self.shards))
        replies = await _all(shard.admit(share.items, now_ms) for shard, share in zip(self.shards, split, strict=True))
        answers = {
            position: answer_of_shard(answer, index)
            for index, (share, reply) in enumerate(zip(split, replies, strict=True))
            for position, answer in zip(share.positions, reply, strict=True)
        }
        return [answers[position] for position in range(len(batch))]

    async def pass_over(self, positions: Sequence[Position]) -> None:
        """Move checkpoints past records that have no document.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then repeat the call.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied.
        """
        await self._reopening(lambda: _all(shard.admit(positions) for shard in self.shards))

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        """Add states, given by number, to the buckets that they left out.

        The answer names the later documents in those buckets, which have not seen the state.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then admit the batch again.
            IndexLostError: The index was emptied.
        """
        by_shard: list[list[tuple[int, Admission]]] = [[] for _ in self.shards]
        order: list[int] = []
        for number, admission in batch:
            index, own = shard_and_number(number)
            by_shard[index].append((own, admission))
            order.append(index)
        replies = await _all(shard.enter(some) for shard, some in zip(self.shards, by_shard, strict=True))
        answers = [iter(reply) for reply in replies]
        return [tuple(candidate_of_shard(candidate, index) for candidate in next(answers[index])) for index in order]

    async def settle(self, batch: Sequence[Settlement], now_ms: int | None = None) -> Sequence[Settled]:
        """Record decisions before their verdicts and events are sent.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then admit the batch again.
            IndexLostError: The index was emptied.
        """
        if len(self.shards) == 1:
            return await self.shards[0].settle(batch, now_ms)
        by_shard: list[list[Settlement]] = [[] for _ in self.shards]
        order = [shard_and_number(settlement.number)[0] for settlement in batch]
        for index, settlement in zip(order, batch, strict=True):
            by_shard[index].append(settlement_in_shard(settlement))
        replies = await _all(shard.settle(some, now_ms) for shard, some in zip(self.shards, by_shard, strict=True))
        answers = [iter(reply) for reply in replies]
        return [settled_of_shard(next(answers[index]), index) for index in order]

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Return up to `limit` neighbours of some keys, even while writes are refused.

        Raises:
            IndexUnavailableError: No answer within `look_up_seconds` of the address.
            IndexLostError: The index was emptied.
        """
        return (await self.neighbours(keys, limit, now_ms)).candidates

    async def neighbours(self, keys: Keys, limit: int, now_ms: int | None = None) -> Neighbours:
        """Return up to `limit` neighbours of some keys with their families, even while writes are refused.

        Keys do not say which collection they belong to, so this asks all shards, of which one has the answer.

        Raises:
            IndexUnavailableError: No answer within `look_up_seconds` of the address.
            IndexLostError: The index was emptied.
        """
        ask = partial(self._neighbours, keys, limit, now_ms)
        return await self._reopening(ask, read_layouts)

    async def _neighbours(self, keys: Keys, limit: int, now_ms: int | None) -> Neighbours:
        if len(self.shards) == 1:
            return await self.shards[0].look_up(keys, limit, now_ms)
        replies = list(enumerate(await _all(shard.look_up(keys, limit, now_ms) for shard in self.shards)))
        found = [candidate_of_shard(candidate, index) for index, reply in replies for candidate in reply.candidates]
        families = {
            number_of_shard(number, index): replace(family, number=number_of_shard(family.number, index))
            for index, reply in replies
            for number, family in reply.families.items()
        }
        return Neighbours(found[:limit], families, any(reply.may_have_details for _, reply in replies))

    async def details(self, number: int, delay_ms: int = 0, now_ms: int | None = None) -> FamilyDetails:
        """Return the details of the family of a state. Labels count from the age `delay_ms` on.

        Raises:
            IndexUnavailableError: No answer within `look_up_seconds` of the address.
            IndexLostError: The index was emptied.
        """
        index, own = shard_and_number(number)
        return await self._reopening(lambda: self.shards[index].details(own, delay_ms, now_ms), read_layouts)

    async def state(self) -> IndexState:
        """Return whether the index can be trusted now.

        LOST and REBUILDING are what the server says, the other states what the last write has found.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        states = await _all(shard.state() for shard in self.shards)
        return min(states, key=_WORST_FIRST.index)

    async def checkpoints(self) -> dict[int, int]:
        """Return the last offset that all shards have admitted, by partition.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        first, *others = await _all(shard.checkpoints() for shard in self.shards)
        return {
            partition: min(offset, *(other[partition] for other in others)) if others else offset
            for partition, offset in first.items()
            if all(partition in other for other in others)
        }

    async def trusted_checkpoints(self) -> dict[int, int]:
        """Return the checkpoints of an index that is ready.

        Once a lost index has been rebuilt, the next call uses the new one.

        Raises:
            IndexUnavailableError: The server does not answer.
            IndexLostError: The index was emptied or is being rebuilt.
        """
        return await self._reopening(self._trusted_checkpoints)

    async def _trusted_checkpoints(self) -> dict[int, int]:
        known = await self.checkpoints()
        # Check last: this confirms that the checkpoints above were still valid when they were read.
        await _all(shard.require_ready() for shard in self.shards)
        return known


async def _all(calls: Iterable[Awaitable[_Reply]]) -> list[_Reply]:
    """Return the replies to concurrent calls.

    If one fails, the others end before its error is raised.
    """
    replies = await asyncio.gather(*calls, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return [reply for reply in replies if not isinstance(reply, BaseException)]
