"""Read who belongs to a family, without a function of the server."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from nearstream.schemas.event_id import family_id
from nearstream.streams.index.details import hour_start
from nearstream.streams.index.family import FamilyFacts
from nearstream.streams.records.record import Recorded, superseded_by, unpack_record
from nearstream.workers.redis_index.client import Caller, ask, server_time_ms
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.families import unpack_facts
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import (
    CHUNK_BYTES,
    FAMILY,
    FEW,
    GROUP,
    LARGE,
    MEMBER,
    MEMBER_FIELD,
    NUMBER_BYTES,
    RECIPIENTS,
    RECORD,
    SENDERS,
    SMALL,
    KeyKind,
)
from nearstream.workers.redis_index.shard import Shard
from nearstream.workers.redis_index.sharding import shard_of
from nearstream.workers.redis_index.values import hash_of, integer_of, integers_of, number_bytes, numbers_of, time_of

_STEPS = 8  # of families that joined each other as a whole, as the functions of the server follow them
_AT_ONCE = 64  # records that are read at once


@dataclass(frozen=True)
class StoredFamily:
    """The family of a document, as it is stored.

    Attributes:
        facts: Its size and growth.
        collection: The collection of its documents.
        packed: Its facts in bytes. Empty: it has one member.
        shard: Where it is stored.
    """

    facts: FamilyFacts
    collection: str
    packed: bytes
    shard: Shard


@dataclass(frozen=True)
class MembersPage:
    """Some members of a family.

    Attributes:
        members: Those that are stored, in order of joining.
        next: The ordinal behind which others are, None if there are no more.
    """

    members: Sequence[Recorded]
    next: int | None


async def current_number(index: RedisIndex, document_key: str) -> int:
    """Return the number of a document within its shard, 0 without it.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    shard = index.shards[shard_of(document_key, len(index.shards))]
    chunk, name = hash_of(document_key, shard.layout)
    with errors_mapped():
        entry = await ask(index.asking, "HGET", shard.tag + KeyKind.REGISTRY + chunk, name[CHUNK_BYTES:])
        number = numbers_of(entry)[0] if entry else 0
        return number if number and await _record(index.asking, shard, number) else 0


async def stored_family(index: RedisIndex, document_key: str) -> StoredFamily | None:
    """Return the family of a document, or None if the index does not have the document.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    number = await current_number(index, document_key)
    if not number:
        return None
    shard, asking = index.shards[shard_of(document_key, len(index.shards))], index.asking
    collection = document_key.partition("/")[0]
    with errors_mapped():
        founder = await _founder(asking, shard, number)
        key = shard.tag + KeyKind.FAMILIES + number_bytes(founder // GROUP)
        packed = await ask(asking, "HGET", key, bytes((founder % GROUP,))) or b""
        facts = unpack_facts(founder, packed, await server_time_ms(asking)) if packed else None
        if facts is not None:
            return StoredFamily(facts, collection, packed, shard)
        record = await _record(asking, shard, number)
    if record is None:
        return None
    own_id = family_id(document_key, record.version, index.address.scheme)
    seen_ms = record.observed_at_ms
    return StoredFamily(FamilyFacts(own_id, number, number, 1, seen_ms, seen_ms, (0, 0, 0)), collection, b"", shard)


async def family_of_document(index: RedisIndex, document_key: str) -> FamilyFacts | None:
    """Return the facts of the family of a document, None without the document.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    family = await stored_family(index, document_key)
    return family.facts if family else None


async def members(index: RedisIndex, family: StoredFamily, after: int, limit: int) -> MembersPage:
    """Return the members of a family with the ordinals behind `after`, of at most `limit` ordinals.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        first, count, numbers = await _numbers(index.asking, family, after, limit)
        found: list[Recorded] = []
        for start in range(0, len(numbers), _AT_ONCE):
            some = [number for number in numbers[start : start + _AT_ONCE] if number]
            records = await asyncio.gather(*(_living(index.asking, family.shard, number) for number in some))
            found += [record for record in records if record is not None]
    end = first + len(numbers)
    return MembersPage(found, end if numbers and end < count else None)


async def living(index: RedisIndex, family: StoredFamily, number: int) -> Recorded | None:
    """Return the document of a state of a family, None if it cannot be found.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        return await _living(index.asking, family.shard, number)


async def addresses(index: RedisIndex, family: StoredFamily) -> tuple[list[str], list[str]]:
    """Return the senders and recipients of the last hour, in hex.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        since_ms = hour_start(await server_time_ms(index.asking))
        key = family.shard.tag + KeyKind.ADDRESSES + number_bytes(family.facts.number)
        found = [
            await ask(index.asking, "ZRANGEBYSCORE", key + letter.encode(), since_ms, "+inf")
            for letter in (SENDERS, RECIPIENTS)
        ]
    senders, recipients = ([address.hex() for address in some] for some in found)
    return senders, recipients


def spellings(name: str) -> list[str]:
    """Return an id as given, then with and without angle brackets."""
    bare = name.strip().removeprefix("<").removesuffix(">")
    return list(dict.fromkeys((name, f"<{bare}>", bare))) if bare else [name]


async def count_addresses(index: RedisIndex, family: StoredFamily) -> tuple[int, int]:
    """Return the number of senders and of recipients of the last hour.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        since_ms = hour_start(await server_time_ms(index.asking))
        key = family.shard.tag + KeyKind.ADDRESSES + number_bytes(family.facts.number)
        senders, recipients = [
            int(await ask(index.asking, "ZCOUNT", key + letter.encode(), since_ms, "+inf"))
            for letter in (SENDERS, RECIPIENTS)
        ]
    return senders, recipients


async def _numbers(asking: Caller, family: StoredFamily, after: int, limit: int) -> tuple[int, int, list[int]]:
    """Return up to `limit` numbers behind an ordinal, 0 for one that left.

    Before them: the ordinal behind which they are, as far as it is still stored, and the count of all ordinals.
    """
    packed = family.packed
    if not packed:
        return after, 1, [family.facts.number][after : after + limit]
    *_, count = FAMILY.unpack_from(packed)
    if count <= FEW:
        at = FAMILY.size + SMALL.size
        return after, count, integers_of(packed[at : at + NUMBER_BYTES * count])[after : after + limit]
    many, base, _, _ = LARGE.unpack_from(packed, FAMILY.size)
    after = max(after, integer_of(base))  # all before it have left
    start = NUMBER_BYTES * (after - integer_of(base))
    key = family.shard.tag + KeyKind.MEMBERS + number_bytes(family.facts.number)
    log = await ask(asking, "GETRANGE", key, start, start + NUMBER_BYTES * limit - 1)
    return after, integer_of(many), integers_of(log)


async def _founder(asking: Caller, shard: Shard, number: int) -> int:
    """Return the founder of the family of a state, as `families.of` does."""
    for step in range(_STEPS):
        packed = await _field(asking, shard, number, MEMBER_FIELD)
        if not packed:
            break
        stored, place, _ = MEMBER.unpack_from(packed)
        family = integer_of(stored)
        if family == number or (step and not integer_of(place)):
            break
        number = family
    return number


async def _living(asking: Caller, shard: Shard, number: int) -> Recorded | None:
    """Return the document of a state that can be found, else None."""
    record = await _record(asking, shard, number)
    if record is None or superseded_by(record.packed):
        return None
    if number < int(await ask(asking, "HGET", shard.key, "floor") or 1):
        spared = await ask(asking, "ZSCORE", shard.tag + KeyKind.SPARED, number_bytes(number))
        return None if spared is None else record
    return record


async def _record(asking: Caller, shard: Shard, number: int) -> Recorded | None:
    """Return the document of a stored state, without its text."""
    record = await _field(asking, shard, number, 0)
    if not record:
        return None
    _, _, _, observed, version, *_ = RECORD.unpack_from(record)
    return unpack_record(record[RECORD.size :], "", version, time_of(observed))


async def _field(asking: Caller, shard: Shard, number: int, kind: int) -> bytes | None:
    """Return a field of a state, wherever it is stored."""
    slot = bytes((kind + number % GROUP,))
    group_key = shard.tag + KeyKind.RECORDS + number_bytes(number // GROUP)
    for key in (group_key, shard.tag + KeyKind.SPARED_RECORD + number_bytes(number)):
        found: bytes | None = await ask(asking, "HGET", key, slot)
        if found:
            return found
    return None
