"""Pack the signature of an index record into few bytes, without loss."""

import struct

import msgspec

from nearstream.schemas.document import DEFAULT_COLLECTION, Labels
from nearstream.schemas.signature import Origin, Signature
from nearstream.schemas.topics import DOCUMENTS
from nearstream.streams.fingerprints import ld_compact
from nearstream.streams.fingerprints.ld import SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS, symbol_bits
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS
from nearstream.streams.native import native
from nearstream.workers.redis_index.layout import NUMBER_BYTES, SUPERSEDED

pack_pairs = native.pack_pairs if native else ld_compact.pack_pairs
unpack_pairs = native.unpack_pairs if native else ld_compact.unpack_pairs

_STEP_LOW_BITS = 2  # for gaps that are separate from the symbols: their unit is an eighth of the rate
_SIZE = struct.Struct(">H")
_VERSION_BYTES = 8
_PACKED, _SPACELESS, _URL_IS_LINEAGE, _LINEAGE_IS_ID, _SPLIT = 1, 2, 4, 8, 16


class _Body(msgspec.Struct, array_like=True):
    """The part of a signature that the head of a record does not have.

    `Signature` describes the fields. Defaults at the end are not written.
    lua/states.lua reads `partition` and `offset`.

    Attributes:
        flags: A sum of the constants above.
        digests: The digest without the version, then the raw digest if it differs.
        repeated: Count of words minus count of distinct shingles.
        partition: Partition of the origin, -1 without an origin.
        offset: Offset of the origin.
        lineage: None also if it equals the id.
        url: None also if it equals the lineage.
        characters: None if it equals the count of bytes.
        topic: Topic of the origin. None for the default one.
        collection: None for the default one.
        observed_at_ms: None unless the time does not fit into the head.
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
    """Return the length of the id, the id and the rest of a signature.

    Scheme and version are left out, and the time if the head of the record has it.
    """
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
    own_id = signature.id.encode("utf-8", "surrogatepass")
    return _SIZE.pack(len(own_id)) + own_id + _ENCODER.encode(body)


def unpack_signature(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Signature:
    """Return the signature that `pack_signature` packed.

    Args:
        packed: The record without its head.
        scheme: The scheme of the index.
        version: The version in the head of the record.
        observed_at_ms: The time in the head of the record.
    """
    _, start = superseded_by(packed)
    end = start + (_SIZE.unpack_from(packed)[0] & ~SUPERSEDED)
    own_id = packed[start:end].decode("utf-8", "surrogatepass")
    body = _DECODER.decode(packed[end:])
    digest = version + body.digests[:_VERSION_BYTES]
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
    """Return the number that superseded a state, or 0, and where the id begins."""
    if not _SIZE.unpack_from(packed)[0] & SUPERSEDED:
        return 0, _SIZE.size
    start = _SIZE.size + NUMBER_BYTES
    return int.from_bytes(packed[_SIZE.size : start], "big"), start


def _pair_bits(stored: int, rate: int) -> tuple[int, int, int]:
    """Return the bits of a symbol, its kept bits, and the low bits of a gap.

    The low bits of a gap are written as they are, and their count follows Rice's rule for the mean of the gaps.
    """
    low = _STEP_LOW_BITS if stored == SPLIT_SYMBOL_BITS else min(max(rate.bit_length() - 2, 0), 5)
    return stored, KEPT_SYMBOL_BITS[stored], low
