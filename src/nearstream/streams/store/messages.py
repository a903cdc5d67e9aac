"""What the matcher asks of a store, and what a store answers.

A store consists of slots that know nothing of each other. Each call touches one slot, is atomic there, and is
idempotent. None of them looks at a text. `registration.py` has the first messages of a document. The others:

    Entry → bytes                           in the slots of its keys: who else has these keys
    Query → View, FamilyView                at the home of another state: what was decided about it
    Note → Noted                            at the home of an undecided state: that another one goes on without it
    Proposal → Decided                      at the home of the document: its decision, made once
    Join, Leave → FamilyView                at the home of a founder: who belongs to its family
    Keep, Shortened                         there, and at the home of a copy: equal parts of records are stored once
"""

from typing import NamedTuple

from nearstream.streams.store.registration import NUMBER_BYTES, Order

KEY_BYTES = 9  # of a key in an entry: its kind, and 8 bytes
LINK_BYTES = 1 + NUMBER_BYTES  # of the code of a relation, and the founder of another family
FAMILY_ID_BYTES = 16
DIGEST, LINEAGE, BAND, ANCHOR = b"x", b"l", b"b", b"a"  # kinds of keys


class Entry(NamedTuple):
    """Keys of a state, all of one slot.

    Attributes:
        number: The state.
        hint: A bucket that holds this number is left alone. 0: none.
        keys: Kind and value of each key, `KEY_BYTES` each.
    """

    number: int
    hint: int
    keys: bytes


class Query(NamedTuple):
    """A question about a state.

    Attributes:
        number: The state.
        asker: Whose place in the family that it founded is asked for. 0: nobody's.
        record: Whether its record is wanted.
    """

    number: int
    asker: int = 0
    record: bool = False


class FamilyView(NamedTuple):
    """What a founder's home says about its family.

    Attributes:
        representative: The state that represents it, 0 if none lives.
        is_bare: The representative may be in few buckets.
        ordinal: The place of the asker in the order of joining, 0 if it has not joined. The founder has 1.
        family_id: 16 bytes.
        first_seen_ms: When the founder was observed.
        sites: Distinct sites of those who had joined when the asker did, at most `SITES_CAP`. 0: it has not joined.
        new_links: Of the answer to a join: for each link, whether no other member had it before.
    """

    representative: int
    is_bare: bool
    ordinal: int
    family_id: bytes
    first_seen_ms: int
    sites: int = 0
    new_links: tuple[bool, ...] = ()


class View(NamedTuple):
    """What is known about a state.

    Attributes:
        order: Its place among the states of its document.
        decision: What was decided about it, None if nothing was.
        anchors: Count of its anchor keys.
        is_late: It was observed before the state that was current when it came.
        is_dead: It was superseded, removed, or came late.
        is_gone: It was removed or has expired. Its decision still leads to its family.
        record: Its signature, packed. None if it is gone or was not asked for.
        family: The family that it founded, None if nobody has joined it.
    """

    order: Order
    decision: bytes | None
    anchors: int
    is_late: bool
    is_dead: bool
    is_gone: bool
    record: bytes | None
    family: FamilyView | None


class Note(NamedTuple):
    """That the state `by` goes on without an undecided one, which then has to consider it first."""

    number: int
    by: int


class Noted(NamedTuple):
    """The answer to a note.

    Attributes:
        decision: What had been decided about the state, so that nothing was noted. None: nothing.
        is_gone: It was removed.
    """

    decision: bytes | None
    is_gone: bool


class Keep(NamedTuple):
    """That the record of a founder is needed as long as that of a member. The answer is whether it is kept."""

    founder: int
    number: int


class Shortened(NamedTuple):
    """The record of a state as a patch of that of the founder of its family."""

    number: int
    record: bytes


class Proposal(NamedTuple):
    """What shall be decided about a state.

    Attributes:
        number: The state.
        seen: Count of the notes that its matcher has considered.
        decision: The decision, packed. It begins with the number of the founder.
    """

    number: int
    seen: int
    decision: bytes


class Decided(NamedTuple):
    """The answer to a proposal.

    Attributes:
        decision: What holds: the proposal, or what had been decided before. None: it was refused.
        notes: Who noted the state, if it was refused because not all of them were considered.
        is_dead: The state was superseded, or came late.
    """

    decision: bytes | None
    notes: tuple[int, ...] = ()
    is_dead: bool = False


class Join(NamedTuple):
    """A member of a family.

    Attributes:
        founder: The founder of the family.
        number: The member. The founder itself joins to have its links remembered.
        is_dead: The member is no current state.
        is_full: It is in all its buckets.
        links: Relations to other families of which it would send an event, `LINK_BYTES` each.
        instead: The former state of its document, whose place in this family it takes. 0: none.
        family_id: Id of the family, should nobody have joined it yet.
        first_seen_ms: When the founder was observed.
        sender: Keyed hash of the sender of a mail, 8 bytes or none.
        recipients: Keyed hashes of its recipients, 8 bytes each.
        now_ms: Time of the join in milliseconds since 1970, 0 for the clock of the store.
        site: Hash of the site of the member, 8 bytes or none.
        first_site: That of the founder, should nobody have joined it yet.
    """

    founder: int
    number: int
    is_dead: bool
    is_full: bool
    links: bytes
    instead: int
    family_id: bytes
    first_seen_ms: int
    sender: bytes = b""
    recipients: bytes = b""
    now_ms: int = 0
    site: bytes = b""
    first_site: bytes = b""


class Leave(NamedTuple):
    """That a member of a family has died. The answer is who represents it now."""

    founder: int
    number: int


class Cover(NamedTuple):
    """That everything up to an offset of a partition of `signatures` is done.

    Attributes:
        partition: The partition.
        offset: The offset.
        now_ms: The time in milliseconds since 1970, 0 for the clock of the store.
    """

    partition: int
    offset: int
    now_ms: int = 0


class Mark(NamedTuple):
    """That a labelled document is in a family.

    Attributes:
        founder: The founder of the family.
        document: Hash of the document key.
        number: The current state of the document.
        label: Its label, as `Registered` has it. Empty: it has none any more.
    """

    founder: int
    document: bytes
    number: int
    label: bytes


class Measure(NamedTuple):
    """The question how the family of a founder grows.

    Attributes:
        founder: The founder.
        now_ms: The time in milliseconds since 1970, 0 for the clock of the store.
    """

    founder: int
    now_ms: int = 0
