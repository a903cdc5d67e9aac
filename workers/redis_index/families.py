"""The families of an index: their size, and how fast they grow."""

from collections.abc import AsyncIterator
from dataclasses import replace

from nearstream.schemas.event_id import family_id
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import SLOTS_MS, WINDOWS_MS, FamilyFacts
from nearstream.streams.records.record import unpack_document_key
from nearstream.workers.redis_index.client import ask, keys_of, server_time_ms
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import FAMILY, FEW, GROUP, LARGE, NUMBER_BYTES, RECORD, SLOT, SMALL, KeyKind
from nearstream.workers.redis_index.shard import Neighbours, Shard
from nearstream.workers.redis_index.values import integer_of, number_bytes, time_of

_RELATION_BYTES = 1 + NUMBER_BYTES  # of a remembered relation to another family


async def families(index: RedisIndex, now_ms: int | None = None) -> AsyncIterator[FamilyFacts]:
    """Yield the facts of all families with a second member, in no order.

    This walks through the keys of the server, so it takes a while where there are many.

    Args:
        index: The index.
        now_ms: Milliseconds since 1970. None: the time of the server.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    for shard in index.shards:
        now_ms = await server_time_ms(shard.client) if now_ms is None else now_ms
        with errors_mapped():
            async for key in keys_of(shard.client, shard.tag + KeyKind.FAMILIES):
                group = integer_of(key[-NUMBER_BYTES:])
                for field, packed in (await ask(shard.client, "HGETALL", key)).items():
                    facts = unpack_facts(group * GROUP + field[0], packed, now_ms)
                    if facts is not None:
                        yield await with_founder(shard, facts)


def family_of(found: Neighbours, candidate: Candidate) -> FamilyFacts:
    """Return the facts of the family that one of some neighbours belongs to, without its name.

    A document without copies is a family of one.
    """
    stored = found.families[candidate.number]
    facts = unpack_facts(stored.number, stored.facts, stored.now_ms) if stored.facts else None
    if facts is not None:
        return facts
    founder = (stored.founder.earlier if stored.founder else candidate.earlier).signature
    own_id, seen_ms = family_id(founder.document_key, founder.version, founder.scheme), founder.observed_at_ms
    return FamilyFacts(own_id, stored.number, stored.number, 1, seen_ms, seen_ms, (0, 0, 0))


def unpack_facts(number: int, packed: bytes, now_ms: int) -> FamilyFacts | None:
    """Return the facts of the family with this founder, without its name.

    Returns None if it has one member only, or if it has joined another family as a whole.
    """
    own_id, first_seen, representative, _, last, relations, count = FAMILY.unpack_from(packed)
    at = FAMILY.size
    if count > FEW:
        (many, _, _, left), at = LARGE.unpack_from(packed, at), at + LARGE.size
        count = integer_of(many)
    else:
        (_, left), at = SMALL.unpack_from(packed, at), at + SMALL.size + NUMBER_BYTES * count
    if count < 2:
        return None
    hour, day, week = _joins(packed[at + _RELATION_BYTES * relations :], integer_of(last), count, now_ms)
    return FamilyFacts(
        own_id.hex(),
        number,
        integer_of(representative),
        count - left,
        time_of(first_seen),
        integer_of(last),
        (hour, day, week),
    )


def _joins(packed: bytes, last_ms: int, count: int, now_ms: int) -> list[int]:
    """Return how many joined within each of the windows."""
    slots = _slots(packed, last_ms, count)
    return [
        sum(joins for own, slot, joins in slots if own == place and slot > (now_ms - window) // width)
        for place, (width, window) in enumerate(zip(SLOTS_MS, WINDOWS_MS, strict=True), 1)
    ]


def slots_of(packed: bytes) -> list[tuple[int, int, int]]:
    """Return the joins of a family in slots.

    Each has the place of its width from 1 on, its time divided by the width, and the joins.
    """
    _, _, _, _, last, relations, count = FAMILY.unpack_from(packed)
    at = FAMILY.size
    if count > FEW:
        count, at = integer_of(LARGE.unpack_from(packed, at)[0]), at + LARGE.size
    else:
        at += SMALL.size + NUMBER_BYTES * count
    return _slots(packed[at + _RELATION_BYTES * relations :], integer_of(last), count)


def _slots(packed: bytes, last_ms: int, count: int) -> list[tuple[int, int, int]]:
    slots = [(width, integer_of(slot), integer_of(joins)) for width, slot, joins in SLOT.iter_unpack(packed)]
    if last_ms and not slots:
        return [(place, last_ms // width, count - 1) for place, width in enumerate(SLOTS_MS, 1)]
    return slots


async def with_founder(shard: Shard, facts: FamilyFacts) -> FamilyFacts:
    """Return the facts with the document key of the founder, if that is stored.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    key = shard.tag + KeyKind.RECORDS + number_bytes(facts.number // GROUP)
    record = await ask(shard.client, "HGET", key, bytes((facts.number % GROUP,)))
    if not record:
        return facts
    return replace(facts, founder=unpack_document_key(record[RECORD.size :]))
