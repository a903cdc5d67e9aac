"""Pack the signature of an index record into few bytes, without loss.

The end of a record depends on the text alone: see `text_part.py`. What comes before it is the identity.
"""

import struct
from typing import NamedTuple

import msgspec

from nearstream.schemas.document import DEFAULT_COLLECTION, Labels, document_key
from nearstream.schemas.signature import Origin, Signature
from nearstream.schemas.topics import DOCUMENTS
from nearstream.streams.native import PackedText
from nearstream.streams.records.text_part import pack_text, unpack_text
from nearstream.streams.records.text_patch import patched
from nearstream.streams.store.registration import NUMBER_BYTES

SUPERSEDED, SHARED = 0x8000, 0x4000  # flags in the length of an id
_SIZES = struct.Struct(">HH")  # of the id, of the rest of the identity
_URL_IS_LINEAGE, _LINEAGE_IS_ID = 1, 2


class _Identity(msgspec.Struct, array_like=True):
    """What a signature says about the document, without what the head of a record has.

    `Signature` describes the fields. Defaults at the end are not written, so that the array has up to 13 values.
    The Lua of `workers/redis_index` reads `partition` and `offset`.

    Attributes:
        partition: Partition of the origin, -1 without an origin.
        offset: Offset of the origin.
        flags: A sum of the constants above.
        raw_digest: None if it equals the digest.
        lineage: None also if it equals the id.
        url: None also if it equals the lineage.
        collection: None for the default one.
        topic: Topic of the origin. None for the default one.
        observed_at_ms: None unless the time does not fit into the head.
        sent_after_ms: Timestamp of the origin minus the time of observation. None: it is not known.
    """

    partition: int
    offset: int
    flags: int
    raw_digest: bytes | None = None
    lineage: str | None = None
    url: str | None = None
    source: str | None = None
    labels: Labels | None = None
    collection: str | None = None
    degraded: tuple[str, ...] | None = None
    topic: str | None = None
    observed_at_ms: int | None = None
    sent_after_ms: int | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Identity)


def pack_signature(signature: Signature, observed_in_head: bool) -> bytes:
    """Return a record without its head: the sizes of the identity, the identity and the text part.

    Scheme and version are left out, and the time if the head of the record has it.
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
        None if observed_in_head else signature.observed_at_ms,
        origin.sent_at_ms - signature.observed_at_ms if origin is not None and origin.sent_at_ms else None,
    ]
    while fields[-1] is None:
        fields.pop()
    own_id, rest = signature.id.encode("utf-8", "surrogatepass"), _ENCODER.encode(fields)
    return b"".join((_SIZES.pack(len(own_id), len(rest)), own_id, rest, pack_text(signature)))


class Recorded(NamedTuple):
    """A document as its record says. Its text is unpacked on demand.

    Attributes:
        id: Its id.
        packed: The record without its head.
        text_at: Where the text part begins.
        identity: The rest of the identity.
        scheme: The scheme of the index.
        version_bytes: The version in the head of the record.
        head_ms: The time in the head of the record.
    """

    id: str
    packed: bytes
    text_at: int
    identity: _Identity
    scheme: str
    version_bytes: bytes
    head_ms: int

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
    def version(self) -> str:
        """The version of the document."""
        return self.version_bytes.hex()

    @property
    def observed_at_ms(self) -> int:
        """When the document was observed."""
        return self.head_ms if self.identity.observed_at_ms is None else self.identity.observed_at_ms

    @property
    def text(self) -> PackedText:
        """The text, which C reads as it is packed."""
        return self.version_bytes, self.packed, self.text_at

    @property
    def signature(self) -> Signature:
        """The signature that was packed."""
        identity, lineage = self.identity, self.lineage
        text = unpack_text(self.packed, self.text_at)
        digest = self.version_bytes + text[0]
        partition, offset = identity.partition, identity.offset
        sent_at_ms = 0 if identity.sent_after_ms is None else self.observed_at_ms + identity.sent_after_ms
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
            None if partition < 0 else Origin(identity.topic or DOCUMENTS.name, partition, offset, sent_at_ms),
            identity.degraded or (),
        )


def unpack_record(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Recorded:
    """Return the document that `pack_signature` packed.

    Args:
        packed: The record without its head.
        scheme: The scheme of the index.
        version: The version in the head of the record.
        observed_at_ms: The time in the head of the record.
    """
    own_id, identity, text_at = _unpack_identity(packed)
    return Recorded(own_id, packed, text_at, identity, scheme, version, observed_at_ms)


def unpack_signature(packed: bytes, scheme: str, version: bytes, observed_at_ms: int) -> Signature:
    """Return the signature that `pack_signature` packed, with the arguments of `unpack_record`."""
    return unpack_record(packed, scheme, version, observed_at_ms).signature


def unpack_document_key(packed: bytes) -> str:
    """Return the document key of a record without its head. The record may lack its text part."""
    own_id, identity, _ = _unpack_identity(packed)
    return document_key(DEFAULT_COLLECTION if identity.collection is None else identity.collection, own_id)


def superseded_by(packed: bytes) -> int:
    """Return the number that superseded a state, or 0."""
    if not _SIZES.unpack_from(packed)[0] & SUPERSEDED:
        return 0
    return int.from_bytes(packed[_SIZES.size : _SIZES.size + NUMBER_BYTES], "big")


def owner_of(packed: bytes) -> int:
    """Return the number of the state whose text this record needs, or 0 if it has a text of its own."""
    return int.from_bytes(packed[-NUMBER_BYTES:], "big") if _SIZES.unpack_from(packed)[0] & SHARED else 0


def text_of(packed: bytes) -> bytes:
    """Return the text part of a record that has one."""
    return packed[_unpack_identity(packed)[2] :]


def with_text(packed: bytes, text: bytes) -> bytes:
    """Return a record that needs the text part of another one with a text part of its own."""
    text_at = _unpack_identity(packed)[2]
    return packed[:text_at] + patched(text, packed[text_at:-NUMBER_BYTES])


def _unpack_identity(packed: bytes) -> tuple[str, _Identity, int]:
    """Return the id, the rest of the identity, and where the text part begins."""
    id_size, rest_size = _SIZES.unpack_from(packed)
    id_at = _SIZES.size + (NUMBER_BYTES if id_size & SUPERSEDED else 0)
    rest_at = id_at + (id_size & ~(SUPERSEDED | SHARED))
    text_at = rest_at + rest_size
    return packed[id_at:rest_at].decode("utf-8", "surrogatepass"), _DECODER.decode(packed[rest_at:text_at]), text_at
