"""What is kept of a document when its text is gone."""

from typing import Annotated

import msgspec

from schemas.document import Id, Labels, Name, Url, document_key

YEAR_9999_MS = 253_402_300_799_999

Count = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=YEAR_9999_MS)]
Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
TopicName = Annotated[str, msgspec.Meta(max_length=249)]


class Origin(msgspec.Struct, frozen=True):
    """The record of `documents` that a signature was made from."""

    topic: TopicName
    partition: Count
    offset: Count


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """All that is left of a text; on the wire a msgpack array, so the order of the fields is the contract.

    New fields go to the end, with a default. The inside of the byte fields belongs to the scheme:
    `streams.scheme` checks it.

    Attributes:
        scheme: Name of the scheme that shaped it.
        collection: The tenant.
        id: The document's id.
        digest: 16 bytes, keyed blake2b of the normal form; its first 8 bytes in hex are the version.
        raw_digest: 16 bytes, the same of the text as it came.
        observed_at_ms: Milliseconds since 1970.
        n_bytes: Bytes of the normal form in UTF-8.
        characters: Code points of the normal form.
        words: Words of the normal form.
        shingles: Distinct shingles.
        spaceless: Written in a script without spaces between words.
        sketch: Slots of the sketch, little-endian (`standard`: 128 of 4 bytes).
        rate: Bytes per LD symbol, on average; a power of two.
        ld: LD symbols with their gaps, little-endian u32 (`compact`: u16 symbols).
        gaps: Gaps of the LD symbols where `ld` does not hold them (`compact`).
        anchors: Winnowed fingerprints, 8 bytes each, ascending.
        lineage: What successive states of one thing share.
        url: Where the document was observed.
        source: The kind of producer.
        labels: The producer's labels.
        origin: The record that it was made from; None when it did not come from a topic.
        degraded: What was not whole at signing, such as `charset_replaced`.
    """

    scheme: Annotated[str, msgspec.Meta(max_length=128)]
    collection: Name
    id: Id
    digest: Digest
    raw_digest: Digest
    observed_at_ms: Milliseconds
    n_bytes: Count
    characters: Count
    words: Count
    shingles: Count
    spaceless: bool
    sketch: bytes
    rate: Count
    ld: bytes
    gaps: bytes
    anchors: bytes
    lineage: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    url: Url | None = None
    source: Name | None = None
    labels: Labels = {}
    origin: Origin | None = None
    degraded: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """First 8 bytes of the digest, in hex: a function of the normal form alone."""
        return self.digest[:8].hex()

    @property
    def document_key(self) -> str:
        """`<collection>/<id>`."""
        return document_key(self.collection, self.id)
