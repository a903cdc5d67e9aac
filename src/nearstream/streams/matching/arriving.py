"""What arrives at the matcher, and what the store is told about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.streams.matching.labels import Labelling, pack_label
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.signing.scheme import Keys, Scheme
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, LINEAGE
from nearstream.streams.store.record import pack_signature
from nearstream.streams.store.registration import Labelling as Label
from nearstream.streams.store.registration import Order, Put, Registered, Removal, document_hash
from nearstream.streams.store.store import Position


@dataclass(frozen=True)
class Arriving:
    """An arriving document, or one that is only looked up."""

    signature: Signature  # its signature, as a record keeps it
    keys: Keys  # its index keys
    scheme: Scheme  # the scheme of all signatures
    thresholds: Thresholds = DEFAULT_THRESHOLDS  # the thresholds of all rules

    @cached_property
    def record(self) -> bytes:
        """What the store keeps of it."""
        return pack_signature(self.signature)

    @property
    def names(self) -> set[str | bytes]:
        """All its keys, of which it shares one with each document that it may meet in its collection."""
        return {self.keys.digest, self.keys.lineage or self.keys.digest, *self.keys.bands, *self.keys.anchors}


@dataclass(frozen=True)
class Arrival:
    """A document for the matcher, or the removal or the label of one.

    Raises:
        ValueError: A removal has no time, or the signature belongs to another document.
    """

    document_key: str  # `<collection>/<id>`
    signature: Signature | None  # the whole signature, None for a removal or a label
    position: Position | None = None  # partition and offset of its record, None in embedded use
    removed_at_ms: int | None = None  # time of a removal in milliseconds since 1970
    removal: Origin | None = None  # record of a removal on `documents`, None if it came from no topic
    labelling: Labelling | None = None  # the label, None if this is no label

    def __post_init__(self) -> None:
        """Refuse a signature of another document, and a removal without a time."""
        if self.signature is None and self.labelling is None and self.removed_at_ms is None:
            raise ValueError(f"removed_at_ms expected with the removal of {self.document_key!r}")
        if self.signature is not None and self.signature.document_key != self.document_key:
            raise ValueError(f"document_key of the signature expected, not {self.document_key!r}")


def message_of(arrival: Arrival, arriving: Arriving | None, number: int) -> Put | Removal | Label:
    """Return the message to the store about an arrival: a document, a removal or a label."""
    document = document_hash(arrival.document_key)
    if arriving is None and arrival.labelling is not None:
        return Label(number, document, pack_label(arrival.labelling), arrival.labelling.given_ms)
    if arriving is None:
        sent_ms = arrival.removal.sent_at_ms if arrival.removal else 0
        return Removal(number, document, *_place(arrival.removal), sent_ms=sent_ms)
    signature = arriving.signature
    order = Order(signature.observed_at_ms, *_place(signature.origin), bytes.fromhex(signature.version))
    anchors = len(arriving.keys.anchors)
    return Put(number, document, order, anchors, arriving.record, sent_ms=signature.sent_at_ms)


def case_of(arriving: Arriving, answer: Registered) -> Case:
    """Return the way to a decision about a document, which the store has answered."""
    named, words = pack_keys(arriving.keys)
    return Case(arriving, answer.number, answer, named, words, len(arriving.keys.anchors))


def _place(origin: Origin | None) -> tuple[int, int]:
    return (origin.partition, origin.offset) if origin else (-1, 0)


def pack_keys(keys: Keys) -> tuple[bytes, bytes]:
    """Return the packed digest and lineage keys, and the packed band and anchor keys."""
    lineage = b"" if keys.lineage is None else LINEAGE + keys.lineage
    named = (DIGEST + keys.digest if keys.digest else b"") + lineage
    anchors = tuple(dict.fromkeys((*keys.anchors, *keys.windows))) if keys.windows else keys.anchors
    return named, _packed(BAND, keys.bands) + _packed(ANCHOR, anchors)


def _packed(kind: bytes, keys: Sequence[bytes]) -> bytes:
    return kind + kind.join(keys) if keys else b""


def runs(
    documents: Sequence[tuple[Arrival, Arriving | None]], *, are_apart: bool = False
) -> Iterator[list[tuple[Arrival, Arriving | None]]]:
    """Yield what arrives in runs without two of one document.

    A state that is superseded within its batch has to be alive to those between both, as it is in smaller batches. If
    documents `are_apart`, no run has two that share a key, two collections, or a removal behind a document. So what
    becomes of each is what would become of it alone.
    """
    run: list[tuple[Arrival, Arriving | None]] = []
    names, collection = set[str | bytes](), ""
    for arrival, arriving in documents:
        own: set[str | bytes] = {arrival.document_key}
        if are_apart and arriving is not None:
            own |= arriving.names
        before, collection = collection, arriving.signature.collection if arriving else ""
        is_other = are_apart and (arriving is None or collection != before)
        if run and (is_other or not names.isdisjoint(own)):
            yield run
            run, names = [], set()
        run.append((arrival, arriving))
        names |= own
    if run:
        yield run
