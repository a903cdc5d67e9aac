"""The families of an index: their size, and how fast they grow."""

from collections.abc import AsyncIterator, Sequence

from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.scanning import stored_keys
from nearstream.workers.redis.server.client import ask, pipelined
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
