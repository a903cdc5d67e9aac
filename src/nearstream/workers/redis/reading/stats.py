"""What an index holds: documents, families and the memory of its servers."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.store.limits import IndexState
from nearstream.streams.store.messages import Query
from nearstream.streams.store.registration import DOCUMENT_BYTES, NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.client import ask, keys_of, lengths_of, pipelined, server_facts
from nearstream.workers.redis.server.layout import (
    CHUNK_BYTES,
    CHUNKED_KINDS,
    GROUP,
    NO_LEASE,
    KeyKind,
    StoreLayout,
)
from nearstream.workers.redis.store.states import unpack_view

CROWDED = 200  # mean fields of a chunk from which on an index should be rebuilt for more documents

_SIZES = 200  # chunks of one kind in a slot whose fields are counted
_CHUNKS = 200_000  # chunks of the registry whose documents are counted, those of some ten million documents
_READ = 400  # chunks of the registry whose documents are looked at


@dataclass(frozen=True)
class IndexFacts:
    """What the slots of an index contain, and the memory of their servers."""

    states: frozenset[IndexState]  # whether its slots can be trusted
    documents: int  # documents that can be found. Estimated where there are many.
    # When the oldest of them was observed, in milliseconds since 1970. None: there is none. Estimated.
    oldest_ms: int | None
    used_bytes: int  # memory that all servers use
    limit_bytes: int  # The sum of their `maxmemory`. 0: at least one has none.


async def index_facts(index: RedisIndex) -> IndexFacts:
    """Return the facts of an index.

    The documents are counted exactly where there are few. Where there are many, the share of those that have expired or
    were removed is estimated.
    """
    names = ("layout", "rebuilder", "now")
    slots = [await ask(index.connection, "HMGET", key, *names) for key in index.facts_keys]
    documents, oldest_ms = await _documents(index, [int(now or 0) for *_, now in slots])
    servers = await server_facts(index.client)
    limits = [int(info.get("maxmemory") or 0) for info in servers]
    return IndexFacts(
        states=frozenset(index.state_in(packed, rebuilder) for packed, rebuilder, _ in slots),
        documents=documents,
        oldest_ms=oldest_ms,
        used_bytes=sum(int(info["used_memory"]) for info in servers),
        limit_bytes=sum(limits) if all(limits) else 0,
    )


async def mean_fields(index: RedisIndex) -> float:
    """Return the highest mean count of fields of a chunk of all slots and kinds, estimated. `CROWDED` is too many."""
    slots = range(index.layout.shape.slots)
    return max([await _mean_fields(index, slot, kind) for slot in slots for kind in CHUNKED_KINDS])


async def _mean_fields(index: RedisIndex, slot: int, kind: KeyKind) -> float:
    keys = [_chunk_key(index.layout, slot, kind, chunk) for chunk in _choose(index.layout.chunks[kind], _SIZES)]
    return sum(await lengths_of(index.connection, keys)) / len(keys)


def _chunk_key(layout: StoreLayout, slot: int, kind: KeyKind, chunk: int) -> bytes:
    return layout.tag(slot) + kind + chunk.to_bytes(CHUNK_BYTES, "big")


def _choose(count: int, most: int) -> list[int]:
    """Return up to `most` numbers below `count`, equal in each call."""
    return list(range(count)) if count <= most else sorted(random.Random(1).sample(range(count), most))  # noqa: S311 - no secret


async def _documents(index: RedisIndex, nows_ms: Sequence[int]) -> tuple[int, int | None]:
    """Return the number of documents, and when the oldest was observed.

    Both are estimated from a sample of the registry's chunks.
    """
    layout = index.layout
    chunks = layout.chunks[KeyKind.REGISTRY]
    places = [divmod(at, chunks) for at in _choose(layout.shape.slots * chunks, _CHUNKS)]
    slots = {_chunk_key(layout, slot, KeyKind.REGISTRY, chunk): slot for slot, chunk in places}
    sizes = await lengths_of(index.connection, list(slots))
    filled = [key for key, size in zip(slots, sizes, strict=True) if size]
    read = [filled[at] for at in _choose(len(filled), _READ)]
    found = await pipelined(index.client, [("HGETALL", key) for key in read])
    numbers = [
        (slots[key], int(number))
        for key, fields in zip(read, found, strict=True)
        for field, number in fields.items()
        if len(field) == DOCUMENT_BYTES  # others are labels and removals
    ]
    observed = await _observed(index, numbers, nows_ms)
    share = len(observed) / max(sum(map(len, found)), 1)
    return round(sum(sizes) * layout.shape.slots * chunks / len(places) * share), min(observed, default=None)


async def _observed(index: RedisIndex, numbers: Sequence[tuple[int, int]], nows_ms: Sequence[int]) -> list[int]:
    """Return when those of these states, each with its slot, that can be found were observed."""
    layout = index.layout
    places = [
        (layout.tag(slot) + KeyKind.STATES + layout.group(number), layout.field(number)) for slot, number in numbers
    ]
    found = await pipelined(index.client, [("HGET", key, field) for key, field in places])
    views = [
        unpack_view(layout, Query(number), nows_ms[slot], packed)
        for (slot, number), packed in zip(numbers, found, strict=True)
        if packed
    ]
    return [view.order.observed_ms for view in views if view is not None and not view.is_gone]


_PAGE = 500  # hashes of states that are read at once


async def families(index: RedisIndex, now_ms: int = 0) -> AsyncIterator[FamilyFacts]:
    """Yield the facts of all families with a second member, in no order."""
    page: list[bytes] = []
    async for _, key in stored_keys(index, KeyKind.STATES):
        page.append(key)
        if len(page) == _PAGE:
            for facts in await families_in(index, page, now_ms):
                yield facts
            page.clear()
    for facts in await families_in(index, page, now_ms):
        yield facts


async def families_in(index: RedisIndex, groups: Sequence[bytes], now_ms: int = 0) -> list[FamilyFacts]:
    """Return the families with a second member whose founders are in these hashes of states, also in a rebuild."""
    found = await pipelined(index.client, [("HKEYS", key) for key in groups])
    founders = [
        index.layout.number(key[-NUMBER_BYTES:], int(field) - GROUP)
        for key, fields in zip(groups, found, strict=True)
        for field in fields
        if int(field) >= GROUP
    ]
    # Whoever names the lease of a rebuild may read before it is done.
    lease = await ask(index.client, "HGET", index.address.key, "rebuilder")
    return await families_of(index.store(lease or NO_LEASE), founders, now_ms)


async def stored_keys(index: RedisIndex, kind: KeyKind) -> AsyncIterator[tuple[int, bytes]]:
    """Yield slot and name of each key of a kind.

    A key may be yielded twice. This walks through all keys of the servers, so it takes a while where there are many.
    """
    async for key in keys_of(index.client, index.layout.prefix + b"*}" + kind):
        slot = _slot(index.layout, key, kind)
        if slot is not None:
            yield slot, key


def _slot(layout: StoreLayout, key: bytes, kind: KeyKind) -> int | None:
    place, _, rest = key.removeprefix(layout.prefix).partition(b"}")
    slot = place.partition(b".")[0]
    return int(slot) if rest[:1] == kind and slot.isdigit() and int(slot) < layout.shape.slots else None
