"""What an index holds: keys, families and the memory of its servers."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.store.limits import IndexState
from nearstream.streams.store.messages import Query
from nearstream.streams.store.registration import DOCUMENT_BYTES, NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.scanning import KeySample, KeySamples, stored_keys
from nearstream.workers.redis.server.client import ask, lengths_of, memories_of, pipelined, server_facts
from nearstream.workers.redis.server.layout import (
    CHUNK_BYTES,
    CHUNKED_KINDS,
    GROUP,
    NO_LEASE,
    KeyKind,
)
from nearstream.workers.redis.store.states import unpack_view

CROWDED = 200  # mean fields of a chunk from which on an index should be rebuilt for more documents

_SIZES = 200  # chunks of one kind in a slot whose fields are counted
_MEASURED = 1_000  # keys of one kind in a slot whose memory is measured
_READ, _LEAST_READ = 400, 10  # chunks of the registry whose documents are looked at: of all slots, and of one slot


@dataclass(frozen=True)
class SlotFacts:
    """What a slot of an index contains. Some numbers are estimated from a sample."""

    state: IndexState  # whether it can be trusted
    documents: int  # documents that can be found
    # When the oldest of them was observed, in milliseconds since 1970. None: there is none. Estimated.
    oldest_ms: int | None
    memory_bytes: int | None  # Estimated. None if our user may not run MEMORY USAGE.


async def index_facts(index: RedisIndex, keys: KeySamples) -> tuple[SlotFacts, ...]:
    """Return the facts of each slot.

    The memory is estimated. The documents are counted exactly where there are few. Where
    there are many, the share of those that have expired or were removed is estimated.
    """
    return tuple([await _facts_of_slot(index, slot, keys) for slot in range(index.layout.shape.slots)])


async def mean_fields(index: RedisIndex) -> float:
    """Return the highest mean count of fields of a chunk of all slots and kinds, estimated. `CROWDED` is too many."""
    slots = range(index.layout.shape.slots)
    return max([await _mean_fields(index, slot, kind) for slot in slots for kind in CHUNKED_KINDS])


async def _mean_fields(index: RedisIndex, slot: int, kind: KeyKind) -> float:
    head = index.layout.tag(slot) + kind
    keys = [head + chunk.to_bytes(CHUNK_BYTES, "big") for chunk in _choose(index.layout.chunks[kind], _SIZES)]
    return sum(await lengths_of(index.client, keys)) / len(keys)


def _choose(count: int, most: int) -> list[int]:
    """Return up to `most` numbers below `count`, equal in each call."""
    return list(range(count)) if count <= most else sorted(random.Random(1).sample(range(count), most))  # noqa: S311 - no secret


async def _facts_of_slot(index: RedisIndex, slot: int, keys: KeySamples) -> SlotFacts:
    packed, rebuilder, now = await ask(index.asking, "HMGET", index.facts_keys[slot], "layout", "rebuilder", "now")
    documents, oldest_ms = await _documents(index, slot, keys[slot, KeyKind.REGISTRY], int(now or 0))
    memory_bytes = await _memory(index, slot, keys)
    return SlotFacts(index.state_in(packed, rebuilder), documents, oldest_ms, memory_bytes)


async def _documents(index: RedisIndex, slot: int, sample: KeySample, now_ms: int) -> tuple[int, int | None]:
    """Return the count of documents that can be found, and when the oldest of them was observed."""
    sizes = await lengths_of(index.client, sample.keys)
    read = max(_READ // index.layout.shape.slots, _LEAST_READ)
    found = await pipelined(index.client, [("HGETALL", key) for key in sample.keys[:read]])
    numbers = [
        int(number)
        for fields in found
        for field, number in fields.items()
        if len(field) == DOCUMENT_BYTES  # others are labels and removals
    ]
    observed = await _observed(index, slot, numbers, now_ms)
    share = len(observed) / max(sum(map(len, found)), 1)
    return round(sample.of_all(sum(sizes)) * share), min(observed, default=None)


async def _observed(index: RedisIndex, slot: int, numbers: Sequence[int], now_ms: int) -> list[int]:
    """Return when those of these states that can be found were observed."""
    layout, head = index.layout, index.layout.tag(slot) + KeyKind.STATES
    places = [(head + layout.group(number), layout.field(number)) for number in numbers]
    found = await pipelined(index.client, [("HGET", key, field) for key, field in places])
    views = [
        unpack_view(layout, Query(number), now_ms, packed)
        for number, packed in zip(numbers, found, strict=True)
        if packed
    ]
    return [view.order.observed_ms for view in views if view is not None and not view.is_gone]


async def _memory(index: RedisIndex, slot: int, keys: KeySamples) -> int | None:
    """Return the memory of a slot, or None if our user may not run MEMORY USAGE."""
    found = 0
    for kind in KeyKind:
        sample = keys[slot, kind]
        measured = sample.keys[:_MEASURED]
        sizes = await memories_of(index.client, measured)
        if sizes is None:
            return None
        found += round(sum(sizes) * sample.count / max(len(measured), 1))
    return found


_PAGE = 500  # hashes of states that are read at once


async def families(index: RedisIndex, now_ms: int = 0) -> AsyncIterator[FamilyFacts]:
    """Yield the facts of all families with a second member, in no order.

    This walks through all keys of the servers, so it takes a while where there are many.
    """
    page: list[bytes] = []
    async for _, _, key in stored_keys(index, KeyKind.STATES):
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


@dataclass(frozen=True)
class Totals:
    """Facts about all slots of an index and their servers."""

    families: int  # Families with a second member. Estimated.
    copies: int  # Their members but the first of each. Estimated.
    used_bytes: int  # memory that all servers use
    limit_bytes: int  # The sum of their `maxmemory`. 0: at least one has none.


async def totals(index: RedisIndex, keys: KeySamples) -> Totals:
    """Return the facts about all slots and their servers."""
    families = copies = 0
    for sample in (keys[slot, KeyKind.STATES] for slot in range(index.layout.shape.slots)):
        sizes = [facts.size for facts in await families_in(index, sample.keys)]
        families += sample.of_all(len(sizes))
        copies += sample.of_all(sum(max(size - 1, 0) for size in sizes))
    servers = await server_facts(index.client)
    limits = [int(info.get("maxmemory") or 0) for info in servers]
    return Totals(
        families=families,
        copies=copies,
        used_bytes=sum(int(info["used_memory"]) for info in servers),
        limit_bytes=sum(limits) if all(limits) else 0,
    )
