"""The shared index on a Redis or Valkey server.

Every key begins with the hash tag T = `{namespace:scheme:part}`, so a part lies in one slot. T and a letter:

    m  HASH    epoch, format, state, seq (numbers reserved), done (numbers given), floor, mark, aborted, chunk
               counts, `o` + partition: last offset admitted
    b x l a    HASH + chunk (4 bytes): second half of a band, digest, lineage, anchor key → numbers of 5 bytes
    w  STRING  + key: the newest numbers of an anchor bucket whose 12 heads are full
    i  HASH    + chunk: hash of a document key → number of its current state
    r  HASH    + number div 16: n record, 16 + n number from which on it is superseded, 32 + n reports of 17 bytes
               (relation, event id), n = number mod 16
    g  LIST    `ms:number`: which numbers were given until when
    o  HASH    + partition, offset div 256: answers that buckets may not tell again; one hour
    d  HASH    + partition, offset div 256: answers to removals; seven days

A record is prev 5, partition 2, offset 6, observed at 6, version 8, bands 1, anchors 2, hash of the document key 12,
the signature as kept without its scheme. A number given to no living record names nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from redis.asyncio import Redis

from streams.index import (
    Admission,
    Admitted,
    Candidate,
    IndexBehindError,
    IndexLostError,
    IndexState,
    Report,
)
from streams.scheme import Keys
from workers.redis_calls import IndexReadOnlyError, call, connect, errors_mapped
from workers.redis_reply import (
    Layout,
    pack_admissions,
    pack_keys,
    pack_report,
    unpack_answers,
    unpack_records,
)
from workers.redis_start import IndexAddress, start

__all__ = ["IndexAddress", "RedisIndex"]

_WRITE_SECONDS = 2.0
_LOOK_UP_SECONDS = 0.15
_MOST_ADMISSIONS = 32
_MOST_KEYS = 1_024  # the server stops after the document that reaches this
_MOST_REPORTS = 256


class RedisIndex:
    """An index that any number of workers share."""

    def __init__(self, client: Redis, address: IndexAddress, layout: Layout) -> None:
        """Takes an open client and what `start` found."""
        self._client = client
        self.address = address
        self.layout = layout
        self._trouble: IndexState | None = None

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
        client = connect(address.url, address.ca_path)
        try:
            layout = await start(client, address, may_create=may_create)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, layout)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Adds each document and answers its earlier neighbours; time is the server's unless given.

        Raises:
            IndexUnavailableError: Wait, then send the same batch again.
            IndexBehindError: The index lost its newest writes.
            IndexLostError: The index was emptied.
        """
        limits = self.address.limits
        now = "" if now_ms is None else now_ms
        head = (limits.bucket_cap, limits.candidates, self._retention_ms, now)
        answers: list[Admitted] = []
        while len(answers) < len(batch):
            part = _one_call(batch, len(answers))
            reply = await self._write("admit", *head, *pack_admissions(part, self.layout))
            states = unpack_records(reply[2], self.address.scheme)
            answers += unpack_answers(part, reply[1], states)
        return answers

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """Notes events before they leave; False: a document was removed or expired meanwhile.

        Raises:
            IndexUnavailableError: Wait, then send the same pairs again.
            IndexLostError: The index was emptied.
        """
        noted: list[bool] = []
        for first in range(0, len(pairs), _MOST_REPORTS):
            reply = await self._write(
                "report", self._retention_ms, *map(pack_report, pairs[first : first + _MOST_REPORTS])
            )
            noted += [byte == ord("1") for byte in reply[1]]
        return noted

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys; works while writes are refused.

        Raises:
            IndexUnavailableError: No answer within 150 ms.
            IndexLostError: The index was emptied.
        """
        cap = self.address.limits.bucket_cap
        head = (cap, limit, self._retention_ms, "" if now_ms is None else now_ms)
        reply = await self._call(_LOOK_UP_SECONDS, "look_up", *head, pack_keys(keys, self.layout))
        states = unpack_records(reply[2], self.address.scheme)
        (answer,) = unpack_answers([], reply[1:2], states)
        return answer.candidates[:limit]

    async def state(self) -> IndexState:
        """Whether the index can be trusted now, as the server says, else as the last write met it.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        status = (await self._reply(_WRITE_SECONDS, "state"))[0]
        return {b"LOST": IndexState.LOST, b"REBUILDING": IndexState.REBUILDING}.get(
            status, self._trouble or IndexState.READY
        )

    async def checkpoints(self) -> dict[int, int]:
        """Last offset admitted, by partition.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        with errors_mapped():
            async with asyncio.timeout(_WRITE_SECONDS):
                facts = await self._client.hgetall(self.address.key)
        return {int(name[1:]): int(value) for name, value in facts.items() if name[:1] == b"o"}

    @property
    def _retention_ms(self) -> int:
        return self.address.limits.retention_seconds * 1000

    async def _write(self, name: str, *arguments: bytes | str | int) -> list[Any]:
        try:
            reply = await self._call(_WRITE_SECONDS, name, *arguments)
        except IndexReadOnlyError:
            self._trouble = IndexState.READ_ONLY
            raise
        except IndexBehindError:
            self._trouble = IndexState.BEHIND
            raise
        self._trouble = None
        return reply

    async def _call(self, seconds: float, name: str, *arguments: bytes | str | int) -> list[Any]:
        reply = await self._reply(seconds, name, *arguments)
        if reply[0] == b"GAP":
            raise IndexBehindError(reply[1], reply[2])
        if reply[0] != b"OK":
            raise IndexLostError(f"{self.address.key.decode()}: the index is {reply[0].decode().lower()}")
        return reply

    async def _reply(self, seconds: float, name: str, *arguments: bytes | str | int) -> list[Any]:
        with errors_mapped():
            async with asyncio.timeout(seconds):
                return await call(self._client, name, self.address.key, self.layout.epoch, *arguments)


def _one_call(batch: Sequence[Admission], first: int) -> Sequence[Admission]:
    """The admissions from `first` on that one call is allowed to bring."""
    keys = 0
    for end in range(first, min(first + _MOST_ADMISSIONS, len(batch))):
        keys += 2 + len(batch[end].keys.bands) + len(batch[end].keys.anchors)
        if keys >= _MOST_KEYS:
            return batch[first : end + 1]
    return batch[first : first + _MOST_ADMISSIONS]
