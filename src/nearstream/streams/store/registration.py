"""Registration: what the home of a document is told about its states, and what it answers.

The number of a state is its offset on `signatures`, plus 1, times the count of partitions, plus its partition. So the
home of a state follows from its number, and the numbers of one partition are in the order of their records.
"""

from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from nearstream.schemas.documents.document import CLOCKS_MS

NUMBER_BYTES = 5
TIME_BYTES = 6
DOCUMENT_BYTES = 9  # of the hash of a document key


def document_hash(document_key: str) -> bytes:
    """Return the hash under which a store knows a document."""
    return blake2b(document_key.encode("utf-8", "surrogatepass"), digest_size=DOCUMENT_BYTES).digest()


class Order(NamedTuple):
    """What decides which of two states of one document is newer."""

    observed_ms: int  # when the state was observed, in milliseconds since 1970
    partition: int  # partition of its record on `documents`, -1 if it came from no topic
    offset: int  # offset of that record
    version: bytes  # the first 8 bytes of its digest


class Sent(NamedTuple):
    """A record on `documents`."""

    partition: int = -1  # its partition, -1 if there is no record
    offset: int = 0  # its offset
    ms: int = 0  # Its timestamp, in milliseconds since 1970. 0: it is not known.

    def is_before(self, removal: "Sent") -> bool:
        """Return whether a removal comes after this record, or is in it.

        In one partition offsets decide. A record that is later by more than `CLOCKS_MS` belongs to a new topic of this
        name, and offsets of two topics cannot be compared.
        """
        is_of_a_new_topic = self.ms > removal.ms + CLOCKS_MS and removal.ms > 0
        return 0 <= self.partition == removal.partition and self.offset <= removal.offset and not is_of_a_new_topic


class Put(NamedTuple):
    """A state of a document."""

    number: int  # its number
    document: bytes  # hash of the document key
    order: Order  # its place among the states of the document
    anchors: int  # count of its anchor keys
    record: bytes  # its signature, packed
    now_ms: int = 0  # time of the admission in milliseconds since 1970, 0 for the clock of the store
    sent_ms: int = 0  # timestamp of its record on `documents`, 0 if it is not known

    @property
    def sent(self) -> Sent:
        """Its record on `documents`."""
        return Sent(self.order.partition, self.order.offset, self.sent_ms)


class Removal(NamedTuple):
    """A removal of a document."""

    number: int  # its number
    document: bytes  # hash of the document key
    partition: int  # partition of its record on `documents`, -1 if it came from no topic
    offset: int  # offset of that record
    now_ms: int = 0  # time of the admission in milliseconds since 1970, 0 for the clock of the store
    sent_ms: int = 0  # timestamp of that record, 0 if it is not known

    @property
    def sent(self) -> Sent:
        """Its record on `documents`."""
        return Sent(self.partition, self.offset, self.sent_ms)


class Labelling(NamedTuple):
    """A label of a document, given or taken back."""

    number: int  # the number of its record
    document: bytes  # hash of the document key
    label: bytes  # The label, packed. Empty: it was taken back.
    given_ms: int  # when it was given, in milliseconds since 1970
    now_ms: int = 0  # time of the admission in milliseconds since 1970, 0 for the clock of the store


class Status(IntEnum):
    """What a registration meant to the store."""

    NEW = 0  # a state that is not decided yet
    KNOWN = 1  # a state that was registered before
    UNCHANGED = 2  # the current state of the document again
    OVERTAKEN = 3  # a document that was sent before its removal and arrives after it
    REMOVED = 4
    LABELLED = 5


class Registered(NamedTuple):
    """The answer to a registration."""

    status: Status  # what it meant
    number: int = 0  # The state that the answer is about: its own, or the one that it repeats. 0: there is none.
    decision: bytes | None = None  # what was decided about this state, None if nothing was
    former: int = 0  # the state of the document that was current before, 0 if there is none
    is_late: bool = False  # it was observed before the current state
    is_dead: bool = False  # it was superseded or came late
    is_founder: bool = False  # others have followed this state, whatever was decided
    # Of a removal and an overtaken document: states that have left their families, with the founders.
    left: tuple[tuple[int, int], ...] = ()
    was_known: bool = False  # Of a removal: the store had the document. Of an overtaken document: it has a later state.
    is_repeated: bool = False  # of a removal: it, or a later one, was registered before
    removed_by: Sent = Sent()  # of an overtaken document: its removal
    label: bytes = b""  # When the document got its label, `TIME_BYTES`, then the label. Empty if it has none.
