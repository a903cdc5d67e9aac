"""The signature that an index record holds, in as few bytes as lose nothing."""

import struct

import msgspec

from schemas.document import DEFAULT_COLLECTION, Labels
from schemas.signature import Origin, Signature
from schemas.topics import DOCUMENTS
from streams.ld import SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS, symbol_bits
from streams.rules import KEPT_SYMBOL_BITS

try:
    from streams._native import pack_pairs, unpack_pairs
except ImportError:
    from workers.redis_pairs import pack_pairs, unpack_pairs

_STEP_LOW_BITS = 2  # where gaps stand apart their unit is an eighth of the rate
_SIZE = struct.Struct(">H")
_VERSION_BYTES = 8
_PACKED, _SPACELESS, _URL_IS_LINEAGE, _LINEAGE_IS_ID, _SPLIT = 1, 2, 4, 8, 16
_DEAD, _NUMBER_BYTES = 0x8000, 5


class _Body(msgspec.Struct, array_like=True):
    """What the head of a record does not say; see `Signature` for the fields. Defaults at the end are left out.

    Attributes:
        flags: Of the constants above.
        digests: What follows the version; the raw digest, if it is another one.
        repeated: Words less distinct shingles.
        partition, offset: Of the origin; a partition of -1: there is none.
        lineage: None too if it is the id.
        url: None too if it is the lineage.
        characters: None if there are as many as bytes.
        topic: Of the origin; None for the usual one.
        collection: None for the usual one.
        observed_at_ms: None unless the head cannot hold it.
    """

    flags: int
    digests: bytes
    n_bytes: int
    words: int
    repeated: int
    sketch: bytes
    rate: int
    ld: bytes
    partition: int
    offset: int
    lineage: str | None = None
    gaps: bytes | None = None
    characters: int | None = None
    url: str | None = None
    source: str | None = None
    labels: Labels | None = None
    collection: str | None = None
    degraded: tuple[str, ...] | None = None
    topic: str | None = None
    observed_at_ms: int | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Body)


def pack_signature(signature: Signature, observed_in_head: bool) -> bytes:
    """Length of the id, the id, the rest; scheme, version and, if the head holds it, the time are left out."""
    packed = pack_pairs(signature.ld, signature.gaps, *_pair_bits(symbol_bits(signature), signature.rate))
    ld, gaps = (signature.ld, signature.gaps) if packed is None else (packed, b"")
    origin = signature.origin
    is_lineage = signature.url is not None and signature.url == signature.lineage
    is_id = signature.lineage == signature.id
    flags = _PACKED * (packed is not None) | _SPACELESS * signature.spaceless | _SPLIT * bool(signature.gaps)
    flags |= _URL_IS_LINEAGE * is_lineage | _LINEAGE_IS_ID * is_id
    body = [
        flags,
        signature.digest[_VERSION_BYTES:] + (b"" if signature.raw_digest == signature.digest else signature.raw_digest),
        signature.n_bytes,
        signature.words,
        signature.words - signature.shingles,
        signature.sketch,
        signature.rate,
        ld,
        *((-1, 0) if origin is None else (origin.partition, origin.offset)),
        None if is_id else signature.lineage,
        gaps or None,
        None if signature.characters == signature.n_bytes else signature.characters,
        None if is_lineage else signature.url,
        signature.source,
        signature.labels or None,
        None if signature.collection == DEFAULT_COLLECTION else signature.collection,
        signature.degraded or None,
        None if origin is None or origin.topic == DOCUMENTS.name else origin.topic,
        None if observed_in_head else signature.observed_at_ms,
    ]
    while body[-1] is None:
        body.pop()
    name = signature.id.encode("utf-8", "surrogatepass")
    return _SIZE.pack(len(name)) + name + _ENCODER.encode(body)


def unpack_signature(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Signature:
    """The signature of `pack_signature`, with what the head of the record and the index know of it."""
    _, name = superseded_by(packed)
    start = name + (_SIZE.unpack_from(packed)[0] & ~_DEAD)
    body = _DECODER.decode(packed[start:])
    digest = version + body.digests[:_VERSION_BYTES]
    own_id = packed[name:start].decode("utf-8", "surrogatepass")
    lineage = own_id if body.flags & _LINEAGE_IS_ID else body.lineage
    ld, gaps = body.ld, body.gaps or b""
    if body.flags & _PACKED:
        stored = SPLIT_SYMBOL_BITS if body.flags & _SPLIT else WORD_SYMBOL_BITS
        ld, gaps = unpack_pairs(ld, *_pair_bits(stored, body.rate))
    return Signature(
        scheme,
        DEFAULT_COLLECTION if body.collection is None else body.collection,
        own_id,
        digest,
        body.digests[_VERSION_BYTES:] or digest,
        observed_at_ms if body.observed_at_ms is None else body.observed_at_ms,
        body.n_bytes,
        body.n_bytes if body.characters is None else body.characters,
        body.words,
        body.words - body.repeated,
        bool(body.flags & _SPACELESS),
        body.sketch,
        body.rate,
        ld,
        gaps,
        b"",
        lineage,
        lineage if body.flags & _URL_IS_LINEAGE else body.url,
        body.source,
        body.labels or {},
        None if body.partition < 0 else Origin(body.topic or DOCUMENTS.name, body.partition, body.offset),
        body.degraded or (),
    )


def superseded_by(packed: bytes) -> tuple[int, int]:
    """The number that the server wrote to what was packed, 0 without one; where the id begins."""
    if not _SIZE.unpack_from(packed)[0] & _DEAD:
        return 0, _SIZE.size
    start = _SIZE.size + _NUMBER_BYTES
    return int.from_bytes(packed[_SIZE.size : start], "big"), start


def _pair_bits(stored: int, rate: int) -> tuple[int, int, int]:
    """Bits of a symbol, those that are kept, bits of a gap that are written as such, by Rice's rule for its mean."""
    low = _STEP_LOW_BITS if stored == SPLIT_SYMBOL_BITS else min(max(rate.bit_length() - 2, 0), 5)
    return stored, KEPT_SYMBOL_BITS[stored], low
