"""Count families, and documents by source, over the whole index."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.scanning import KeySamples, stored_keys
from nearstream.workers.redis.server.client import ask, pipelined, server_facts
from nearstream.workers.redis.server.layout import GROUP, NO_LEASE, KeyKind

_PAGE = 500  # hashes of states that are read at once


async def families(index: RedisIndex, now_ms: int = 0) -> AsyncIterator[FamilyFacts]:
    """Yield the facts of all families with a second member, in no order.

    This walks through all keys of the servers, so it takes a while where there are many.

    Args:
        index: The index.
        now_ms: Milliseconds since 1970. 0: the time of the server.

    Raises:
        IndexUnavailableError: A server does not answer.
        IndexLostError: The index was emptied.
        SettingsError: Our user may not run SCAN.
    """
    page: list[bytes] = []
    async for stored in stored_keys(index, KeyKind.STATES):
        page.append(stored.key)
        if len(page) == _PAGE:
            for facts in await families_in(index, page, now_ms):
                yield facts
            page.clear()
    for facts in await families_in(index, page, now_ms):
        yield facts


async def families_in(index: RedisIndex, groups: Sequence[bytes], now_ms: int = 0) -> list[FamilyFacts]:
    """Return the families with a second member whose founders are in these hashes of states.

    Args:
        index: The index, which may be under rebuild.
        groups: The keys of the hashes.
        now_ms: Milliseconds since 1970. 0: the time of the server.

    Raises:
        IndexUnavailableError: A server does not answer.
        IndexLostError: The index was emptied.
    """
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
    """Facts about all slots of an index and their servers.

    Attributes:
        families: Families with a second member. Estimated.
        copies: Their members but the first of each. Estimated.
        used_bytes: Memory that all servers use.
        limit_bytes: The sum of their `maxmemory`. 0: at least one has none.
    """

    families: int
    copies: int
    used_bytes: int
    limit_bytes: int


async def totals(index: RedisIndex, keys: KeySamples) -> Totals:
    """Return the facts about all slots and their servers.

    Args:
        index: The index.
        keys: Samples of its keys.

    Raises:
        IndexUnavailableError: A server does not answer.
        IndexLostError: The index was emptied.
        SettingsError: Our user may not run INFO.
    """
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
