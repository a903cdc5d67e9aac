"""A document on its way to a decision."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nearstream.streams.matching.protocol.decision import Decision
from nearstream.streams.matching.protocol.tally import Shared
from nearstream.streams.store.messages import FamilyView
from nearstream.streams.store.registration import Registered


class Compared(Protocol):
    """An earlier document after the comparison, as far as the choice of a family needs it."""

    @property
    def number(self) -> int:
        """Number of the earlier state."""

    @property
    def is_exact(self) -> bool:
        """Whether both texts are equal."""

    @property
    def is_copy(self) -> bool:
        """Whether both texts are equal or near-duplicates."""

    @property
    def comes_before(self) -> bool:
        """Whether the earlier document was sent before the arriving one. This never changes."""

    @property
    def has_all(self) -> bool:
        """Whether the earlier text has all of the arriving document."""

    @property
    def rank(self) -> Any:  # noqa: ANN401 - any sort key
        """The sort key of counterparts, the best first."""


@dataclass(eq=False)
class Case:
    """A document on its way to a decision."""

    document: Any  # What is matched. The lane hands it to the judge and looks at nothing in it.
    number: int  # its number
    registered: Registered  # what the store said about it
    named: bytes  # its digest and lineage keys
    words: bytes  # its band and anchor keys
    anchors: int  # count of its anchor keys
    found: list[tuple[bytes, bytes]] = field(default_factory=list)  # its keys by slot, with what their buckets held
    shared: dict[int, Shared] = field(default_factory=dict)  # the keys shared with each state that was met
    undecided: set[int] = field(default_factory=set)  # states that were undecided when they were met
    superseded: set[int] = field(default_factory=set)  # states that a later document of the batch has superseded
    compared: dict[int, Compared] = field(default_factory=dict)  # the related ones, by number
    left: bytes = b""  # keys whose buckets it left out, because states of `relied` are there in its place
    # These states. They have to be alive, and of the family that it joins.
    relied: set[int] = field(default_factory=set)
    hint: int = 0  # The state that it seems to be a copy of. 0: none.
    may_be_counted: bool = False  # it may have been matched before, so a family may count it already
    counted_in: set[int] = field(default_factory=set)  # families that count it already
    full_buckets: int = 0  # number of its buckets that were full
    cut: bool = False  # candidates were left out
    seen: int = 0  # count of the notes that were considered
    # How many notes of each other state had been considered when that one was noted.
    noted: dict[int, int] = field(default_factory=dict)
    noted_by: Counter[int] = field(default_factory=Counter)  # count of the notes of each other state
    patience: int = 0  # turns that were waited for others
    # Undecided copies that know of it, so that they tell of the pair, and it does not.
    yields: set[int] = field(default_factory=set)
    decision: Decision | None = None  # what is decided about it
    is_restated: bool = False  # it was decided before
    is_gone: bool = False  # it was removed meanwhile
    patch: bytes = b""  # Its record as a patch of that of the founder of its family. Empty: that would not save enough.
    joined: FamilyView | None = None  # Its family, with its place there. None: it founded one that nobody has joined.
    late: list[Compared] = field(default_factory=list)  # related states that it has not met before it was decided

    @property
    def is_late(self) -> bool:
        """Whether it was observed before the state that was current when it came."""
        return self.registered.is_late

    @property
    def is_dead(self) -> bool:
        """Whether it is no current state."""
        return self.registered.is_dead

    @property
    def copies(self) -> Sequence[Compared]:
        """The earlier states whose texts are equal or near-duplicates."""
        return [each for each in self.compared.values() if each.is_copy]

    def has_noted(self, number: int) -> bool:
        """Return whether a state knows that this one goes on without it.

        A note of that state that came after the one of this document asks for another one. Else two documents that have
        noted each other would both go on, and found two families.
        """
        return self.noted.get(number, -1) >= self.noted_by[number]
