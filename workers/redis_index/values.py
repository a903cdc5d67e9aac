"""Keys and values of the store in bytes."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from nearstream.streams.signing.scheme import Keys
from nearstream.workers.redis_index.layout import (
    BUCKET_KINDS,
    CHUNK_BYTES,
    FIELD_DIGITS,
    NUMBER_BYTES,
    IndexLayout,
    KeyKind,
)

integer_of = int.from_bytes  # of bytes of any size, the first is the highest

_NO_KEY = bytes(8)
_FIRST_FIELD, _FIELDS = 10**6, 2**23 - 10**6  # numbers of 7 digits that the server stores in 3 bytes
_POWERS = [10**place for place in reversed(range(FIELD_DIGITS))]
_BUCKET_BYTES = CHUNK_BYTES + FIELD_DIGITS
SHIFT_MS = 1 << 46  # added so that times before 1970 are positive too
LAST_MS = (1 << 48) - 1


def hash_of(document_key: str, layout: IndexLayout) -> tuple[bytes, bytes]:
    """Return the registry chunk of a document, and the hash of its key.

    Keys of the store contain this hash instead of the id. An id might contain a brace, which would move the key to
    another slot, or might be chosen to collide.
    """
    name = blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=9, key=layout.epoch).digest()
    chunk = integer_of(name[:CHUNK_BYTES]) % layout.chunks[KeyKind.REGISTRY]
    return chunk.to_bytes(CHUNK_BYTES, "big"), name


def bucket_positions(keys: Keys, layout: IndexLayout) -> Iterator[tuple[KeyKind, bytes, bytes]]:
    """Yield, for each bucket, its kind, its chunk with field, and its key."""
    (packed,) = pack_buckets([keys], layout)
    positions = [packed[start : start + _BUCKET_BYTES] for start in range(0, len(packed), _BUCKET_BYTES)]
    many = [KeyKind.BAND] * len(keys.bands) + [KeyKind.ANCHOR] * len(keys.anchors)
    all_keys = (keys.digest, keys.lineage, *keys.bands, *keys.anchors)
    for kind, position, key in zip((KeyKind.DIGEST, KeyKind.LINEAGE, *many), positions, all_keys, strict=True):
        if key is not None:
            yield kind, position, key


def bucket_name(position: bytes) -> str:
    """Return chunk and field of a bucket in readable form."""
    return f"{integer_of(position[:CHUNK_BYTES])}:{position[CHUNK_BYTES:].decode()}"


def number_bytes(number: int) -> bytes:
    """Return a number as the server packs it."""
    return number.to_bytes(NUMBER_BYTES, "big")


def numbers_of(packed: bytes) -> list[int]:
    """Return the numbers of a bucket or of a registry entry.

    A single number is in digits.
    """
    if packed[:1] >= b"0":
        return [int(packed)]
    return integers_of(packed)


def time_of(packed: bytes) -> int:
    """Return the time in the head of a record, in milliseconds since 1970."""
    return integer_of(packed) - SHIFT_MS


def pack_buckets(batch: Sequence[Keys], layout: IndexLayout) -> list[bytes]:
    """Return chunk and field of all keys of each document, joined.

    The order is digest, lineage, bands, anchors. The chunk is the first half of a key modulo the count of chunks. The
    field is the other half, reduced to a number of 7 digits.
    """
    import numpy as np  # on use, since most commands write no bucket

    counts = [layout.chunks[kind] for kind in BUCKET_KINDS]
    spans = [zip((1, 1, len(keys.bands), len(keys.anchors)), counts, strict=True) for keys in batch]
    sizes, chunks = np.array([pair for span in spans for pair in span], dtype=np.uint32).reshape(-1, 2).T
    all_keys = [(keys.digest or _NO_KEY, keys.lineage or _NO_KEY, *keys.bands, *keys.anchors) for keys in batch]
    halves = np.frombuffer(b"".join(map(b"".join, all_keys)), dtype=">u4").reshape(-1, 2)
    positions = np.empty((len(halves), _BUCKET_BYTES), dtype=np.uint8)
    positions[:, :CHUNK_BYTES] = (halves[:, 0] % chunks.repeat(sizes)).astype(">u4").view(np.uint8).reshape(-1, 4)
    fields = halves[:, 1] % np.uint32(_FIELDS) + np.uint32(_FIRST_FIELD)
    positions[:, CHUNK_BYTES:] = fields[:, None] // np.array(_POWERS, np.uint32) % 10 + ord("0")
    packed, ends = positions.tobytes(), (_BUCKET_BYTES * np.cumsum([len(keys) for keys in all_keys])).tolist()
    return [packed[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def pack_time(ms: int) -> bytes:
    """Return milliseconds since 1970 as the head of a record has them."""
    return min(max(ms + SHIFT_MS, 0), LAST_MS).to_bytes(6, "big")


def integers_of(packed: bytes) -> list[int]:
    """Return packed numbers."""
    return [integer_of(packed[start : start + NUMBER_BYTES]) for start in range(0, len(packed), NUMBER_BYTES)]
