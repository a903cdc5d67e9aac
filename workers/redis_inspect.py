"""What an index holds of one document."""

from dataclasses import dataclass

from schemas.signature import Signature
from streams.index import BAND_CAP, LINEAGE_CAP, MARKS, WALK
from streams.scheme import Keys
from workers.redis_calls import ask, errors_mapped
from workers.redis_index import RedisIndex
from workers.redis_part import Part
from workers.redis_reading import server_time_ms
from workers.redis_record import superseded_by, unpack_signature
from workers.redis_reply import RECORD, bucket_name, bucket_places, hash_of, number_bytes, numbers_of, time_of
from workers.redis_split import part_of

_REPORT_BYTES = 17
_NOWHERE = 0xFFFF
_HEAD_BYTES = 5 * 12


@dataclass(frozen=True)
class StateFacts:
    """One stored state of a document.

    Attributes:
        number: In order of admission.
        position: Partition and offset of its record; None: it had none, or the document was seen again.
        signature: As the record keeps it.
        superseded_by: The number from which on another state is current; 0: it is the current one.
        reports: Events that were reported about it and are kept.
        spared: A report keeps it beyond its retention.
        expired: It is found no more, but not yet swept.
        expires_at_ms: When it is found no more, milliseconds since 1970; None: never, or it is not known since when.
        record_bytes: What its record takes.
    """

    number: int
    position: tuple[int, int] | None
    signature: Signature
    superseded_by: int
    reports: int
    spared: bool
    expired: bool
    expires_at_ms: int | None
    record_bytes: int


@dataclass(frozen=True)
class BucketFacts:
    """One bucket of a document.

    Attributes:
        kind: `digest`, `lineage`, `band` or `anchor`.
        name: Its chunk and field, as the facts of the index name it.
        key: In hex.
        entries: Numbers that it holds, those not yet swept too.
        cap: Most that it may hold.
        overflows: How often an admission displaced another one, or found no place; 0 if it is not counted apart.
    """

    kind: str
    name: str
    key: str
    entries: int
    cap: int
    overflows: int

    @property
    def is_hot(self) -> bool:
        """Whether it is full, or was: neighbours may be missing from it."""
        return self.entries >= self.cap or self.overflows > 0


@dataclass(frozen=True)
class DocumentFacts:
    """What an index holds of a document: its states, the newest first, and its buckets."""

    document_key: str
    states: tuple[StateFacts, ...]
    buckets: tuple[BucketFacts, ...]


@dataclass(frozen=True)
class _Reading:
    """A part as it is read now: server time, age in ms at which numbers expire (0: never), the scheme's name."""

    part: Part
    now_ms: int
    retention_ms: int
    scheme: str


async def inspect_document(
    index: RedisIndex, document_key: str, keys: Keys | None = None, now_ms: int | None = None
) -> DocumentFacts | None:
    """What the index holds of a document; None if it does not hold it.

    Args:
        index: The index.
        document_key: `<collection>/<id>`.
        keys: Those of its signature, to see its buckets; the index itself keeps no keys.
        now_ms: Milliseconds since 1970; None: by the server's clock.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    part = index.parts[part_of(document_key, len(index.parts))]
    limits = index.address.limits
    with errors_mapped():
        now_ms = await server_time_ms(part.client) if now_ms is None else now_ms
        reading = _Reading(part, now_ms, limits.retention_seconds * 1000, index.address.scheme)
        states = await _states(reading, document_key)
        if not states:
            return None
        places = bucket_places(keys, part.layout) if keys else ()
        buckets = [await _bucket(part, *place, limits.bucket_cap) for place in places]
        return DocumentFacts(document_key, tuple(states), tuple(buckets))


async def _states(reading: _Reading, document_key: str) -> list[StateFacts]:
    part = reading.part
    chunk, name = hash_of(document_key, part.layout)
    current = await ask(part.client, "HGET", part.tag + b"i" + chunk, name[4:])
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
    """The state of this number and the number before it."""
    part, slot, member = reading.part, number % 16, number_bytes(number)
    fields = [bytes((slot,)), bytes((32 + slot,))]
    for key in (part.tag + b"r" + number_bytes(number // 16), part.tag + b"k" + member):
        record, reports = await ask(part.client, "HMGET", key, *fields)
        if record:
            break
    else:
        return None
    prev, partition, offset, observed, version, _, _, doc = RECORD.unpack_from(record)
    if doc != name:
        return None
    packed = record[RECORD.size :]
    spared, expired, expires_at_ms = await _lifetime(reading, number)
    state = StateFacts(
        number=number,
        position=None if partition == _NOWHERE else (partition, int.from_bytes(offset, "big")),
        signature=unpack_signature(packed, reading.scheme, version, time_of(observed)),
        superseded_by=superseded_by(packed)[0],
        reports=len(reports or b"") // _REPORT_BYTES,
        spared=spared,
        expired=expired,
        expires_at_ms=expires_at_ms,
        record_bytes=len(record),
    )
    return state, int.from_bytes(prev, "big")


async def _lifetime(reading: _Reading, number: int) -> tuple[bool, bool, int | None]:
    """Whether a report spares this number, whether it has expired, when it does."""
    part, retention_ms = reading.part, reading.retention_ms
    floor = int(await ask(part.client, "HGET", part.key, "floor") or 1)
    if not retention_ms:
        return False, number < floor, None
    seen = await ask(part.client, "ZSCORE", part.tag + b"s", number_bytes(number))
    if seen is not None and float(seen) + retention_ms > reading.now_ms:
        return True, False, int(float(seen)) + retention_ms
    if number < floor:
        return False, True, None
    given_ms = await _given_ms(part, number)
    if given_ms is None:
        return False, False, None
    expires_at_ms = given_ms + retention_ms + retention_ms // MARKS
    return False, expires_at_ms <= reading.now_ms, expires_at_ms


async def _given_ms(part: Part, number: int) -> int | None:
    """The mark under which a number was given: it expires with it. What stands before the first expires with that."""
    low, high = 0, 2 * MARKS
    while high - low > 1:
        middle = (low + high) // 2
        mark = await _mark(part, middle)
        if mark is not None and mark[1] <= number:
            low = middle
        else:
            high = middle
    mark = await _mark(part, low)
    return mark and mark[0]


async def _mark(part: Part, at: int) -> tuple[int, int] | None:
    """Milliseconds since 1970 of a mark, and the first number that was given from then on."""
    found = await ask(part.client, "LINDEX", part.tag + b"g", at)
    if found is None:
        return None
    ms, _, number = found.partition(b":")
    return int(ms), int(number)


async def _bucket(part: Part, letter: bytes, place: bytes, key: bytes, anchor_cap: int) -> BucketFacts:
    kind, cap = {
        b"x": ("digest", BAND_CAP),
        b"l": ("lineage", LINEAGE_CAP),
        b"b": ("band", BAND_CAP),
        b"a": ("anchor", anchor_cap),
    }[letter]
    packed = await ask(part.client, "HGET", part.tag + letter + place[:4], place[4:]) or b""
    entries = len(numbers_of(packed)) if packed else 0
    if letter == b"a" and len(packed) == _HEAD_BYTES:
        spill = await ask(part.client, "GETRANGE", part.tag + b"w" + place, 0, -1)
        entries += min(len(spill) // 5, cap - entries)
    overflows = await ask(part.client, "HGET", part.tag + b"h", letter + place)
    return BucketFacts(kind, bucket_name(place), key.hex(), entries, cap, int(overflows or 0))
