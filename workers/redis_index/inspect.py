"""What an index stores about one document."""

from dataclasses import dataclass

from nearstream.schemas.events import RELATIONS
from nearstream.streams.records.record import superseded_by, unpack_signature
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.store.limits import ANCHOR_HEADS, BAND_CAP, LINEAGE_CAP, MARKS, WALK
from nearstream.workers.redis_index.client import ask, server_time_ms
from nearstream.workers.redis_index.document_facts import BucketFacts, DocumentFacts, MemberFacts, PairFacts, StateFacts
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.families import unpack_facts, with_founder
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import (
    CHUNK_BYTES,
    GROUP,
    MEMBER,
    MEMBER_FIELD,
    NO_PARTITION,
    NUMBER_BYTES,
    PAIR_SIZE,
    RECORD,
    SENT,
    KeyKind,
)
from nearstream.workers.redis_index.shard import Shard
from nearstream.workers.redis_index.sharding import shard_of
from nearstream.workers.redis_index.shared_text import whole_record
from nearstream.workers.redis_index.values import (
    bucket_name,
    bucket_positions,
    hash_of,
    integer_of,
    integers_of,
    number_bytes,
    numbers_of,
    time_of,
)


@dataclass(frozen=True)
class _Reading:
    """A shard at the time of reading.

    Attributes:
        shard: The shard.
        now_ms: The time, in milliseconds since 1970.
        retention_ms: Age at which numbers expire. 0: never.
        scheme: Name of the scheme.
    """

    shard: Shard
    now_ms: int
    retention_ms: int
    scheme: str


async def inspect_document(
    index: RedisIndex, document_key: str, keys: Keys | None = None, now_ms: int | None = None
) -> DocumentFacts | None:
    """Return what the index stores about a document, or None.

    Args:
        index: The index.
        document_key: `<collection>/<id>`.
        keys: Keys of its signature, needed to find its buckets because the index does not store keys.
        now_ms: Milliseconds since 1970. None: the time of the server.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    shard = index.shards[shard_of(document_key, len(index.shards))]
    limits = index.address.limits
    with errors_mapped():
        now_ms = await server_time_ms(shard.client) if now_ms is None else now_ms
        reading = _Reading(shard, now_ms, limits.retention_seconds * 1000, index.address.scheme)
        states = await _states(reading, document_key)
        if not states:
            return None
        positions = bucket_positions(keys, shard.layout) if keys else ()
        buckets = [await _bucket(shard, *position, limits.bucket_cap, states[0].number) for position in positions]
        return DocumentFacts(document_key, tuple(states), tuple(buckets))


async def _states(reading: _Reading, document_key: str) -> list[StateFacts]:
    shard = reading.shard
    chunk, name = hash_of(document_key, shard.layout)
    current = await ask(shard.client, "HGET", shard.tag + KeyKind.REGISTRY + chunk, name[CHUNK_BYTES:])
    number = numbers_of(current)[0] if current else 0
    states: list[StateFacts] = []
    while number and len(states) < WALK:
        found = await _state(reading, number, name)
        if found is None:
            break
        state, number = found
        states.append(state)
    return states


async def _state(reading: _Reading, number: int, name: bytes) -> tuple[StateFacts, int] | None:
    """Return the state of this number and the number of the previous state.

    None if there is no such state, or if it is of another document.
    """
    shard, slot = reading.shard, number % GROUP
    group_key = shard.tag + KeyKind.RECORDS + number_bytes(number // GROUP)
    spared_key = shard.tag + KeyKind.SPARED_RECORD + number_bytes(number)
    for key in (group_key, spared_key):
        record, member = await ask(shard.client, "HMGET", key, bytes((slot,)), bytes((MEMBER_FIELD + slot,)))
        if record:
            break
    else:
        return None
    prev, partition, offset, observed, version, _, _, doc = RECORD.unpack_from(record)
    if doc != name:
        return None
    packed = await whole_record(shard, record[RECORD.size :])
    if packed is None:
        return None
    spared, expired, expires_at_ms = await _lifetime(reading, number)
    state = StateFacts(
        number=number,
        position=None if partition == NO_PARTITION else (partition, int.from_bytes(offset, "big")),
        signature=unpack_signature(packed, reading.scheme, version, time_of(observed)),
        superseded_by=superseded_by(packed),
        family=await _family(reading, number, member),
        pairs=_pairs(member or b""),
        spared=spared,
        expired=expired,
        expires_at_ms=expires_at_ms,
        record_bytes=len(record),
    )
    return state, int.from_bytes(prev, "big")


async def _family(reading: _Reading, number: int, packed: bytes | None) -> MemberFacts | None:
    """Return the place of a state in its family, None if it is alone in it.

    A founder that was unique when it arrived has nothing stored about itself.
    """
    founder, ordinal = number, 1
    if packed:
        stored, place, _ = MEMBER.unpack_from(packed)
        founder, ordinal = integer_of(stored), integer_of(place)
    key = reading.shard.tag + KeyKind.FAMILIES + number_bytes(founder // GROUP)
    facts = await ask(reading.shard.client, "HGET", key, bytes((founder % GROUP,)))
    known = unpack_facts(founder, facts, reading.now_ms) if facts else None
    if known is not None:
        known = await with_founder(reading.shard, known)
    return MemberFacts(founder, ordinal, known) if packed or known else None


def _pairs(packed: bytes) -> tuple[PairFacts, ...]:
    """Return the related documents that are stored with a member."""
    starts = range(MEMBER.size, len(packed), PAIR_SIZE)
    return tuple(
        PairFacts(
            integer_of(packed[at + 1 : at + 1 + NUMBER_BYTES]), RELATIONS[packed[at] % SENT - 1], packed[at] >= SENT
        )
        for at in starts
    )


async def _lifetime(reading: _Reading, number: int) -> tuple[bool, bool, int | None]:
    """Return whether a report spares this number, whether it has expired, and when it expires."""
    shard, retention_ms = reading.shard, reading.retention_ms
    floor = int(await ask(shard.client, "HGET", shard.key, "floor") or 1)
    if not retention_ms:
        return False, number < floor, None
    reported_ms = await ask(shard.client, "ZSCORE", shard.tag + KeyKind.SPARED, number_bytes(number))
    if reported_ms is not None and float(reported_ms) + retention_ms > reading.now_ms:
        return True, False, int(float(reported_ms)) + retention_ms
    if number < floor:
        return False, True, None
    mark_ms = await _mark_time(shard, number)
    if mark_ms is None:
        return False, False, None
    expires_at_ms = mark_ms + retention_ms + retention_ms // MARKS
    return False, expires_at_ms <= reading.now_ms, expires_at_ms


async def _mark_time(shard: Shard, number: int) -> int | None:
    """Return the time of the mark with which a number expires.

    Numbers before the first mark expire with that.
    """
    low, high = 0, 2 * MARKS
    while high - low > 1:
        middle = (low + high) // 2
        mark = await _mark(shard, middle)
        if mark is not None and mark[1] <= number:
            low = middle
        else:
            high = middle
    mark = await _mark(shard, low)
    return mark and mark[0]


async def _mark(shard: Shard, index: int) -> tuple[int, int] | None:
    """Return the time of a mark, in milliseconds since 1970, and its first number."""
    found = await ask(shard.client, "LINDEX", shard.tag + KeyKind.MARKS, index)
    if found is None:
        return None
    ms, _, number = found.partition(b":")
    return int(ms), int(number)


async def _bucket(
    shard: Shard, kind: KeyKind, position: bytes, key: bytes, anchor_cap: int, number: int
) -> BucketFacts:
    """Return the facts of a bucket, and whether a number is in it."""
    cap = {KeyKind.LINEAGE: LINEAGE_CAP, KeyKind.ANCHOR: anchor_cap}.get(kind, BAND_CAP)
    chunk, field = position[:CHUNK_BYTES], position[CHUNK_BYTES:]
    packed = await ask(shard.client, "HGET", shard.tag + kind + chunk, field) or b""
    numbers = numbers_of(packed) if packed else []
    if kind is KeyKind.ANCHOR and len(packed) == NUMBER_BYTES * ANCHOR_HEADS:
        spill = await ask(shard.client, "GETRANGE", shard.tag + KeyKind.SPILL + position, 0, -1)
        # Only the newest count, which are at its end.
        numbers += integers_of(spill)[-(cap - ANCHOR_HEADS) :] if cap > ANCHOR_HEADS else []
    overflows = await ask(shard.client, "HGET", shard.tag + KeyKind.OVERFLOWS, kind + position)
    return BucketFacts(
        kind.label, bucket_name(position), key.hex(), len(numbers), cap, int(overflows or 0), number in numbers
    )
