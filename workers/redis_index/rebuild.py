"""The lease for filling a lost index again from the signatures topic."""

import os
from contextlib import suppress
from typing import Self

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import Client, call, connect
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import EPOCH_BYTES, IndexLayout
from nearstream.workers.redis_index.opening import check, layout_fields, layout_of

LEASE_SECONDS = 30
_LEASE_BYTES = 8


class RebuildRefusedError(Exception):
    """The index holds documents, or another rebuild is running."""


class IndexRebuild:
    """An index during its rebuild, which no other client can use until `finish`.

    The next `begin` resumes an interrupted rebuild, from `index.checkpoints()` on. The caller has to call `renew`
    within each lease. Once another rebuild has taken the lease, every call is refused. Reports are lost with an index,
    so the answers to removals of documents that a rebuild admitted are not complete.

    Attributes:
        index: Takes the admissions. Give each batch the time of its records, in order.
    """

    def __init__(self, index: RedisIndex, lease: bytes, lease_seconds: float) -> None:
        """Take an index whose shards have the lease."""
        self.index = index
        self._lease = lease
        self._lease_ms = int(lease_seconds * 1000)
        self._finished = False

    @classmethod
    async def begin(cls, address: IndexAddress, lease_seconds: float = LEASE_SECONDS) -> Self:
        """Create an empty index with a new epoch, or resume an interrupted rebuild.

        Raises:
            RebuildRefusedError: The index holds documents, or another rebuild has the lease.
            SettingsError: The server, our rights, the scheme or the key do not fit.
            IndexUnavailableError: The server does not answer.
        """
        client = connect(address.connection)
        lease = os.urandom(_LEASE_BYTES)
        try:
            with errors_mapped():
                await check(client, address, may_create=True)
                layouts = await _claim(client, address, lease, int(lease_seconds * 1000))
        except BaseException:
            await client.aclose()
            raise
        index = RedisIndex(client, address, layouts)
        for shard in index.shards:
            shard.lease = lease
        return cls(index, lease, lease_seconds)

    async def renew(self) -> None:
        """Keep the index for the length of another lease.

        Raises:
            RebuildRefusedError: Another rebuild has taken the index.
            IndexUnavailableError: The server does not answer. Try again within the lease.
        """
        await self._step("renew", self._lease_ms)

    async def finish(self) -> None:
        """Make the index ready for all clients.

        Raises:
            RebuildRefusedError: Another rebuild has taken the index.
            IndexUnavailableError: The server does not answer. Try again.
        """
        await self._step("finish", self._lease_ms)
        self._finished = True
        for shard in self.index.shards:
            shard.lease = b""

    async def close(self) -> None:
        """Close the connections.

        An unfinished rebuild can then be resumed at once. Without this it can be resumed after the lease.
        """
        if not self._finished:
            with suppress(RebuildRefusedError, IndexUnavailableError):
                await self._step("renew", 0)
        await self.index.close()

    async def _step(self, step: str, lease_ms: int) -> None:
        for shard in self.index.shards:
            reply = await call(shard.client, "rebuild", shard.key, self._lease, lease_ms, "", step)
            if reply[0] != b"OK":
                raise RebuildRefusedError(f"another rebuild of {self.index.address.namespace} has taken the index")


async def _claim(client: Client, address: IndexAddress, lease: bytes, lease_ms: int) -> list[IndexLayout]:
    fields = layout_fields(address.limits, address.shards)
    layouts: list[IndexLayout] = []
    filled = 0
    for index in range(address.shards):
        key = address.key_of(index)
        reply = await call(client, "rebuild", key, lease, lease_ms, "", "begin", os.urandom(EPOCH_BYTES), *fields)
        if reply[0] == b"HELD":
            raise RebuildRefusedError(
                f"another rebuild of {address.namespace} is under way, or was cut off less than "
                f"{lease_ms / 1000:g} s ago: wait, then run `nearstream rebuild` again"
            )
        if reply[0] == b"FILLED":
            # Shards are finished one after the other, so some may be ready when a rebuild is resumed.
            filled += 1
            reply = await call(client, "open", key, 0, b"")
        # This refuses another number of shards before a surplus shard is created.
        layouts.append(layout_of(reply, address))
    if filled == address.shards:
        raise RebuildRefusedError(f"{address.namespace} holds documents: only a lost or empty index can be rebuilt")
    return layouts
