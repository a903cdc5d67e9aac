"""What a lane knows about the states that its batch has met."""

from collections import defaultdict
from collections.abc import Iterator, MutableMapping

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.decision import founder_of, pack_decision
from nearstream.streams.store.messages import FamilyView, View


class Known:
    """What a lane knows about the states that its batch has met.

    Attributes:
        views: What the store said about each state.
        families: What the homes of founders said about their families.
        records: The records of states. They never change in meaning.
        expected: By undecided document of the batch, whose family it will join if nothing comes between.
        successors: Documents of the batch by the state that each has superseded.
    """

    def __init__(self, records: MutableMapping[int, bytes] | None = None) -> None:
        self.views: dict[int, View] = {}
        self.families: dict[int, FamilyView] = {}
        self.records: MutableMapping[int, bytes] = {} if records is None else records
        self.expected: dict[int, int] = {}
        self.successors: dict[int, int] = {}

    def decided(self, case: Case) -> None:
        """Note what was decided about a document of the batch."""
        if case.decision is None:
            return
        view = self.views.get(case.number)
        if view is not None:
            self.views[case.number] = view._replace(decision=pack_decision(case.decision))

    def has_text(self, number: int) -> bool:
        """Return whether a state was not removed and has not expired, and its record is known."""
        view = self.views.get(number)
        return number in self.records and view is not None and not view.is_gone

    def founder(self, number: int) -> int:
        """Return the founder of the family of a state, 0 if nothing is known to be decided about the state."""
        view = self.views.get(number)
        return founder_of(view.decision) if view is not None and view.decision is not None else 0

    def family_of(self, number: int) -> int:
        """Return the founder of the family of a state, which is the state itself if nothing else is known."""
        return self.founder(number) or self.expected.get(number, number)

    def members(self, founder: int) -> Iterator[int]:
        """Yield the states that belong to a family, dead ones too."""
        for number, view in self.views.items():
            if view.decision is not None and founder_of(view.decision) == founder:
                yield number

    def living(self) -> defaultdict[int, list[int]]:
        """Return the living states by the founder of their family."""
        found = defaultdict[int, list[int]](list)
        for number, view in self.views.items():
            if view.decision is not None and not view.is_dead:
                found[founder_of(view.decision)].append(number)
        return found
