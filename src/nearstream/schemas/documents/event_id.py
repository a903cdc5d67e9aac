"""The deterministic ids of events."""

from hashlib import blake2b
from typing import NamedTuple


class DocumentState(NamedTuple):
    """One state of a document, as event ids name it.

    Attributes:
        document_key: `<collection>/<id>`.
        version: First 8 bytes of its digest, in hex.
        position: `<partition>/<offset>` of its record on `documents`, empty if it came from no topic.
    """

    document_key: str = ""
    version: str = ""
    position: str = ""


def event_id(kind: str, older: DocumentState, newer: DocumentState, scheme: str) -> str:
    """Return the deterministic id of an event, 32 hex characters.

    It is blake2b-16 over the eight fields. Each follows its length in bytes (u32, big-endian), because ids may contain
    any separator. Positions keep two events apart if a document returns to an earlier text. A retraction has the key of
    the removed document as `older`, and as `newer` the position of the removal. If the removal came from no topic, that
    is `removed_at` in milliseconds since 1970.
    """
    state = blake2b(digest_size=16, person=b"nearstream.event")
    for field in (kind, *older, *newer, scheme):
        data = field.encode("utf-8")
        state.update(len(data).to_bytes(4, "big"))
        state.update(data)
    return state.hexdigest()


def family_id(document_key: str, version: str, scheme: str) -> str:
    """Return the id of the family that a document founded, 32 hex characters."""
    return event_id("family", DocumentState(document_key, version), DocumentState(), scheme)
