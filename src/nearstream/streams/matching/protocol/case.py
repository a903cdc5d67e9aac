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
    def rank(self) -> Any:  # noqa: ANN401 - any sort key
        """The sort key of counterparts, the best first."""


@dataclass(eq=False)
class Case:
    """A document on its way to a decision.

    Attributes:
        document: What is matched. The lane hands it to the judge and looks at nothing in it.
        number: Its number.
        registered: What the store said about it.
        named: Its digest and lineage keys.
        words: Its band and anchor keys.
        anchors: Count of its anchor keys.
        found: Its keys by slot, with what their buckets held.
        shared: The keys shared with each state that was met.
        undecided: States that were undecided when they were met.
        superseded: States that a later document of the batch has superseded.
        compared: The related ones, by number.
        left: Keys whose buckets it left out, because states of `relied` are there in its place.
        relied: These states. They have to be alive, and of the family that it joins.
        hint: The state that it seems to be a copy of. 0: none.
        may_be_counted: It may have been matched before, so a family may count it already.
        counted_in: Families that count it already.
        full_buckets: Number of its buckets that were full.
        cut: Candidates were left out.
        seen: Count of the notes that were considered.
        noted: How many notes of each other state had been considered when that one was noted.
        noted_by: Count of the notes of each other state.
        patience: Turns that were waited for others.
        yields: Undecided copies that know of it, so that they tell of the pair, and it does not.
        decision: What is decided about it.
        is_restated: It was decided before.
        is_gone: It was removed meanwhile.
        joined: Its family, with its place there. None: it founded one that nobody has joined.
        late: Related states that it has not met before it was decided.
    """

    document: Any
    number: int
    registered: Registered
    named: bytes
    words: bytes
    anchors: int
    found: list[tuple[bytes, bytes]] = field(default_factory=list)
    shared: dict[int, Shared] = field(default_factory=dict)
    undecided: set[int] = field(default_factory=set)
    superseded: set[int] = field(default_factory=set)
    compared: dict[int, Compared] = field(default_factory=dict)
    left: bytes = b""
    relied: set[int] = field(default_factory=set)
    hint: int = 0
    may_be_counted: bool = False
    counted_in: set[int] = field(default_factory=set)
    full_buckets: int = 0
    cut: bool = False
    seen: int = 0
    noted: dict[int, int] = field(default_factory=dict)
    noted_by: Counter[int] = field(default_factory=Counter)
    patience: int = 0
    yields: set[int] = field(default_factory=set)
    decision: Decision | None = None
    is_restated: bool = False
    is_gone: bool = False
    joined: FamilyView | None = None
    late: list[Compared] = field(default_factory=list)

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
        """Return whether a state knows that this one goes on without it."""
        return self.noted.get(number, -1) >= self.noted_by[number]
