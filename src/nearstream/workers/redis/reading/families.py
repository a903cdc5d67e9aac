"""The families of an index: their size, and how fast they grow."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from nearstream.streams.matching.family import FamilyFacts, family_of_growth
from nearstream.streams.store.messages import Measure
from nearstream.streams.store.patching import PATCH
from nearstream.streams.store.record import unpack_document_key
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.scanning import stored_keys
from nearstream.workers.redis.server.client import pipelined, server_time_ms
from nearstream.workers.redis.server.layout import GROUP, LINK_SCORE, SITE_SCORE, KeyKind
from nearstream.workers.redis.store.families import unpack_growth

_PAGE = 500  # hashes of states that are read at once
_FIELDS = [GROUP + place for place in range(GROUP)]


async def families(index: RedisIndex, now_ms: int | None = None) -> AsyncIterator[FamilyFacts]:
    """Yield the facts of all families with a second member, in no order.

    This walks through all keys of the servers, so it takes a while where there are many.

    Args:
        index: The index.
        now_ms: Milliseconds since 1970. None: the time of the server.

    Raises:
        IndexUnavailableError: A server does not answer.
        SettingsError: Our user may not run SCAN.
    """
    now_ms = await server_time_ms(index.client) if now_ms is None else now_ms
    page: list[bytes] = []
    async for stored in stored_keys(index, KeyKind.STATES):
        page.append(stored.key)
        if len(page) == _PAGE:
            for facts in await families_in(index, page, now_ms):
                yield facts
            page.clear()
    for facts in await families_in(index, page, now_ms):
        yield facts


async def families_in(index: RedisIndex, groups: Sequence[bytes], now_ms: int) -> list[FamilyFacts]:
    """Return the families with a second member whose founders are in these hashes of states.

    It reads with plain commands, so that it works while the index is being rebuilt.

    Args:
        index: The index.
        groups: The keys of the hashes.
        now_ms: Milliseconds since 1970.

    Raises:
        IndexUnavailableError: A server does not answer.
    """
    found = await pipelined(index.client, [("HMGET", key, *_FIELDS) for key in groups])
    packed = {
        index.layout.number(key[-NUMBER_BYTES:], place): one
        for key, fields in zip(groups, found, strict=True)
        for place, one in enumerate(fields)
        if one
    }
    sizes = await _counts(index, list(packed), 1, LINK_SCORE - 1)
    sites = await _counts(index, list(packed), SITE_SCORE, 2 * SITE_SCORE)
    clocks = [
        int(now or 0) for now in await pipelined(index.client, [("HGET", key, "now") for key in index.facts_keys])
    ]
    facts: list[FamilyFacts] = []
    for (number, one), size, on_sites in zip(packed.items(), sizes, sites, strict=True):
        slot_now = clocks[index.layout.shape.home(number)]
        grown = one, size, 0, 0, list[bytes](), b"%d" % now_ms, on_sites
        family = family_of_growth(unpack_growth(index.layout, Measure(number, now_ms), slot_now, grown))
        facts += [family] if family else []
    return await _named(index, facts)


async def _counts(index: RedisIndex, founders: Sequence[int], low: int, high: int) -> list[int]:
    """Return how many scores of a range the members of these families have."""
    keys = [_tag(index, number) + KeyKind.MEMBERS + number.to_bytes(NUMBER_BYTES, "big") for number in founders]
    return await pipelined(index.client, [("ZCOUNT", key, low, high) for key in keys])


async def _named(index: RedisIndex, facts: Sequence[FamilyFacts]) -> list[FamilyFacts]:
    """Return the facts with the document keys of the founders that are stored."""
    layout = index.layout
    places = [
        (_tag(index, each.number) + KeyKind.RECORDS + layout.group(each.number), layout.field(each.number))
        for each in facts
    ]
    records = await pipelined(index.client, [("HGET", key, field) for key, field in places])
    moved = [at for at, record in enumerate(records) if record == PATCH]
    keys = [
        _tag(index, facts[at].number) + KeyKind.KEPT + facts[at].number.to_bytes(NUMBER_BYTES, "big") for at in moved
    ]
    for at, record in zip(moved, await pipelined(index.client, [("HGET", key, "r") for key in keys]), strict=True):
        records[at] = record
    names = [unpack_document_key(record) if record else "" for record in records]
    return [replace(each, founder=name) for each, name in zip(facts, names, strict=True)]


def _tag(index: RedisIndex, number: int) -> bytes:
    return index.layout.tag(index.layout.shape.home(number))
