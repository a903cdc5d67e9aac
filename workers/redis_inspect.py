"""What an index holds of one document."""

from dataclasses import dataclass

from streams.index import BAND_CAP, LINEAGE_CAP, WALK
from streams.scheme import Keys
from workers.redis_calls import ask, errors_mapped
from workers.redis_index import RedisIndex
from workers.redis_part import Part
from workers.redis_record import superseded_by
from workers.redis_reply import RECORD, bucket_places, hash_of, number_bytes, numbers_of, time_of
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
        observed_at_ms: As the producer says, milliseconds since 1970.
        version: First 8 bytes of the digest, in hex.
        superseded_by: The number from which on another state is current; 0: it is the current one.
        reports: Events that were reported about it and are kept.
        spared: A report keeps it beyond its retention.
        record_bytes: What its record takes.
    """

    number: int
    position: tuple[int, int] | None
    observed_at_ms: int
    version: str
    superseded_by: int
    reports: int
    spared: bool
    record_bytes: int


@dataclass(frozen=True)
class BucketFacts:
    """One bucket of a document.

    Attributes:
        kind: `digest`, `lineage`, `band` or `anchor`.
        key: In hex.
        entries: Numbers that it holds, those not yet swept too.
        cap: Most that it may hold.
        overflows: How often an admission displaced another one, or found no place; 0 if it is not counted apart.
    """

    kind: str
    key: str
    entries: int
    cap: int
    overflows: int


@dataclass(frozen=True)
class DocumentFacts:
    """What an index holds of a document: its states, the newest first, and its buckets."""

    document_key: str
    states: tuple[StateFacts, ...]
    buckets: tuple[BucketFacts, ...]


async def inspect_document(index: RedisIndex, document_key: str, keys: Keys | None = None) -> DocumentFacts | None:
    """What the index holds of a document; None if it does not hold it.

    Args:
        index: The index.
        document_key: `<collection>/<id>`.
        keys: Those of its signature, to see its buckets; the index itself keeps no keys.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    part = index.parts[part_of(document_key, len(index.parts))]
    with errors_mapped():
        states = await _states(part, document_key)
        if not states:
            return None
        cap = index.address.limits.bucket_cap
        buckets = [await _bucket(part, *place, cap) for place in bucket_places(keys, part.layout)] if keys else []
        return DocumentFacts(document_key, tuple(states), tuple(buckets))


async def _states(part: Part, document_key: str) -> list[StateFacts]:
    chunk, name = hash_of(document_key, part.layout)
    current = await ask(part.client, "HGET", part.tag + b"i" + chunk, name[4:])
    number = numbers_of(current)[0] if current else 0
    states: list[StateFacts] = []
    while number and len(states) < WALK:
        found = await _state(part, number, name)
        if found is None:
            break
        state, number = found
        states.append(state)
    return states


async def _state(part: Part, number: int, name: bytes) -> tuple[StateFacts, int] | None:
    """The state of this number and the number before it."""
    slot, member = number % 16, number_bytes(number)
    fields = [bytes((slot,)), bytes((32 + slot,))]
    spared = await ask(part.client, "ZSCORE", part.tag + b"s", member) is not None
    for key in (part.tag + b"r" + number_bytes(number // 16), part.tag + b"k" + member):
        record, reports = await ask(part.client, "HMGET", key, *fields)
        if record:
            break
    else:
        return None
    prev, partition, offset, observed, version, _, _, doc = RECORD.unpack_from(record)
    if doc != name:
        return None
    position = None if partition == _NOWHERE else (partition, int.from_bytes(offset, "big"))
    dead, _ = superseded_by(record[RECORD.size :])
    count = len(reports or b"") // _REPORT_BYTES
    state = StateFacts(number, position, time_of(observed), version.hex(), dead, count, spared, len(record))
    return state, int.from_bytes(prev, "big")


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
    return BucketFacts(kind, key.hex(), entries, cap, int(overflows or 0))
