"""The right to fill a lost index anew from the signatures topic."""

import os
from contextlib import suppress
from typing import Self

from streams.index import IndexUnavailableError
from workers.redis_address import IndexAddress, Layout
from workers.redis_calls import Client, call, connect, errors_mapped
from workers.redis_index import RedisIndex
from workers.redis_start import check, chunk_counts, layout_of

LEASE_SECONDS = 30


class RebuildRefusedError(Exception):
    """The index holds documents, or another rebuild is under way."""


class IndexRebuild:
    """An index under rebuilding, which nobody else can write or read until `finish`.

    A rebuild that was cut off is taken up by the next `begin`, from `index.checkpoints()` on. Whoever holds it calls
    `renew` within each lease; once another one has taken it, every call is refused. Reports are lost with an index,
    so removals of documents that a rebuild admitted are answered as not complete.

    Attributes:
        index: Takes admissions; give each batch the time of its records, in order.
    """

    def __init__(self, index: RedisIndex, lease: bytes, lease_seconds: float) -> None:
        """Takes an index whose parts know the lease."""
        self.index = index
        self._lease = lease
        self._lease_ms = int(lease_seconds * 1000)
        self._finished = False

    @classmethod
    async def begin(cls, address: IndexAddress, lease_seconds: float = LEASE_SECONDS) -> Self:
        """An empty index under a new epoch, or the one that a cut-off rebuild left.

        Raises:
            RebuildRefusedError: The index holds documents, or another rebuild holds the lease.
            SettingsError: Server, rights, scheme or key do not fit.
            IndexUnavailableError: The server does not answer.
        """
        client = connect(address.connection)
        lease = os.urandom(8)
        try:
            with errors_mapped():
                await check(client, address, may_create=True)
                layouts = await _claim(client, address, lease, int(lease_seconds * 1000))
        except BaseException:
            await client.aclose()
            raise
        index = RedisIndex(client, address, layouts)
        for part in index.parts:
            part.lease = lease
        return cls(index, lease, lease_seconds)

    async def renew(self) -> None:
        """Holds the index for another lease.

        Raises:
            RebuildRefusedError: Another rebuild has taken it.
            IndexUnavailableError: The server does not answer; try again within the lease.
        """
        await self._step("renew", self._lease_ms)

    async def finish(self) -> None:
        """Makes the index ready for everybody.

        Raises:
            RebuildRefusedError: Another rebuild has taken it.
            IndexUnavailableError: The server does not answer; try again.
        """
        await self._step("finish", self._lease_ms)
        self._finished = True
        for part in self.index.parts:
            part.lease = b""

    async def close(self) -> None:
        """Closes the connections; an index that is not finished can be taken up at once, else after the lease."""
        if not self._finished:
            with suppress(RebuildRefusedError, IndexUnavailableError):
                await self._step("renew", 0)
        await self.index.close()

    async def _step(self, step: str, lease_ms: int) -> None:
        for part in self.index.parts:
            reply = await call(part.client, "rebuild", part.key, self._lease, lease_ms, "", step)
            if reply[0] != b"OK":
                raise RebuildRefusedError(f"another rebuild of {self.index.address.namespace} has taken the index")


async def _claim(client: Client, address: IndexAddress, lease: bytes, lease_ms: int) -> list[Layout]:
    counts = chunk_counts(address.limits, address.parts)
    layouts: list[Layout] = []
    filled = 0
    for index in range(address.parts):
        key = address.key_of(index)
        reply = await call(client, "rebuild", key, lease, lease_ms, "", "begin", os.urandom(8), *counts)
        if reply[0] == b"HELD":
            raise RebuildRefusedError(
                f"another rebuild of {address.namespace} is under way, or was cut off less than "
                f"{lease_ms / 1000:g} s ago"
            )
        if reply[0] == b"FILLED":
            # Parts are finished one after the other: some may be ready when a rebuild is taken up.
            filled += 1
            reply = await call(client, "open", key, 0, b"")
        # Another number of parts is refused before a part too many is made.
        layouts.append(layout_of(reply, address))
    if filled == address.parts:
        raise RebuildRefusedError(f"{address.namespace} holds documents: only a lost or empty index is rebuilt")
    return layouts
