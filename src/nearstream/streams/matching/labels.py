"""Labels of documents, as an index takes and counts them.

A label belongs to a document and counts for the family in which that document is now.
"""

from dataclasses import dataclass

from nearstream.schemas.labels.label import LabelKind
from nearstream.streams.store.registration import TIME_BYTES


@dataclass(frozen=True)
class Labelling:
    """What a record says about the label of a document.

    Attributes:
        label: The label. None: the document has none any more.
        weight: How much it counts, 1 to 100.
        given_ms: When it was given, in milliseconds since 1970.
    """

    label: LabelKind | None
    weight: int
    given_ms: int


def pack_label(labelling: Labelling) -> bytes:
    """Return a label and its weight, or nothing if it was taken back."""
    return b"" if labelling.label is None else b"%s:%d" % (labelling.label.encode(), labelling.weight)


def unpack_label(packed: bytes) -> Labelling:
    """Return the label of a document as the store keeps it, behind the time when it was given."""
    label, weight = packed[TIME_BYTES:].split(b":")
    return Labelling("spam" if label == b"spam" else "ham", int(weight), int.from_bytes(packed[:TIME_BYTES], "big"))
