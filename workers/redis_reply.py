"""Bytes that the index functions on the server take and give."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from schemas.signature import Signature
from streams.index import Admission, Admitted, Candidate, Position, Report, Status, in_order
from streams.scheme import Keys
from workers.redis_address import Layout
from workers.redis_record import pack_signature, unpack_signature

# Registry chunk, hash, flags, partition, offset (6), previous + 1 (6), observed (6), version, bands, anchors: the twin
# of ADMISSION in index.lua. Numbers of 5 and 6 bytes go in as bytes.
_ADMISSION = struct.Struct(">4s9sBH6s6s6s8sBH")
RECORD = struct.Struct(">5sH6s6s8sBH9s")  # the twin of RECORD in index.lua, to the hash of the document key
_ANSWER = struct.Struct(">HB")
_CANDIDATE = struct.Struct(">5sBHB")
_IS_REMOVAL, _HAS_POSITION, _HAS_LINEAGE, _IS_COVER = 1, 2, 4, 8
_CUT, _HAS_PREVIOUS, _COMPLETE, _FOUND = 1, 2, 4, 8
_BY_DIGEST, _BY_LINEAGE, _IN_FULL = 1, 2, 4
_NUMBER_BYTES = 5
_STATUS_BYTES = 1 + _NUMBER_BYTES
_NO_KEY = bytes(8)
_CHUNK_BYTES, _FIELD_DIGITS = 4, 7
_FIRST_FIELD, _FIELDS = 10**6, 2**23 - 10**6  # of 7 digits, as which the server keeps 3 bytes
_POWERS = 10 ** np.arange(_FIELD_DIGITS - 1, -1, -1, dtype=np.uint32)
_SHIFT_MS = 1 << 46  # times before 1970 are positive too
_LAST_MS = (1 << 48) - 1
_STATUS = {
    b"n": Status.NEW,
    b"u": Status.UPDATED,
    b"c": Status.UNCHANGED,
    b"r": Status.REPLAYED,
    b"s": Status.STALE,
    b"d": Status.REMOVED,
}
_RELATIONS = ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap")


@dataclass(frozen=True)
class Kept:
    """What an answer needs of a state."""

    signature: Signature
    anchor_count: int


def pack_admissions(batch: Sequence[Admission], layout: Layout) -> list[bytes]:
    """One argument for each admission."""
    places = _places([admission.keys for admission in batch], layout)
    return [
        _pack(admission, layout) + buckets + _payload(admission.signature)
        for admission, buckets in zip(batch, places, strict=True)
    ]


def pack_keys(keys: Keys, layout: Layout) -> bytes:
    """Keys to be looked up, as the argument of an admission that nothing is stored of."""
    (packed,) = pack_admissions([Admission("", None, keys)], layout)
    return packed


def pack_items(items: Sequence[Admission | Position], layout: Layout) -> list[bytes]:
    """One argument for each; a position alone is one that moves the checkpoint where no document stands."""
    packed = iter(pack_admissions([item for item in items if isinstance(item, Admission)], layout))
    return [next(packed) if isinstance(item, Admission) else _pack_cover(item, layout) for item in items]


def pack_report(pair: Report) -> bytes:
    """Both numbers, a code of the relation, the event id."""
    code = _RELATIONS.index(pair.relation) + 1 if pair.relation in _RELATIONS else 0
    return number_bytes(pair.newer) + number_bytes(pair.older) + bytes((code,)) + bytes.fromhex(pair.event_id)


def unpack_records(reply: Sequence[bytes], scheme: str) -> dict[int, Kept]:
    """States by number, of packed numbers and their records; no record holds the name of the scheme."""
    packed, *records = reply
    return {number: _kept(record, scheme) for number, record in zip(_integers(packed), records, strict=True)}


def _kept(record: bytes, scheme: str) -> Kept:
    _, _, _, observed, version, _, anchors, _ = RECORD.unpack_from(record)
    return Kept(unpack_signature(record[RECORD.size :], scheme, version, time_of(observed)), anchors)


def unpack_answers(
    items: Sequence[Admission | Position], answers: Sequence[bytes], records: Mapping[int, Kept]
) -> list[Admitted]:
    """Answers to the first admissions of the items, which lend the states that they brought themselves."""
    states = dict(records)
    told: list[bytes] = []
    for item, answer in zip(items, answers, strict=False):
        if isinstance(item, Admission):
            told.append(answer)
            if answer[:1] in b"nu" and item.signature is not None:
                states[_integer(answer[1:_STATUS_BYTES])] = Kept(item.signature, len(item.keys.anchors))
    return [unpack_answer(answer, states.__getitem__) for answer in told]


def unpack_answer(answer: bytes, kept: Callable[[int], Kept]) -> Admitted:
    """One answer; `kept` gives the state of a number that it names."""
    status, number = _STATUS[answer[:1]], _integer(answer[1:_STATUS_BYTES])
    full, flags = _ANSWER.unpack_from(answer, _STATUS_BYTES)
    rest = answer[_STATUS_BYTES + _ANSWER.size :]
    if status is Status.REMOVED:
        ids = tuple(rest[start : start + 16].hex() for start in range(0, len(rest), 16))
        return Admitted(status, retracted=ids, complete=bool(flags & _COMPLETE), found=bool(flags & _FOUND))
    named = [_candidate(kept, *fields) for fields in _CANDIDATE.iter_unpack(rest)]
    previous = named.pop(0) if flags & _HAS_PREVIOUS else None
    return Admitted(status, number, previous, in_order(named), full, bool(flags & _CUT))


def _candidate(kept: Callable[[int], Kept], packed: bytes, bands: int, anchors: int, flags: int) -> Candidate:
    number = _integer(packed)
    state = kept(number)
    found_by = (bool(flags & _BY_DIGEST), bool(flags & _BY_LINEAGE), bool(flags & _IN_FULL))
    return Candidate(number, state.signature, bands, anchors, state.anchor_count, *found_by)


def _pack_cover(position: Position, layout: Layout) -> bytes:
    return _pack(Admission("", None, Keys(b"", None, (), ()), position), layout, _IS_COVER)


def hash_of(document_key: str, layout: Layout) -> tuple[bytes, bytes]:
    """Chunk of the registry, and the name of the document there.

    No id is part of a key of the store: it could hold a brace, which would move the slot, or be chosen to collide.
    """
    name = blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=9, key=layout.epoch).digest()
    return _chunk(name, layout.registry), name


def _pack(admission: Admission, layout: Layout, flags: int = 0) -> bytes:
    keys, position, signature = admission.keys, admission.position, admission.signature
    flags |= (_IS_REMOVAL if signature is None else 0) | (_HAS_LINEAGE if keys.lineage is not None else 0)
    partition, offset, previous = 0xFFFF, 0, -1
    if position is not None:
        flags |= _HAS_POSITION
        partition, offset, previous = position.partition, position.offset, position.previous
    return _ADMISSION.pack(
        *hash_of(admission.document_key, layout),
        flags,
        partition,
        offset.to_bytes(6, "big"),
        (previous + 1).to_bytes(6, "big"),
        b"" if signature is None else _time(signature.observed_at_ms),
        _NO_KEY if signature is None else signature.digest[:8],
        len(keys.bands),
        len(keys.anchors),
    )


def _payload(signature: Signature | None) -> bytes:
    if signature is None:
        return b""
    return pack_signature(signature, observed_in_head=0 <= signature.observed_at_ms + _SHIFT_MS <= _LAST_MS)


def _chunk(key: bytes, count: int) -> bytes:
    return (int.from_bytes(key[:4], "big") % count).to_bytes(4, "big")


def _places(batch: Sequence[Keys], layout: Layout) -> list[bytes]:
    """Chunk and field of all keys of each document, joined: digest, lineage, bands, anchors.

    The first half of a key modulo the count of chunks is the chunk, the other half in 7 digits the field.
    """
    counts = (1, layout.digests), (1, layout.lineages)
    spans = [(*counts, (len(keys.bands), layout.bands), (len(keys.anchors), layout.anchors)) for keys in batch]
    sizes, chunks = np.array(spans, dtype=np.uint32).reshape(-1, 2).T
    named = [(keys.digest or _NO_KEY, keys.lineage or _NO_KEY, *keys.bands, *keys.anchors) for keys in batch]
    halves = np.frombuffer(b"".join(map(b"".join, named)), dtype=">u4").reshape(-1, 2)
    places = np.empty((len(halves), _CHUNK_BYTES + _FIELD_DIGITS), dtype=np.uint8)
    places[:, :_CHUNK_BYTES] = (halves[:, 0] % chunks.repeat(sizes)).astype(">u4").view(np.uint8).reshape(-1, 4)
    fields = halves[:, 1] % np.uint32(_FIELDS) + np.uint32(_FIRST_FIELD)
    places[:, _CHUNK_BYTES:] = fields[:, None] // _POWERS % 10 + ord("0")
    packed, ends = places.tobytes(), (places.shape[1] * np.cumsum([len(keys) for keys in named])).tolist()
    return [packed[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _time(ms: int) -> bytes:
    return min(max(ms + _SHIFT_MS, 0), _LAST_MS).to_bytes(6, "big")


def number_bytes(number: int) -> bytes:
    """A number as the server packs it."""
    return number.to_bytes(_NUMBER_BYTES, "big")


def numbers_of(packed: bytes) -> list[int]:
    """The numbers of a bucket or of the registry; one alone is written in digits."""
    if packed[:1] >= b"0":
        return [int(packed)]
    return _integers(packed)


def time_of(packed: bytes) -> int:
    """Milliseconds since 1970, of the head of a record."""
    return _integer(packed) - _SHIFT_MS


def bucket_places(keys: Keys, layout: Layout) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Letter of the kind, chunk with field, key of each bucket."""
    (packed,) = _places([keys], layout)
    size = _CHUNK_BYTES + _FIELD_DIGITS
    places = [packed[start : start + size] for start in range(0, len(packed), size)]
    letters = b"xl" + len(keys.bands) * b"b" + len(keys.anchors) * b"a"
    named = (keys.digest, keys.lineage, *keys.bands, *keys.anchors)
    for letter, place, key in zip(letters, places, named, strict=True):
        if key is not None:
            yield bytes((letter,)), place, key


def _integer(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


def bucket_name(place: bytes) -> str:
    """Chunk and field of a bucket, as people read them."""
    return f"{_integer(place[:_CHUNK_BYTES])}:{place[_CHUNK_BYTES:].decode()}"


def _integers(packed: bytes) -> list[int]:
    return [_integer(packed[start : start + _NUMBER_BYTES]) for start in range(0, len(packed), _NUMBER_BYTES)]
