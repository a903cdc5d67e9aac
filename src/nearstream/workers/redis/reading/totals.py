"""Families and server memory of an index."""

from dataclasses import dataclass

from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.families import families_in
from nearstream.workers.redis.reading.scanning import KeySamples
from nearstream.workers.redis.server.client import server_facts
from nearstream.workers.redis.server.layout import KeyKind


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
