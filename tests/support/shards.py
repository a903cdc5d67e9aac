"""Documents that are spread over all shards of an index."""

from dataclasses import replace
from hashlib import blake2b

from nearstream.schemas.document import document_key
from nearstream.streams.store.limits import Admission


def spread(batch: list[Admission], collections: int) -> list[Admission]:
    """Return the batch with its documents spread over collections.

    The keys of a document are salted with its collection.
    """
    return [_moved(one, f"c{sum(one.document_key.encode()) % collections}") for one in batch]


def _moved(one: Admission, collection: str) -> Admission:
    name = document_key(collection, one.document_key.partition("/")[2])

    def salted(key: bytes) -> bytes:
        return blake2b(key, digest_size=8, key=collection.encode()).digest()

    keys = replace(
        one.keys,
        digest=salted(one.keys.digest),
        lineage=one.keys.lineage and salted(one.keys.lineage),
        bands=tuple(map(salted, one.keys.bands)),
        anchors=tuple(map(salted, one.keys.anchors)),
    )
    return replace(one, document_key=name, keys=keys)
