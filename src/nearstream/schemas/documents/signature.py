"""The signature: what is kept of a document instead of its text."""

from typing import Annotated

import msgspec

from nearstream.schemas.documents.document import (
    ADDRESS_BYTES,
    OBSERVED_MAX_MS,
    PARTITION_MAX,
    RECIPIENTS_MAX,
    YEAR_9999_MS,
    Count,
    Id,
    Labels,
    Name,
    Offset,
    References,
    SchemeName,
    TopicName,
    Url,
    Words,
    document_key,
)

VERSION_BYTES = 8  # of the digest
SIGNATURE_MAX_BYTES = 128 * 1024

Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=YEAR_9999_MS)]
Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Packed = Annotated[bytes, msgspec.Meta(max_length=96 * 1024)]


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of `documents` from which a signature was made.

    Attributes:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        sent_at_ms: Its timestamp, in milliseconds since 1970. 0: it is not known.
    """

    topic: TopicName
    partition: Annotated[int, msgspec.Meta(ge=0, le=PARTITION_MAX)]
    offset: Offset
    sent_at_ms: Milliseconds = 0

    @property
    def position(self) -> str:
        """The partition and offset, `<partition>/<offset>`."""
        return f"{self.partition}/{self.offset}"


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """All that is kept of a text.

    On the wire it is a msgpack array, so the order of the fields is part of the contract. New fields come at the end,
    with a default. The scheme defines the content of the byte fields and checks it
    (`nearstream.streams.signing.scheme`).

    Attributes:
        scheme: Name of the scheme under which the signature was made.
        collection: The tenant.
        id: The document's id.
        digest: 16 bytes, keyed blake2b of the normal form. Its first 8 bytes in hex are the version. If the scheme
            counts signs, they are a digest of both the normal form and the signs.
        raw_digest: 16 bytes, keyed blake2b of the original text in UTF-8, with one space for each run of ASCII spaces.
        observed_at_ms: Milliseconds since 1970, up to the year 8659.
        n_bytes: Bytes of the normal form in UTF-8.
        characters: Code points of the normal form.
        words: Words of the normal form.
        shingles: Distinct shingles.
        spaceless: Whether the text is in a script without spaces between words.
        sketch: Slots of the sketch, little-endian (`fine`: 128 of 4 bytes).
        rate: Average bytes of the normal form per LD symbol, a power of two. 0 without an LD signature.
        ld: LD symbols with their gaps, little-endian u32 (`compact`: u16 symbols).
        gaps: Gaps of the LD symbols if `ld` does not hold them (`compact`).
        anchors: Winnowed fingerprints, 8 bytes each, ascending.
        lineage: What successive states of one thing share.
        url: Where the document was observed.
        source: The kind of producer.
        labels: The producer's labels.
        origin: The record that held the document. None if it did not come from a topic.
        degraded: What was incomplete at signing, such as `charset_replaced`.
        sender: Keyed hash of the address that a mail was sent from, 8 bytes. Empty: it is unknown.
        recipients: Keyed hashes of the addresses that a mail was sent to, 8 bytes each.
        against: Other collections that the document is compared with too.
    """

    scheme: SchemeName
    collection: Name
    id: Id
    digest: Digest
    raw_digest: Digest
    observed_at_ms: Annotated[int, msgspec.Meta(ge=0, le=OBSERVED_MAX_MS)]
    n_bytes: Count
    characters: Count
    words: Count
    shingles: Count
    spaceless: bool
    sketch: Packed
    rate: Count
    ld: Packed
    gaps: Packed
    anchors: Packed
    lineage: Id | None = None
    url: Url | None = None
    source: Name | None = None
    labels: Labels = {}
    origin: Origin | None = None
    degraded: Words = ()
    sender: Annotated[bytes, msgspec.Meta(max_length=ADDRESS_BYTES)] = b""
    recipients: Annotated[bytes, msgspec.Meta(max_length=ADDRESS_BYTES * RECIPIENTS_MAX)] = b""
    against: References = ()

    @property
    def version(self) -> str:
        """The first 8 bytes of the digest, in hex."""
        return self.digest[:VERSION_BYTES].hex()

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The sort key of newer and older: time, id, partition and offset on `documents`, version.

        Without a record on `documents`, a state comes before those that have one.
        """
        partition, offset = (self.origin.partition, self.origin.offset) if self.origin else (-1, 0)
        return self.observed_at_ms, self.id, partition, offset, self.version

    @property
    def sent_at_ms(self) -> int:
        """Timestamp of the record that held the document, in milliseconds since 1970. 0 if unknown."""
        return self.origin.sent_at_ms if self.origin else 0

    @property
    def document_key(self) -> str:
        """The identity across collections, `<collection>/<id>`."""
        return document_key(self.collection, self.id)
