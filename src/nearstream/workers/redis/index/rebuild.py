"""An index while it is filled again from the signatures topic, under a lease."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from nearstream.streams.store.limits import HOUR_MS, IndexUnavailableError
from nearstream.streams.store.messages import Cover, Join
from nearstream.streams.store.store import Call, Position, Store, Transport
from nearstream.workers.redis.index.index import Lane, RedisIndex, check_requirements
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import connect
from nearstream.workers.redis.server.layout import EPOCH_BYTES, new_layout
from nearstream.workers.redis.store.opening import Lease

LEASE_SECONDS = 30

FormerFamilies = Mapping[bytes, tuple[bytes, int, int, int]]
"""By the id that a document would give a family: the former id, the founder's time, its own and the highest ordinal."""


class IndexRebuild:
    """An index during its rebuild, which no other client can use until its lease is finished.

    The next `begin` resumes an interrupted rebuild, behind `index.checkpoints()`. The caller has to renew the lease in
    time. Once another rebuild has taken it, every call is refused.
    """

    def __init__(self, index: RedisIndex, families: FormerFamilies, lease: Lease) -> None:
        self.index = index
        self.lease = lease
        self._dated = _Dated(Lane(index, lease.token), families)
        self.store = Store(self._dated, index.layout.shape, index.address.limits, confirms=index.address.replicas > 0)

    @classmethod
    async def begin(
        cls,
        address: IndexAddress,
        *,
        partitions: int,
        families: FormerFamilies | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> Self:
        """Create an empty index with a new epoch, or resume an interrupted rebuild.

        The families that were known before keep their ids. No other rebuild may begin for `lease_seconds`, unless the
        lease is renewed.
        """
        shape = address.shape(partitions)
        client = connect(address)
        try:
            await check_requirements(client, address, may_create=True)
            new = new_layout(address.prefix, shape, address.limits, os.urandom(EPOCH_BYTES))
            lease = Lease(client, new, int(lease_seconds * 1000))
            layout = await lease.begin()
        except BaseException:
            await client.aclose()
            raise
        return cls(RedisIndex(client, address, layout), families or {}, lease)

    def set_time(self, now_ms: int) -> None:
        """Say when the records of the next batch were written, in milliseconds since 1970."""
        self._dated.now_ms = now_ms

    def set_own_ids(self, own_ids: Mapping[int, bytes]) -> None:
        """Say which id each document of the next batch would give a family, by number."""
        self._dated.own_ids = own_ids

    async def cover(self, positions: Sequence[Position]) -> None:
        """Note that all records up to these positions are done."""
        await self.store.cover([Cover(*position) for position in positions])

    async def close(self) -> None:
        """Give the lease back, and close the connections."""
        with suppress(IndexUnavailableError):
            await self.lease.release()
        await self.index.close()


class _Dated:
    """Carries the calls of a rebuild, at the time `now_ms` of the records that are matched."""

    def __init__(self, inner: Transport, families: FormerFamilies) -> None:
        self.now_ms = 0
        self.own_ids: Mapping[int, bytes] = {}
        self._inner, self._families = inner, families

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls, as `Transport.all` does."""
        return await self._inner.all([self._then(call) for call in calls])

    def _then(self, call: Call) -> Call:
        if call.name in ("register", "cover"):  # a call without a time would move that of its slot to now
            return call._replace(items=[item._replace(now_ms=self.now_ms) for item in call.items])
        return call._replace(items=[self._named(join) for join in call.items]) if call.name == "join" else call

    def _named(self, join: Join) -> Join:
        """Return a join with the former id of the family and the former ordinal of the member.

        Old addresses are left out, because no answer counts them any more. Documents may be compared in another order
        than at first, and the first founder of a family may have been removed. So the id is that of the last verdict
        about the founder of now, the ordinal that of the last verdict about the member: its next state keeps the
        ordinal, which no other member may have.
        """
        alone = join.family_id, join.first_seen_ms, 0, 0
        family_id, first_seen_ms, _, most = self._families.get(join.family_id, alone)
        before, _, former, _ = self._families.get(self.own_ids.get(join.number, b""), alone)
        named = join._replace(family_id=family_id, first_seen_ms=first_seen_ms, ordinals=most)
        join = named._replace(now_ms=self.now_ms, ordinal=former if before == family_id else 0)
        is_old = self.now_ms < time.time_ns() // 1_000_000 - HOUR_MS
        return join._replace(sender=b"", recipients=b"") if is_old else join
