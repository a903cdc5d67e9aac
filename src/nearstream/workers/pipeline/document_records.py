"""Records of `documents` that other parts than a producer's program send."""

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, without_user
from nearstream.schemas.documents.record import Headers, ProducerRecord
from nearstream.streams.ingest.parse import ParsedDocument, Removal


def record_key(parsed: ParsedDocument | Removal) -> bytes | None:
    """Return the record key: the id, or else the lineage, or else none.

    So the states of one document stay in order, and a null value under the same key removes it.
    """
    key = parsed.id if isinstance(parsed, Removal) else parsed.record_key
    return key.encode() if key else None


def removal_of(topic: str, name: str, collection: str) -> ProducerRecord:
    """Return the record that removes a document, under the key of the document itself."""
    key = without_user(name).encode()
    headers: Headers = [("nearstream-id", key)]
    if collection != DEFAULT_COLLECTION:
        headers.append(("nearstream-collection", collection.encode()))
    return ProducerRecord(topic, key, None, headers)
