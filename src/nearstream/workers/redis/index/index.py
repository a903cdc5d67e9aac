"""The shared index on Redis or Valkey, and what it needs of the server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

from nearstream.streams.matching.labels import FamilyDetails, details_of
from nearstream.streams.store.families import Growth
from nearstream.streams.store.limits import IndexLostError, IndexState, IndexUnavailableError
from nearstream.streams.store.messages import Cover
from nearstream.streams.store.registration import NUMBER_BYTES, document_hash
from nearstream.streams.store.store import Call, Position, Store
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.redis.index.schemes import claim_scheme
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import (
    Client,
    ask,
    call,
    connect,
    server_facts,
    shared_connection,
    until_answered,
)
from nearstream.workers.redis.server.errors import IS_CLUSTER_NODE, errors_mapped
from nearstream.workers.redis.server.layout import (
    COVER_FIELD,
    EPOCH_BYTES,
    LINK_SCORE,
    NO_LEASE,
    RECIPIENTS,
    SENDERS,
    KeyKind,
    StoreLayout,
)
from nearstream.workers.redis.server.shared_connection import SharedConnection
from nearstream.workers.redis.store.calls import LaneCalls
from nearstream.workers.redis.store.opening import open_store, stored_layout
from nearstream.workers.redis.store.transport import RedisTransport

if TYPE_CHECKING:
    from nearstream.streams.matching.arriving import Arriving  # which loads numpy
    from nearstream.streams.matching.looking_up import Neighbours


class IndexReplacedError(IndexUnavailableError):
    """A lost index has been rebuilt. What was asked begins again, with the new one."""


class RedisIndex:
    """An index that any number of workers share. Its layout changes when a lost index has been rebuilt."""

    def __init__(self, client: Client, address: IndexAddress, layout: StoreLayout) -> None:
        """Take an open client and the layout of the index."""
        self.client, self.address, self.layout = client, address, layout
        self.connection = shared_connection(address, client)
        self._reading = self.store()  # remembers what families share

    @classmethod
    async def open(cls, address: IndexAddress, *, partitions: int, may_create: bool) -> Self:
        """Open the index at this address, for this count of partitions of `signatures`.

        If it `may_create` the index, nothing was ever admitted, so a missing one is new rather than lost.
        """
        shape = address.shape(partitions)
        client = connect(address)
        try:
            await check_requirements(client, address, may_create=may_create)
            layout = await open_store(client, address.prefix, shape, address.limits, may_create=may_create)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, layout)

    @classmethod
    async def open_to_read(cls, address: IndexAddress) -> Self:
        """Open the index read-only, which works on a server that refuses writes."""
        client = connect(address)
        try:
            await claim_scheme(client, address, may_create=False)
            layout = await stored_layout(client, address.prefix, address.limits)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, layout)

    async def close(self) -> None:
        """Close the connections."""
        if isinstance(self.connection, SharedConnection):
            await self.connection.aclose()
        await self.client.aclose()

    def store(self, lease: bytes = NO_LEASE) -> Store:
        """Return the store of this index, for one lane. Only a rebuild has a lease."""
        return Store(Lane(self, lease), self.layout.shape, self.address.limits, confirms=self.address.replicas > 0)

    async def neighbours_of(self, asked: "Sequence[Arriving]", now_ms: int = 0) -> "list[Neighbours]":
        """Return the neighbours of each document, at least one, with their families, even while writes are refused."""
        from nearstream.streams.matching.looking_up import look_up_all  # this loads numpy

        with errors_mapped():
            async with asyncio.timeout(self.address.look_up_seconds):
                try:
                    return await look_up_all(self._reading, asked, now_ms)
                except IndexReplacedError:
                    return await look_up_all(self._reading, asked, now_ms)

    async def details(self, growth: Growth, delay_ms: int) -> FamilyDetails:
        """Return the details of a family that was found. Labels count from the age `delay_ms` on."""
        with errors_mapped():
            async with asyncio.timeout(self.address.look_up_seconds):
                return await details_of(self.store(), self.address.scheme, growth, delay_ms)

    async def attached(self, asked: "Arriving", delay_ms: int) -> tuple[int, FamilyDetails]:
        """Return how many mails have the attachments of one, and the labels of some (see `with_attachments`)."""
        from nearstream.streams.matching.looking_up import with_attachments  # this loads numpy

        with errors_mapped():
            async with asyncio.timeout(self.address.look_up_seconds):
                return await with_attachments(self.store(), asked, delay_ms)

    @property
    def scheme(self) -> str:
        """The name of its scheme."""
        return self.address.scheme

    async def current_number(self, document_key: str) -> int:
        """Return the number of the current state of a document, 0 without it."""
        layout, document = self.layout, document_hash(document_key)
        key = layout.tag(home_of(layout, document_key)) + KeyKind.REGISTRY + layout.registry_chunk(document)
        return int(await ask(self.connection, "HGET", key, document) or 0)

    async def page(self, founder: int, first: int, last: int, most: int) -> list[tuple[int, int]]:
        """Return members of a family that live, with their ordinals, from one ordinal to another."""
        key, last = self._family_key(KeyKind.MEMBERS, founder), min(last, LINK_SCORE - 1)
        found = await ask(self.connection, "ZRANGEBYSCORE", key, first, last, "WITHSCORES", "LIMIT", 0, most)
        numbers = [int.from_bytes(member, "big") for member in found[::2]]
        return list(zip(numbers, [int(float(score)) for score in found[1::2]], strict=True))

    async def newest(self, founder: int, most: int) -> list[int]:
        """Return the members of a family that live and joined last, the last one first."""
        key, below = self._family_key(KeyKind.MEMBERS, founder), f"({LINK_SCORE}"
        found = await ask(self.connection, "ZREVRANGEBYSCORE", key, below, 1, "LIMIT", 0, most)
        return [int.from_bytes(member, "big") for member in found]

    async def addresses(self, founder: int, since_ms: int) -> tuple[list[bytes], list[bytes]]:
        """Return the senders and recipients of mails that joined a family since a time."""
        key = self._family_key(KeyKind.ADDRESSES, founder)
        senders, recipients = [
            await ask(self.connection, "ZRANGEBYSCORE", key + end.encode(), since_ms, "+inf")
            for end in (SENDERS, RECIPIENTS)
        ]
        return senders, recipients

    def _family_key(self, kind: KeyKind, founder: int) -> bytes:
        return self.layout.tag(self.layout.shape.home(founder)) + kind + founder.to_bytes(NUMBER_BYTES, "big")

    async def cover(self, positions: Sequence[Position]) -> None:
        """Note that all records up to these positions are done."""
        await self.store().cover([Cover(*position) for position in positions])

    async def state(self) -> IndexState:
        """Return whether the index can be trusted now."""
        found = [await ask(self.connection, "HMGET", key, "layout", "rebuilder") for key in self.facts_keys]
        states = {self.state_in(packed, rebuilder) for packed, rebuilder in found}
        worst_first = (IndexState.LOST, IndexState.REBUILDING, IndexState.READY)
        return min(states, key=worst_first.index)

    def state_in(self, packed: bytes | None, rebuilder: bytes | None) -> IndexState:
        """Return the state of a slot that has this layout and this rebuilder."""
        if rebuilder:
            return IndexState.REBUILDING
        is_ours = packed is not None and packed[:EPOCH_BYTES] == self.layout.epoch
        return IndexState.READY if is_ours else IndexState.LOST

    @property
    def facts_keys(self) -> list[bytes]:
        """The key of the facts of each slot."""
        return [self.layout.tag(slot) + KeyKind.FACTS for slot in range(self.layout.shape.slots)]

    async def checkpoints(self) -> dict[int, int]:
        """Return the last offset up to which all slots know that everything is done, by partition."""
        fields = [f"{COVER_FIELD}{partition}" for partition in range(self.layout.shape.partitions)]
        covers = [await ask(self.connection, "HMGET", key, *fields) for key in self.facts_keys]
        by_partition = enumerate(zip(*covers, strict=True))
        return {partition: min(map(int, offsets)) for partition, offsets in by_partition if None not in offsets}

    async def trusted_checkpoints(self) -> dict[int, int]:
        """Return the checkpoints of an index that is ready.

        Once a lost index has been rebuilt, the next call uses the new one.
        """
        known = await self.checkpoints()
        # Check last: this confirms that the checkpoints above were still valid when they were read.
        state = await self.state()
        if state is IndexState.LOST:
            await self.reopen()
            raise IndexReplacedError("the index was replaced")
        if state is IndexState.REBUILDING:
            raise IndexUnavailableError("the index is being rebuilt")
        return known

    async def reopen(self) -> None:
        """Use the index that has taken the place of a lost one."""
        with errors_mapped():
            layout = await stored_layout(self.client, self.address.prefix, self.address.limits)
        if layout.epoch == self.layout.epoch:
            raise IndexLostError(f"a part of {self.address.namespace} was emptied: run `nearstream rebuild`")
        self.layout = layout
        self._reading = self.store()


class Lane:
    """Carries the calls of one lane to the index, also to a rebuilt one."""

    def __init__(self, index: RedisIndex, lease: bytes) -> None:
        """Take the index, and the lease of its rebuild."""
        self._index, self._lease = index, lease
        self._begin()

    def _begin(self) -> None:
        layout = self._layout = self._index.layout
        calls = LaneCalls(layout, replicas=self._index.address.replicas, lease=self._lease)
        self._transport = RedisTransport(self._index.connection, layout, calls)

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[object]]:
        """Return the replies to calls, as `Transport.all` does."""
        if self._layout is not self._index.layout:
            self._begin()
            raise IndexReplacedError("the index was replaced")
        try:
            return await self._transport.all(calls)
        except IndexLostError:
            if self._layout is self._index.layout:
                await self._index.reopen()
        self._begin()
        raise IndexReplacedError("the index was replaced")


@asynccontextmanager
async def index_to_read(address: IndexAddress, wait_seconds: float) -> AsyncIterator[RedisIndex]:
    """Open an index read-only as soon as the server answers, and close it in the end."""
    index = await until_answered(partial(RedisIndex.open_to_read, address), wait_seconds)
    try:
        yield index
    finally:
        await index.close()


def home_of(layout: StoreLayout, document_key: str) -> int:
    """Return the slot that keeps the states of a document. The partition of its signatures decides it."""
    partition = partition_of(document_key.encode("utf-8", "surrogatepass"), layout.shape.partitions)
    return layout.shape.home(partition)


_log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 5


async def check_requirements(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Refuse a server, rights, a scheme or a key that do not fit."""
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            for facts in await server_facts(client):
                _check_server(facts)
                if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")) and not address.cluster:
                    raise SettingsError(IS_CLUSTER_NODE)
            for slot in range(address.slots):
                await _check_rights(client, address.tag(slot) + KeyKind.PROBE)
            await claim_scheme(client, address, may_create=may_create)


def _check_server(info: dict[str, object]) -> None:
    valkey, redis = str(info.get("valkey_version", "")), str(info.get("redis_version", "0"))
    if valkey and _major(valkey) < 8:
        raise SettingsError(f"NEARSTREAM_REDIS: expected Valkey 8 or newer, got {valkey}")
    if not valkey and _major(redis) < 7:
        raise SettingsError(f"NEARSTREAM_REDIS: expected Redis 7.0 or newer, got {redis}")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise SettingsError(f"NEARSTREAM_REDIS: expected maxmemory-policy noeviction, got {policy}")


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


async def _check_rights(client: Client, key: bytes) -> None:
    # A function finds a missing right only halfway through, so each command is tried before.
    refused, encoding = await call(client, "probe", key)
    if refused:
        names = ", ".join(name.decode() for name in refused)
        raise SettingsError(f"NEARSTREAM_REDIS: our user may not run {names}: grant these commands")
    if encoding != b"listpack":
        _log.warning("Redis needs more memory than necessary for records: set hash-max-listpack-value to 8192")
