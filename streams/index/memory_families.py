"""Families in dictionaries: who belongs to which, and who represents them."""

from collections.abc import Callable

from nearstream.schemas.event_id import family_id
from nearstream.streams.index.family import LOG_READS, Decision, Family, FamilyFacts, Pair
from nearstream.streams.index.memory_family_facts import Facts, Member
from nearstream.streams.index.memory_states import States

_STEPS = 8  # of families that joined each other as a whole while their founders were in flight


class Families:
    """The families of all states.

    Attributes:
        members: Decision or presumption by number of the state.
        facts: Families of two members or more, by the number of the founder.
    """

    def __init__(self, states: States) -> None:
        """Take the states."""
        self._states = states
        self.members: dict[int, Member] = {}
        self.facts: dict[int, Facts] = {}

    def of(self, number: int) -> int:
        """Return the founder of the family of a state, as far as that is known.

        A founder that others joined while it was in flight may have joined another family itself. Until that is
        decided, what it is presumed to join counts for it alone.
        """
        for step in range(_STEPS):
            member = self.members.get(number)
            if member is None or member.family == number or (step and not member.ordinal):
                break
            number = member.family
        return number

    def representative(self, family: int) -> int:
        """Return the living representative of a family, or 0."""
        facts = self.facts.get(family)
        if facts is None:
            return family if self.lives(family) else 0
        if facts.representative and not self.lives(facts.representative):
            living = (member for member in facts.log[facts.head :] if self.lives(member))
            facts.representative, facts.is_bare = next(living, 0), True
        return facts.representative

    def represents(self, number: int) -> bool:
        """Return whether copies of this state join its family.

        Each member does that of a family whose representative is gone.
        """
        representative = self.representative(self.of(number))
        return not representative or (representative == number and not self.presumed(number))

    def has_all_keys(self, number: int) -> bool:
        """Return whether copies of this state may rely on the buckets that its family is in.

        A representative that took the place of another may be in few of them.
        """
        family = self.of(number)
        facts = self.facts.get(family)
        return not facts.is_bare if facts else family == number

    def has_joined(self, number: int) -> bool:
        """Return whether the family of a state has had a second member."""
        return self.of(number) in self.facts

    def presumed(self, number: int) -> int:
        """Return the representative whose copy a state is presumed to be, or 0."""
        member = self.members.get(number)
        return member.family if member is not None and not member.ordinal and member.family != number else 0

    def was_denied(self, number: int) -> bool:
        """Return whether a state without a decision has entered the buckets that it left out."""
        return self.members.get(number) == Member(number, 0)

    def presume(self, number: int, representative: int) -> None:
        """Remember the presumption of a state until it is settled."""
        self.members[number] = Member(representative, 0)

    def deny(self, number: int) -> None:
        """Note that a state has entered the buckets that it left out."""
        if self.presumed(number):
            self.members[number] = Member(number, 0)

    def heir(self, number: int) -> int:
        """Return the living representative that a dead state leads to, or 0."""
        family = self.of(number)
        return self.representative(family) if family in self.facts else 0

    def decision(self, number: int, found: Callable[[Pair], Pair]) -> Decision | None:
        """Return the decision on a state, if there is one. `found` looks up the candidate of a pair again."""
        member = self.members.get(number)
        if member is None or not member.ordinal:
            return None
        return Decision(self.view(number, member), tuple(found(pair) for pair in member.pairs), member.degraded)

    def view(self, number: int, member: Member) -> Family:
        """Return the family of a state as its verdict named it."""
        facts, state = self.facts.get(member.family), self._states.by_number.get(member.family)
        founder = state.signature if state is not None else None
        if facts is not None:
            return Family(self.of(number), facts.family_id, member.ordinal, founder, facts.first_seen_ms)
        own = founder or self._states.by_number[number].signature
        own_id = family_id(own.document_key, own.version, own.scheme)
        return Family(self.of(number), own_id, member.ordinal, founder, own.observed_at_ms)

    def all_facts(self) -> list[FamilyFacts]:
        """Return the size and growth of all families with two members or more."""
        now_ms, states = self._states.now_ms, self._states.by_number
        return [
            FamilyFacts(
                facts.family_id,
                number,
                self.representative(number),
                facts.size,
                facts.first_seen_ms,
                facts.last_ms,
                facts.joined(now_ms),
                states[number].document_key if number in states else "",
            )
            for number, facts in self.facts.items()
            if len(facts.log) > 1
        ]

    def count_addresses(self, number: int, now_ms: int) -> tuple[int, int]:
        """Return the number of senders, and of recipients, in the family of a state within the last hour."""
        facts = self.facts.get(self.of(number))
        return (facts.senders.count(now_ms), facts.recipients.count(now_ms)) if facts else (0, 0)

    def leave(self, number: int) -> None:
        """Note that a state has died: it was removed, or another state of its document is current."""
        member = self.members.get(number)
        facts = self.facts.get(self.of(number))
        if facts is None or self.presumed(number):
            return
        place = facts.place(number, member.ordinal if member else 1)
        if place is not None:
            facts.drop(place)
        if facts.representative == number:
            self._hand_on(facts, number)

    def renumber(self, number: int, renewed: int) -> None:
        """Give a member another number, because its document was seen again late in its life."""
        member, family = self.members.get(number, Member(number, 1)), self.of(number)
        facts = self.facts.get(family)
        if facts is None or not member.ordinal:
            self.members[renewed] = Member(renewed, max(member.ordinal, 1))
            return
        self.members[renewed] = Member(member.family, member.ordinal)
        place = facts.place(number, member.ordinal)
        if place is not None:
            facts.log[place] = renewed
        if facts.representative == number:
            facts.representative, facts.is_bare = renewed, False

    def forget(self, number: int) -> None:
        """Forget a state that has expired, and its family if that is empty then."""
        family = self.of(number)
        self.members.pop(number, None)
        if family != number:
            self.facts.pop(number, None)
        facts = self.facts.get(family)
        if facts is None or self.lives(facts.representative):
            return
        self._hand_on(facts, number)
        if not facts.representative:
            del self.facts[family]

    def lives(self, number: int) -> bool:
        """Return whether a state is stored and current."""
        state = self._states.by_number.get(number)
        return state is not None and not state.dead

    def _hand_on(self, facts: Facts, number: int) -> None:
        """Let the oldest living member with the text of a state represent a family, else the oldest living one."""
        while facts.head < len(facts.log) and not self.lives(facts.log[facts.head]):
            facts.drop(facts.head)
            facts.head += 1
        states = self._states.by_number
        living = [each for each in facts.log[facts.head : facts.head + LOG_READS] if self.lives(each)]
        state = states.get(number)
        equal = [each for each in living if state and states[each].signature.digest == state.signature.digest]
        facts.representative, facts.is_bare = (equal or living or [0])[0], True
