"""What the index keeps of a state: its signature, packed into few bytes without loss.

A record has the sizes of the identity, the identity, and the text part, which depends on the normal form of the text
alone. Records of equal texts have equal text parts:

    digest    8 bytes: the digest without the version
    flags     1 byte: a sum of PACKED, SPACELESS and SPLIT
    numbers   unsigned LEB128: n_bytes, words, rate, length of the sketch, length of the gaps; then zigzag LEB128: words
              minus shingles, n_bytes minus characters
    sketch    as in a signature
    gaps      as in a signature. None if PACKED is set
    ld        up to the end of the record: as in a signature, or with the gaps as native/ld_compact.h packs them if
              PACKED is set. SPLIT says that the signature has the gaps apart

The record of a copy may be kept as its differences from that of the founder of its family. It begins with `PATCH`,
which is no size of an id. Then follow steps that append to the result:

    literal   unsigned LEB128: a count of bytes, then these bytes
    copy      unsigned LEB128: a count of bytes of the other record, then zigzag LEB128: how far their first one is
              from where the last copy would go on, had the literal bytes replaced as many. The last step may lack it
"""

import struct
from typing import NamedTuple

import msgspec

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, Labels, document_key
from nearstream.schemas.documents.signature import VERSION_BYTES, Origin, Signature
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS, SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS
from nearstream.streams.native import PackedText, native

_SIZES = struct.Struct(">HH")  # of the id, of the rest of the identity
_URL_IS_LINEAGE, _LINEAGE_IS_ID = 1, 2
DIGEST_BYTES = 8  # without the version
PACKED, SPACELESS, SPLIT = 1, 2, 4
_STEP_LOW_BITS = 2  # for gaps that are separate from the symbols: their unit is an eighth of the rate
PATCH = b"\xff\xff"


class _Identity(msgspec.Struct, array_like=True):
    """What a signature says about the document, without what is stored beside the record.

    `Signature` describes the fields. Defaults at the end are not written, so that the array has up to 12 values.
    """

    partition: int  # partition of the origin, -1 without an origin
    offset: int  # offset of the origin
    flags: int  # a sum of the constants above
    raw_digest: bytes | None = None  # None if it equals the digest
    lineage: str | None = None  # None also if it equals the id
    url: str | None = None  # None also if it equals the lineage
    source: str | None = None
    labels: Labels | None = None
    collection: str | None = None  # None for the default one
    degraded: tuple[str, ...] | None = None
    topic: str | None = None  # Topic of the origin. None for the default one.
    sent_after_ms: int | None = None  # Timestamp of the origin minus the time of observation. None: it is not known.


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Identity)


def pack_signature(signature: Signature) -> bytes:
    """Return a record: the sizes of the identity, the identity and the text part.

    Scheme, version and time are left out. They are stored beside the record.
    """
    origin = signature.origin
    is_lineage = signature.url is not None and signature.url == signature.lineage
    is_id = signature.lineage == signature.id
    fields = [
        *((-1, 0) if origin is None else (origin.partition, origin.offset)),
        _URL_IS_LINEAGE * is_lineage | _LINEAGE_IS_ID * is_id,
        None if signature.raw_digest == signature.digest else signature.raw_digest,
        None if is_id else signature.lineage,
        None if is_lineage else signature.url,
        signature.source,
        signature.labels or None,
        None if signature.collection == DEFAULT_COLLECTION else signature.collection,
        signature.degraded or None,
        None if origin is None or origin.topic == DOCUMENTS.name else origin.topic,
        origin.sent_at_ms - signature.observed_at_ms if origin is not None and origin.sent_at_ms else None,
    ]
    while fields[-1] is None:
        fields.pop()
    own_id, rest = signature.id.encode("utf-8", "surrogatepass"), _ENCODER.encode(fields)
    return b"".join((_SIZES.pack(len(own_id), len(rest)), own_id, rest, pack_text(signature)))


class Recorded(NamedTuple):
    """A document as its record says. Its text is unpacked on demand."""

    id: str  # its id
    packed: bytes  # the record
    text_at: int  # where the text part begins
    identity: _Identity  # the rest of the identity
    scheme: str  # the scheme of the index
    version_bytes: bytes  # the version, which is stored beside the record
    observed_at_ms: int  # when the document was observed, which is stored beside the record

    @property
    def collection(self) -> str:
        """The collection of the document."""
        return DEFAULT_COLLECTION if self.identity.collection is None else self.identity.collection

    @property
    def lineage(self) -> str | None:
        """The lineage of the document."""
        return self.id if self.identity.flags & _LINEAGE_IS_ID else self.identity.lineage

    @property
    def url(self) -> str | None:
        """The URL of the document."""
        return self.lineage if self.identity.flags & _URL_IS_LINEAGE else self.identity.url

    @property
    def digest(self) -> bytes:
        """The digest of the text."""
        return self.version_bytes + self.packed[self.text_at : self.text_at + DIGEST_BYTES]

    @property
    def raw_digest(self) -> bytes:
        """The digest of the original text."""
        return self.identity.raw_digest or self.digest

    @property
    def version(self) -> str:
        """The version of the document."""
        return self.version_bytes.hex()

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The sort key of newer and older."""
        return self.observed_at_ms, self.id, self.identity.partition, self.identity.offset, self.version

    @property
    def sent_at_ms(self) -> int:
        """The timestamp of the record of the document, 0 if it is not known."""
        return 0 if self.identity.sent_after_ms is None else self.observed_at_ms + self.identity.sent_after_ms

    @property
    def labels(self) -> Labels:
        """The labels of the producer."""
        return self.identity.labels or {}

    @property
    def text(self) -> PackedText:
        """The text, which C reads as it is packed."""
        return self.version_bytes, self.packed, self.text_at

    @property
    def signature(self) -> Signature:
        """The signature that was packed."""
        identity, lineage = self.identity, self.lineage
        text = native.unpack_text(self.packed, self.text_at)
        digest = self.version_bytes + text[0]
        partition, offset = identity.partition, identity.offset
        return Signature(
            self.scheme,
            self.collection,
            self.id,
            digest,
            identity.raw_digest or digest,
            self.observed_at_ms,
            *text[1:],
            b"",
            lineage,
            lineage if identity.flags & _URL_IS_LINEAGE else identity.url,
            identity.source,
            identity.labels or {},
            None if partition < 0 else Origin(identity.topic or DOCUMENTS.name, partition, offset, self.sent_at_ms),
            identity.degraded or (),
        )


Comparable = Signature | Recorded
"""A document with which others are compared."""


def signature_of(document: Comparable) -> Signature:
    """Return the signature of a document."""
    return document.signature if isinstance(document, Recorded) else document


def unpack_record(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Recorded:
    """Return the document that `pack_signature` packed."""
    own_id, identity, text_at = _unpack_identity(packed)
    return Recorded(own_id, packed, text_at, identity, scheme, version, observed_at_ms)


def unpack_signature(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Signature:
    """Return the signature that `pack_signature` packed, with the arguments of `unpack_record`."""
    return unpack_record(packed, scheme, version, observed_at_ms).signature


def unpack_document_key(packed: bytes) -> str:
    """Return the document key of a record. It may lack its text part."""
    own_id, identity, _ = _unpack_identity(packed)
    return document_key(DEFAULT_COLLECTION if identity.collection is None else identity.collection, own_id)


def _unpack_identity(packed: bytes) -> tuple[str, _Identity, int]:
    """Return the id, the rest of the identity, and where the text part begins."""
    id_size, rest_size = _SIZES.unpack_from(packed)
    rest_at = _SIZES.size + id_size
    text_at = rest_at + rest_size
    own_id = packed[_SIZES.size : rest_at].decode("utf-8", "surrogatepass")
    return own_id, _DECODER.decode(packed[rest_at:text_at]), text_at


def pack_text(signature: Signature) -> bytes:
    """Return the text part of a signature. The version is left out."""
    stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
    packed = native.pack_pairs(signature.ld, signature.gaps, *pair_bits(stored, signature.rate))
    ld, gaps = (signature.ld, signature.gaps) if packed is None else (packed, b"")
    flags = PACKED * (packed is not None) | SPACELESS * signature.spaceless | SPLIT * bool(signature.gaps)
    numbers = (
        signature.n_bytes,
        signature.words,
        signature.rate,
        len(signature.sketch),
        len(gaps),
        zigzag(signature.words - signature.shingles),
        zigzag(signature.n_bytes - signature.characters),
    )
    head = bytearray((*signature.digest[VERSION_BYTES:], flags))
    for number in numbers:
        append_number(head, number)
    return b"".join((head, signature.sketch, gaps, ld))


def pair_bits(stored: int, rate: int) -> tuple[int, int, int]:
    """Return the bits of a symbol, its kept bits, and the low bits of a gap.

    The low bits of a gap are written as they are, and their count follows Rice's rule for the mean of the gaps.
    """
    low = _STEP_LOW_BITS if stored == SPLIT_SYMBOL_BITS else min(max(rate.bit_length() - 2, 0), 5)
    return stored, KEPT_SYMBOL_BITS[stored], low


def patched(other: bytes, patch: bytes) -> bytes:
    """Return the record into which a patch turns another one."""
    if not patch:
        return other
    text, at, start = bytearray(), 0, 0
    while at < len(patch):
        size, at = take_number(patch, at)
        text += patch[at : at + size]
        at, start = at + size, start + size
        if at < len(patch):
            size, at = take_number(patch, at)
            jump, at = take_number(patch, at)
            start += signed(jump)
            text += other[start : start + size]
            start += size
    return bytes(text)


def shortened(record: bytes, founder: bytes) -> bytes:
    """Return a record as a patch of that of the founder of its family, or nothing if that saves less than a third."""
    packed = PATCH + native.patch(founder, record)
    return packed if 3 * len(packed) <= 2 * len(record) else b""


def lengthened(packed: bytes, founder: bytes) -> bytes:
    """Return the record that was shortened."""
    return patched(founder, packed[len(PATCH) :])


# Numbers of variable length: unsigned LEB128, and zigzag for signed ones.


def append_number(packed: bytearray, number: int) -> None:
    """Append a number in unsigned LEB128."""
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def take_number(packed: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and where the number ends."""
    number, shift = packed[at] & 0x7F, 7
    while packed[at] > 0x7F:
        at += 1
        number |= (packed[at] & 0x7F) << shift
        shift += 7
    return number, at + 1


def zigzag(number: int) -> int:
    """Return the unsigned form of a signed number."""
    return 2 * number if number >= 0 else -2 * number - 1


def signed(zigzag: int) -> int:
    """Return the signed number of an unsigned form."""
    return -(zigzag + 1) // 2 if zigzag & 1 else zigzag // 2
