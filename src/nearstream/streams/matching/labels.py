"""Labels of documents, as an index takes and counts them, and what else only checks ask of a family.

A label belongs to a document and counts for the family in which that document is now.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from nearstream.schemas.checks.check import Labels
from nearstream.schemas.labels.label import LabelKind, LabelState
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import Query
from nearstream.streams.store.record import Recorded, unpack_record
from nearstream.streams.store.registration import TIME_BYTES
from nearstream.streams.store.store import Store

NO_LABELS = Labels(spam=0, ham=0)


@dataclass(frozen=True)
class Labelling:
    """What a record says about the label of a document."""

    label: LabelKind | None  # The label. None: the document has none any more.
    weight: int  # how much it counts, 1 to 100
    given_ms: int  # when it was given, in milliseconds since 1970


def pack_label(labelling: Labelling) -> bytes:
    """Return a label and its weight, or nothing if it was taken back."""
    return b"" if labelling.label is None else b"%s:%d" % (labelling.label.encode(), labelling.weight)


def unpack_label(packed: bytes) -> Labelling:
    """Return the label of a document as the store keeps it, behind the time when it was given."""
    label, weight = packed[TIME_BYTES:].split(b":")
    return Labelling("spam" if label == b"spam" else "ham", int(weight), int.from_bytes(packed[:TIME_BYTES], "big"))


@dataclass(frozen=True)
class Labelled:
    """A document with a label that counts."""

    document: Recorded  # the document
    labelling: Labelling  # its label


@dataclass(frozen=True)
class FamilyDetails:
    """Details of a family."""

    labels: Labels = NO_LABELS  # the labels of its documents that count
    senders: int = 0  # distinct senders of the documents that joined within the last hour, at most 256
    recipients: int = 0  # distinct recipients of these, at most 256
    # `suspended`: the labels do not count, because too many match them. `confirmed`: they count all the same. Else
    # empty.
    label_state: LabelState = ""
    labelled: tuple[Labelled, ...] = ()  # the documents whose labels count
    others: tuple[Recorded, ...] = ()  # the oldest and the newest other members, read if there are labels

    def of(self, kind: LabelKind) -> list[Recorded]:
        """Return the documents with a label of this kind."""
        return [each.document for each in self.labelled if each.labelling.label == kind]


def labelled_details(given: Iterable[tuple[Recorded, bytes]], until_ms: int) -> FamilyDetails:
    """Return the labels of documents, of which each comes with its packed label, empty without one.

    Labels count if they were given at `until_ms` or before.
    """
    labelled, others, weights = list[Labelled](), list[Recorded](), Counter[str]()
    for document, packed in given:
        label = unpack_label(packed) if packed else None
        if label is not None and label.given_ms <= until_ms:
            weights[label.label or ""] += label.weight
            labelled.append(Labelled(document, label))
        else:
            others.append(document)
    labels = Labels(spam=weights["spam"], ham=weights["ham"])
    return FamilyDetails(labels, labelled=tuple(labelled), others=tuple(others))


async def details_of(store: Store, scheme: str, growth: Growth, delay_ms: int) -> FamilyDetails:
    """Return the details of a family.

    Labels count from the age `delay_ms` on, as long as their documents live.
    """
    views = await store.fetch([Query(number, record=True) for _, number, _ in growth.marks]) if growth.marks else ()
    given = [
        (unpack_record(view.record, scheme, view.order.version, view.order.observed_ms), packed)
        for (_, _, packed), view in zip(growth.marks, views, strict=True)
        if view is not None and not view.is_dead and view.record is not None
    ]
    found = labelled_details(given, growth.now_ms - delay_ms)
    return replace(found, senders=growth.senders, recipients=growth.recipients, others=())
