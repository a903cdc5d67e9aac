"""Families, oldest document and server memory of an index."""

import random
from dataclasses import dataclass

from nearstream.workers.redis_index.client import ask, server_facts
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.families import unpack_facts
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import GROUP, RECORD, KeyKind
from nearstream.workers.redis_index.shard import Shard
from nearstream.workers.redis_index.values import number_bytes, time_of

_SAMPLE = 1_000  # groups of sixteen numbers that are read


@dataclass(frozen=True)
class Totals:
    """Facts about all shards of an index and their servers.

    Attributes:
        oldest_ms: When the first stored state was observed, in milliseconds since 1970. None: no state is stored.
        families: Families with a second member. Estimated.
        copies: Their members but the first of each. Estimated.
        used_bytes: Memory that all servers use.
        limit_bytes: The sum of their `maxmemory`. 0: at least one has none.
    """

    oldest_ms: int | None
    families: int
    copies: int
    used_bytes: int
    limit_bytes: int


async def totals(index: RedisIndex) -> Totals:
    """Return the facts about all shards and their servers.

    Raises:
        IndexUnavailableError: A server does not answer.
        SettingsError: Our user may not run INFO.
    """
    with errors_mapped():
        spans = [(shard, await _span(shard)) for shard in index.shards]
        found = [await _families(shard, *span) for shard, span in spans]
        oldest = [await _oldest_ms(shard, *span) for shard, span in spans]
    servers = await server_facts(index.shards[0].client)
    limits = [int(info.get("maxmemory") or 0) for info in servers]
    return Totals(
        oldest_ms=min((each for each in oldest if each is not None), default=None),
        families=sum(families for families, _ in found),
        copies=sum(copies for _, copies in found),
        used_bytes=sum(int(info["used_memory"]) for info in servers),
        limit_bytes=sum(limits) if all(limits) else 0,
    )


async def _span(shard: Shard) -> tuple[int, int]:
    """Return the first number that has not expired, and the last one that was given."""
    facts = await shard.facts()
    return int(facts.get(b"floor", 1)), int(facts.get(b"done", 0))


async def _families(shard: Shard, floor: int, last: int) -> tuple[int, int]:
    """Estimate the number of families with a second member, and of their copies."""
    first, count = floor // GROUP, last // GROUP - floor // GROUP + 1
    chosen = range(count) if count <= _SAMPLE else sorted(random.Random(1).sample(range(count), _SAMPLE))  # noqa: S311 - no secret
    families = copies = 0
    for index in chosen:
        stored = await ask(shard.client, "HGETALL", shard.tag + KeyKind.FAMILIES + number_bytes(first + index))
        sizes = [facts.size for packed in stored.values() if (facts := unpack_facts(0, packed, 0)) is not None]
        families, copies = families + len(sizes), copies + sum(max(size - 1, 0) for size in sizes)
    scale = count / max(len(chosen), 1)
    return round(families * scale), round(copies * scale)


async def _oldest_ms(shard: Shard, floor: int, last: int) -> int | None:
    """Return when the first stored state was observed."""
    first = floor // GROUP
    for group in range(first, min(last // GROUP, first + _SAMPLE) + 1):
        stored = await ask(shard.client, "HGETALL", shard.tag + KeyKind.RECORDS + number_bytes(group))
        records = [record for field, record in stored.items() if field[0] < GROUP]
        if records:
            return min(time_of(RECORD.unpack_from(record)[3]) for record in records)
    return None
