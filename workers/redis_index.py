"""The shared index on a Redis or Valkey server.

Every key begins with the hash tag T = `{namespace:hash of the scheme:part}`, so a part lies in one slot. T and then:

    m  HASH    epoch, format, parts, chunk counts, state, lease of a rebuild with its end, rebuilt (last number given
               in a rebuild), seq (numbers reserved), done (numbers given), floor, mark (when it was last looked at),
               aborted, `o` + partition: last offset admitted
    b x l a    HASH + chunk (4 bytes): field of a band, digest, lineage, anchor key → numbers of 5 bytes. Fields, and
               one number alone, are written in digits, which the server keeps in fewer bytes, compares faster
    w  STRING  + key: the newest numbers of an anchor bucket whose 12 heads are full
    i  HASH    + chunk: hash of a document key → number of its current state
    r  HASH    + number div 16: n record, 32 + n reports of 17 bytes (relation, event id), n = number mod 16
    g  LIST    `ms:number`: which numbers were given until when
    o  HASH    + partition, offset div 256: answers that buckets may not tell again; seven days, but of
               records that lie 64 such hashes before the newest of their partition one hour
    d  HASH    + partition, offset div 256: answers to removals; seven days
    s  ZSET    numbers that a report spared from expiry, by time
    k  HASH    + number: fields of such a state, as in `r`
    h  HASH    kind, chunk, field of a bucket → how often it overflowed; `*` of those that found no room here

A record is prev 5, partition 2, offset 6, observed at 6, version 8, bands 1, anchors 2, hash of the document key 9,
length of the id 2, the number from which on it is superseded 5 (if 2^15 is added to the length), id, the rest of the
signature as `redis_record` packs it. A number given to no living record names nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Self, TypeVar

from streams.index import Admission, Admitted, Candidate, IndexLostError, IndexState, Position, Report
from streams.scheme import Keys
from workers.redis_address import IndexAddress, Layout
from workers.redis_calls import Client, connect
from workers.redis_part import Part
from workers.redis_split import candidate_of_part, named_by_part, part_and_number, shares
from workers.redis_start import look, start

_WORST_FIRST = (
    IndexState.LOST,
    IndexState.REBUILDING,
    IndexState.BEHIND,
    IndexState.READ_ONLY,
    IndexState.READY,
)

_Reply = TypeVar("_Reply")


class RedisIndex:
    """An index that any number of workers share."""

    def __init__(self, client: Client, address: IndexAddress, layouts: Sequence[Layout]) -> None:
        """Takes an open client and what `start` found."""
        self.client = client
        self.address = address
        self.parts = tuple(Part(client, address, address.key_of(index), layout) for index, layout in enumerate(layouts))

    @classmethod
    async def open(cls, address: IndexAddress, *, may_create: bool) -> Self:
        """The index at this address.

        Args:
            address: Where it stands.
            may_create: Nothing was ever admitted, so that a missing index is a new one, not a lost one.

        Raises:
            SettingsError: Server, rights, scheme or key do not fit.
            IndexLostError: There is no index, though there was one.
            IndexUnavailableError: The server does not answer.
        """
        return await cls._opened(address, partial(start, may_create=may_create))

    @classmethod
    async def open_to_read(cls, address: IndexAddress) -> Self:
        """The index at this address for who admits nothing; a server that refuses writes serves too.

        Raises:
            SettingsError: Scheme or key do not fit.
            IndexLostError: There is no index.
            IndexUnavailableError: The server does not answer.
        """
        return await cls._opened(address, look)

    @classmethod
    async def _opened(
        cls, address: IndexAddress, find: Callable[[Client, IndexAddress], Awaitable[list[Layout]]]
    ) -> Self:
        client = connect(address.connection)
        try:
            layouts = await find(client, address)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, layouts)

    @property
    def layout(self) -> Layout:
        """How keys are spread in the first part."""
        return self.parts[0].layout

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.aclose()

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Adds each document and answers its earlier neighbours; time is the server's unless given.

        Once a lost index was rebuilt, the next call finds it.

        Raises:
            IndexUnavailableError: Wait, then send the same batch again.
            IndexBehindError: The index lost its newest writes.
            IndexLostError: The index was emptied.
        """
        return await self._found_again(partial(self._admit, batch, now_ms))

    async def _found_again(self, ask: Callable[[], Awaitable[_Reply]]) -> _Reply:
        """What is answered, by the index that was rebuilt in place of a lost one if need be."""
        try:
            return await ask()
        except IndexLostError:
            layouts = await start(self.client, self.address, may_create=False)
            for part, layout in zip(self.parts, layouts, strict=True):
                part.layout = layout
        return await ask()

    async def _admit(self, batch: Sequence[Admission], now_ms: int | None) -> Sequence[Admitted]:
        if len(self.parts) == 1:
            return await self.parts[0].admit(batch, now_ms)
        split = shares(batch, len(self.parts))
        replies = await _all(part.admit(share.items, now_ms) for part, share in zip(self.parts, split, strict=True))
        answers = {
            place: named_by_part(answer, index)
            for index, (share, reply) in enumerate(zip(split, replies, strict=True))
            for place, answer in zip(share.places, reply, strict=True)
        }
        return [answers[place] for place in range(len(batch))]

    async def pass_over(self, positions: Sequence[Position]) -> None:
        """Moves checkpoints to where no document stands, behind what was admitted.

        Raises:
            As `admit`.
        """
        await self._found_again(lambda: _all(part.admit(positions) for part in self.parts))

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """Notes events before they leave; False: a document was removed or expired meanwhile.

        Raises:
            IndexUnavailableError: Wait, then send the same pairs again.
            IndexLostError: The index was emptied.
        """
        if len(self.parts) == 1:
            return await self.parts[0].report(pairs)
        own: list[list[Report]] = [[] for _ in self.parts]
        order = []
        for pair in pairs:
            (index, newer), (_, older) = part_and_number(pair.newer), part_and_number(pair.older)
            own[index].append(Report(newer, older, pair.relation, pair.event_id))
            order.append(index)
        replies = await _all(part.report(each) for part, each in zip(self.parts, own, strict=True))
        noted = [iter(reply) for reply in replies]
        return [next(noted[index]) for index in order]

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys; works while writes are refused.

        Keys do not tell their collection, so all parts are asked; one has the answer.

        Raises:
            IndexUnavailableError: No answer within 150 ms.
            IndexLostError: The index was emptied.
        """
        replies = await _all(part.look_up(keys, limit, now_ms) for part in self.parts)
        found = (candidate_of_part(each, index) for index, reply in enumerate(replies) for each in reply)
        return tuple(found)[:limit]

    async def state(self) -> IndexState:
        """Whether the index can be trusted now, as the server says, else as the last write met it.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        states = await _all(part.state() for part in self.parts)
        return min(states, key=_WORST_FIRST.index)

    async def checkpoints(self) -> dict[int, int]:
        """Last offset that all parts have admitted, by partition.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        first, *others = await _all(part.checkpoints() for part in self.parts)
        return {
            partition: min(offset, *(other[partition] for other in others)) if others else offset
            for partition, offset in first.items()
            if all(partition in other for other in others)
        }

    async def trusted_checkpoints(self) -> dict[int, int]:
        """The same, of an index that is ready; once a lost index was rebuilt, the next call finds it.

        Raises:
            IndexUnavailableError: The server does not answer.
            IndexLostError: The index was emptied, or is being rebuilt.
        """
        return await self._found_again(self._trusted_checkpoints)

    async def _trusted_checkpoints(self) -> dict[int, int]:
        known = await self.checkpoints()
        await _all(part.require_ready() for part in self.parts)  # asked last: what was told stood until then
        return known


async def _all(calls: Iterable[Awaitable[_Reply]]) -> list[_Reply]:
    """Replies side by side; none is left under way when one fails."""
    replies = await asyncio.gather(*calls, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return [reply for reply in replies if not isinstance(reply, BaseException)]
