"""What the matcher asks of a store, and what a store answers.

A store consists of slots that know nothing of each other. Each call touches one slot, is atomic there, and is
idempotent. None of them looks at a text. `registration.py` has the first messages of a document. The others:

    Entry → bytes                           in the slots of its keys: who else has these keys
    Query → View, FamilyView                at the home of another state: what was decided about it
    Note → Noted                            at the home of an undecided state: that another one goes on without it
    Proposal → Decided                      at the home of the document: its decision, made once
    Join, Leave → FamilyView                at the home of a founder: who belongs to its family
    Shortened                               at the home of a copy: its record as a patch of that of the founder
"""

from typing import NamedTuple

from nearstream.streams.store.registration import NUMBER_BYTES, Order

KEY_BYTES = 9  # of a key in an entry: its kind, and 8 bytes
LINK_BYTES = 1 + NUMBER_BYTES  # of the code of a relation, and the founder of another family
FAMILY_ID_BYTES = 16
DIGEST, LINEAGE, BAND, ANCHOR = b"x", b"l", b"b", b"a"  # kinds of keys


class Entry(NamedTuple):
    """Keys of a state, all of one slot."""

    number: int  # the state
    hint: int  # A bucket that holds this number is left alone. 0: none.
    keys: bytes  # kind and value of each key, `KEY_BYTES` each


class Query(NamedTuple):
    """A question about a state."""

    number: int  # the state
    asker: int = 0  # Whose place in the family that it founded is asked for. 0: nobody's.
    record: bool = False  # whether its record is wanted


class FamilyView(NamedTuple):
    """What a founder's home says about its family."""

    representative: int  # the state that represents it, 0 if none lives
    is_bare: bool  # the representative may be in few buckets
    ordinal: int  # The place of the asker in the order of joining, 0 if it has not joined. The founder has 1.
    family_id: bytes  # 16 bytes
    first_seen_ms: int  # when the founder was observed
    # Distinct sites of those who had joined when the asker did, at most `SITES_CAP`. 0: it has not joined.
    sites: int = 0
    new_links: tuple[bool, ...] = ()  # of the answer to a join: for each link, whether no other member had it before
    is_kept: bool = False  # of the answer to a join: the record of the founder is kept, as the join asked


class View(NamedTuple):
    """What is known about a state."""

    order: Order  # its place among the states of its document
    decision: bytes | None  # what was decided about it, None if nothing was
    anchors: int  # count of its anchor keys
    is_late: bool  # it was observed before the state that was current when it came
    is_dead: bool  # it was superseded, removed, or came late
    is_gone: bool  # It was removed or has expired. Its decision still leads to its family.
    record: bytes | None  # Its signature, packed. None if it is gone or was not asked for.
    family: FamilyView | None  # the family that it founded, None if nobody has joined it


class Note(NamedTuple):
    """That the state `by` goes on without an undecided one, which then has to consider it first."""

    number: int
    by: int


class Noted(NamedTuple):
    """The answer to a note."""

    decision: bytes | None  # What had been decided about the state, so that nothing was noted. None: nothing.
    is_gone: bool  # it was removed


class Shortened(NamedTuple):
    """The record of a state as a patch of that of the founder of its family."""

    number: int
    record: bytes


class Proposal(NamedTuple):
    """What shall be decided about a state."""

    number: int  # the state
    seen: int  # count of the notes that its matcher has considered
    decision: bytes  # The decision, packed. It begins with the number of the founder.


class Decided(NamedTuple):
    """The answer to a proposal."""

    decision: bytes | None  # What holds: the proposal, or what had been decided before. None: it was refused.
    notes: tuple[int, ...] = ()  # who noted the state, if it was refused because not all of them were considered
    is_dead: bool = False  # the state was superseded, or came late


class Join(NamedTuple):
    """A member of a family."""

    founder: int  # the founder of the family
    number: int  # The member. The founder itself joins to have its links remembered.
    is_dead: bool  # the member is no current state
    is_full: bool  # it is in all its buckets
    links: bytes  # relations to other families of which it would send an event, `LINK_BYTES` each
    instead: int  # The former state of its document, whose place in this family it takes. 0: none.
    family_id: bytes  # id of the family, should nobody have joined it yet
    first_seen_ms: int  # when the founder was observed
    sender: bytes = b""  # keyed hash of the sender of a mail, 8 bytes or none
    recipients: bytes = b""  # keyed hashes of its recipients, 8 bytes each
    now_ms: int = 0  # time of the join in milliseconds since 1970, 0 for the clock of the store
    site: bytes = b""  # hash of the site of the member, 8 bytes or none
    first_site: bytes = b""  # that of the founder, should nobody have joined it yet
    # The record of the founder is needed for a retention from now on, because that of the member will be a patch of it.
    keeps: bool = False
    ordinal: int = 0  # that of the last verdict about the member, in a rebuild. 0: the next one, if it is new.
    ordinals: int = 0  # the highest one that a verdict names in the family, in a rebuild


class Leave(NamedTuple):
    """That a member of a family has died. The answer is who represents it now."""

    founder: int
    number: int


class Cover(NamedTuple):
    """That everything up to an offset of a partition of `signatures` is done."""

    partition: int  # the partition
    offset: int  # the offset
    now_ms: int = 0  # the time in milliseconds since 1970, 0 for the clock of the store


class Mark(NamedTuple):
    """That a labelled document is in a family."""

    founder: int  # the founder of the family
    document: bytes  # hash of the document key
    number: int  # the current state of the document
    label: bytes  # Its label, as `Registered` has it. Empty: it has none any more.


class Measure(NamedTuple):
    """The question how the family of a founder grows."""

    founder: int  # the founder
    now_ms: int = 0  # the time in milliseconds since 1970, 0 for the clock of the store
