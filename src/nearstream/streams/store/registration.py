"""Registration: what the home of a document is told about its states, and what it answers.

The number of a state is its offset on `signatures`, plus 1, times the count of partitions, plus its partition. So the
home of a state follows from its number, and the numbers of one partition are in the order of their records.
"""

from enum import IntEnum
from typing import NamedTuple

from nearstream.schemas.documents.document import CLOCKS_MS

NUMBER_BYTES = 5
TIME_BYTES = 6
DOCUMENT_BYTES = 9  # of the hash of a document key


class Order(NamedTuple):
    """What decides which of two states of one document is newer.

    Attributes:
        observed_ms: When the state was observed, in milliseconds since 1970.
        partition: Partition of its record on `documents`, -1 if it came from no topic.
        offset: Offset of that record.
        version: The first 8 bytes of its digest.
    """

    observed_ms: int
    partition: int
    offset: int
    version: bytes


class Sent(NamedTuple):
    """A record on `documents`.

    Attributes:
        partition: Its partition, -1 if there is no record.
        offset: Its offset.
        ms: Its timestamp, in milliseconds since 1970. 0: it is not known.
    """

    partition: int = -1
    offset: int = 0
    ms: int = 0

    def is_before(self, removal: "Sent") -> bool:
        """Return whether a removal comes after this record, or is in it.

        In one partition offsets decide. A record that is later by more than `CLOCKS_MS` belongs to a new topic of this
        name, and offsets of two topics cannot be compared.
        """
        is_of_a_new_topic = self.ms > removal.ms + CLOCKS_MS and removal.ms > 0
        return 0 <= self.partition == removal.partition and self.offset <= removal.offset and not is_of_a_new_topic


class Put(NamedTuple):
    """A state of a document.

    Attributes:
        number: Its number.
        document: Hash of the document key.
        order: Its place among the states of the document.
        anchors: Count of its anchor keys.
        record: Its signature, packed.
        now_ms: Time of the admission in milliseconds since 1970, 0 for the clock of the store.
        sent_ms: Timestamp of its record on `documents`, 0 if it is not known.
    """

    number: int
    document: bytes
    order: Order
    anchors: int
    record: bytes
    now_ms: int = 0
    sent_ms: int = 0

    @property
    def sent(self) -> Sent:
        """Its record on `documents`."""
        return Sent(self.order.partition, self.order.offset, self.sent_ms)


class Removal(NamedTuple):
    """A removal of a document.

    Attributes:
        number: Its number.
        document: Hash of the document key.
        partition: Partition of its record on `documents`, -1 if it came from no topic.
        offset: Offset of that record.
        now_ms: Time of the admission in milliseconds since 1970, 0 for the clock of the store.
        sent_ms: Timestamp of that record, 0 if it is not known.
    """

    number: int
    document: bytes
    partition: int
    offset: int
    now_ms: int = 0
    sent_ms: int = 0

    @property
    def sent(self) -> Sent:
        """Its record on `documents`."""
        return Sent(self.partition, self.offset, self.sent_ms)


class Labelling(NamedTuple):
    """A label of a document, given or taken back.

    Attributes:
        number: The number of its record.
        document: Hash of the document key.
        label: The label, packed. Empty: it was taken back.
        given_ms: When it was given, in milliseconds since 1970.
        now_ms: Time of the admission in milliseconds since 1970, 0 for the clock of the store.
    """

    number: int
    document: bytes
    label: bytes
    given_ms: int
    now_ms: int = 0


class Status(IntEnum):
    """What a registration meant to the store."""

    NEW = 0  # a state that is not decided yet
    KNOWN = 1  # a state that was registered before
    UNCHANGED = 2  # the current state of the document again
    OVERTAKEN = 3  # a document that was sent before its removal and arrives after it
    REMOVED = 4
    LABELLED = 5


class Registered(NamedTuple):
    """The answer to a registration.

    Attributes:
        status: What it meant.
        number: The state that the answer is about: its own, or the one that it repeats. 0: there is none.
        decision: What was decided about this state, None if nothing was.
        former: The state of the document that was current before, 0 if there is none.
        former_decision: What was decided about that.
        is_late: It was observed before the current state.
        is_dead: It was superseded or came late.
        is_founder: Others have followed this state, whatever was decided.
        left: Of a removal and an overtaken document: states that have left their families, with the founders.
        was_known: Of a removal: the store had the document. Of an overtaken document: it has a later state.
        is_repeated: Of a removal: it, or a later one, was registered before.
        removed_by: Of an overtaken document: its removal.
        label: When the document got its label, `TIME_BYTES`, then the label. Empty if it has none.
    """

    status: Status
    number: int = 0
    decision: bytes | None = None
    former: int = 0
    former_decision: bytes | None = None
    is_late: bool = False
    is_dead: bool = False
    is_founder: bool = False
    left: tuple[tuple[int, int], ...] = ()
    was_known: bool = False
    is_repeated: bool = False
    removed_by: Sent = Sent()
    label: bytes = b""
