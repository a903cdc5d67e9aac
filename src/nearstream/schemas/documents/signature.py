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
    """The record of `documents` from which a signature was made."""

    topic: TopicName  # Its topic.
    partition: Annotated[int, msgspec.Meta(ge=0, le=PARTITION_MAX)]  # Its partition.
    offset: Offset  # Its offset.
    sent_at_ms: Milliseconds = 0  # Its timestamp, in milliseconds since 1970. 0: it is not known.

    @property
    def position(self) -> str:
        """The partition and offset, `<partition>/<offset>`."""
        return f"{self.partition}/{self.offset}"


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """All that is kept of a text.

    On the wire it is a msgpack array, so the order of the fields is part of the contract. New fields come at the end,
    with a default. The scheme defines the content of the byte fields and checks it
    (`nearstream.streams.signing.scheme`).
    """

    scheme: SchemeName  # Name of the scheme under which the signature was made.
    collection: Name  # The tenant.
    id: Id  # The document's id.
    # 16 bytes, keyed blake2b of the normal form. Its first 8 bytes in hex are the version. If the scheme counts signs,
    # they are a digest of both the normal form and the signs.
    digest: Digest
    # 16 bytes, keyed blake2b of the original text in UTF-8, with one space for each run of ASCII spaces.
    raw_digest: Digest
    # Milliseconds since 1970, up to the year 8659.
    observed_at_ms: Annotated[int, msgspec.Meta(ge=0, le=OBSERVED_MAX_MS)]
    n_bytes: Count  # Bytes of the normal form in UTF-8.
    characters: Count  # Code points of the normal form.
    words: Count  # Words of the normal form.
    shingles: Count  # Distinct shingles.
    spaceless: bool  # Whether the text is in a script without spaces between words.
    sketch: Packed  # Slots of the sketch, little-endian (`fine`: 128 of 4 bytes).
    rate: Count  # Average bytes of the normal form per LD symbol, a power of two.
    ld: Packed  # LD symbols with their gaps, little-endian u32 (`compact`: u16 symbols).
    gaps: Packed  # Gaps of the LD symbols if `ld` does not hold them (`compact`).
    anchors: Packed  # Winnowed fingerprints, 8 bytes each, ascending.
    lineage: Id | None = None  # What successive states of one thing share.
    url: Url | None = None  # Where the document was observed.
    source: Name | None = None  # The kind of producer.
    labels: Labels = {}  # The producer's labels.
    origin: Origin | None = None  # The record that held the document. None if it did not come from a topic.
    degraded: Words = ()  # What was incomplete at signing, such as `charset_replaced`.
    # Keyed hash of the address that a mail was sent from, 8 bytes. Empty: it is unknown.
    sender: Annotated[bytes, msgspec.Meta(max_length=ADDRESS_BYTES)] = b""
    # Keyed hashes of the addresses that a mail was sent to, 8 bytes each.
    recipients: Annotated[bytes, msgspec.Meta(max_length=ADDRESS_BYTES * RECIPIENTS_MAX)] = b""
    against: References = ()  # Other collections that the document is compared with too.
    # All windows of 8 words, hashed as anchors are, of a document that is compared with other collections, and of a
    # short one in a reference collection.
    windows: Packed = b""

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
