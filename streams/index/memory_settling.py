"""Decisions about states in dictionaries: which family a state joins, and which events are sent."""

from collections import Counter
from collections.abc import Callable, Sequence

from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.details import unpack_addresses
from nearstream.streams.index.family import PAIRS_CAP, SENT_CAP, Pair, Sending, Settled, Settlement
from nearstream.streams.index.memory_families import Families
from nearstream.streams.index.memory_family_facts import Facts, Member
from nearstream.streams.index.memory_states import States


class Settling:
    """Records decisions."""

    def __init__(self, states: States, families: Families, events_per_family: int) -> None:
        """Take states and families, and the limit of events for each other family (0: none)."""
        self._states = states
        self._families = families
        self._events_per_family = events_per_family

    def settle(self, settlement: Settlement, candidate: Callable[[int], Candidate]) -> Settled:
        """Record a decision, unless there is one. `candidate` makes one of a number."""
        number = settlement.number
        if number not in self._states.by_number:
            return Settled(None, (False,) * len(settlement.pairs))
        member = self._families.members.get(number)
        if member is None or not member.ordinal:
            again = self._unready(settlement, candidate)
            if again is not None:
                return again
            member = self._decide(settlement)
        sent = {(pair.relation, pair.number) for pair in member.pairs if pair.sending}
        view = self._families.view(number, member)
        return Settled(view, tuple((pair.relation, pair.number) in sent for pair in settlement.pairs))

    def _unready(self, settlement: Settlement, candidate: Callable[[int], Candidate]) -> Settled | None:
        """Return the answer to a settlement whose family cannot be joined like this, else None."""
        target, families = settlement.joins, self._families
        if not target:
            return None
        if settlement.keeps:
            return Settled(None, is_refused=True) if self._relies_on_others(settlement) else None
        if families.of(target) == settlement.number:
            return Settled(None, is_refused=True)
        state = self._states.by_number.get(target)
        # A state that was superseded meanwhile was alive when this one got its number.
        was_alive = state is not None and (not state.dead or state.dead > settlement.number)
        representative = families.representative(families.of(target))
        if families.presumed(target) and was_alive and not (settlement.is_exact and representative):
            return None
        if not representative:
            return None if was_alive else Settled(None, is_refused=True)
        joins_twin = settlement.is_exact and was_alive and not families.presumed(target)
        return None if representative == target or joins_twin else Settled(None, follow=candidate(representative))

    def _relies_on_others(self, settlement: Settlement) -> bool:
        """Return whether a state that keeps its family left out buckets for the representative of another one."""
        presumed = self._families.presumed(settlement.number)
        return bool(presumed) and self._families.of(presumed) != self._joined(settlement.joins)[1]

    def _joined(self, target: int) -> tuple[Member, int]:
        """Return the membership of a state that is joined, and the founder of its family."""
        joined = self._families.members.get(target, Member(target, 0))
        return joined, self._families.of(target) if joined.ordinal else target

    def _decide(self, settlement: Settlement) -> Member:
        number, target, families = settlement.number, settlement.joins, self._families
        member = Member(number, 1)
        if target and families.of(target) != number:
            joined, founder = self._joined(target)
            facts = self._facts(settlement, founder)
            if settlement.keeps:
                member = Member(joined.family, joined.ordinal) if joined.ordinal else Member(target, 1)
                self._keep(facts, number, member.ordinal if member.family == founder else 0)
            else:
                member = Member(founder, self._join(facts, settlement))
        # The family is known first, because the events of a family depend on it.
        families.members[number] = member
        pairs = self._sent(settlement.pairs, families.of(number), member.ordinal)
        families.members[number] = member = Member(member.family, member.ordinal, pairs, settlement.degraded)
        return member

    def _facts(self, settlement: Settlement, founder: int) -> Facts:
        """Return the facts of a family, which are made when its first copy joins it."""
        families = self._families
        facts = families.facts.get(founder)
        if facts is None:
            facts = Facts(settlement.family_id, settlement.first_seen_ms, founder, [founder])
            member = families.members.get(founder, Member(founder, 1))
            links = [(pair.relation, families.of(pair.number)) for pair in member.pairs if pair.sending]
            facts.sent = [link for link in links if link[1] != founder][-SENT_CAP:]
            families.facts[founder] = facts
            if not families.lives(founder):
                facts.representative = 0
                facts.drop(0)
        return facts

    def _keep(self, facts: Facts, number: int, ordinal: int) -> None:
        """Let another state of a document take the place of its former one."""
        if not self._families.lives(number):
            return  # it came late, or is not current any more
        if ordinal:
            facts.put(ordinal - 1, number)
        else:
            facts.log.append(number)
        is_thin = self._families.presumed(number) > 0
        is_founder_again = ordinal == 1 and facts.is_bare and not is_thin
        if is_founder_again or not self._families.lives(facts.representative):
            facts.representative, facts.is_bare = number, is_thin

    def _join(self, facts: Facts, settlement: Settlement) -> int:
        """Count a new member, with those that joined it while it was in flight, and return its ordinal."""
        number, families = settlement.number, self._families
        facts.log.append(number)
        ordinal = len(facts.log)
        now_ms, arriving = self._states.now_ms, settlement.arriving
        facts.count(now_ms)
        facts.senders.note(dict.fromkeys(unpack_addresses(arriving.sender), now_ms), now_ms)
        facts.recipients.note(dict.fromkeys(unpack_addresses(arriving.recipients), now_ms), now_ms)
        if not families.lives(number):  # it came late, or is not current any more
            facts.drop(ordinal - 1)
        self._bring(facts, number)
        self._spare(facts.representative)
        self._spare(settlement.joins)
        if families.lives(number):
            self._represent(facts, settlement)
        return ordinal

    def _bring(self, facts: Facts, number: int) -> None:
        """Take in the family that a new member founded while it was in flight, which keeps its id in verdicts."""
        own = self._families.facts.get(number)
        if own is None:
            return
        facts.log += [member for member in own.log if member not in (0, number)]
        facts.slots.update(own.slots)
        facts.senders.note(own.senders.seen_ms, self._states.now_ms)
        facts.recipients.note(own.recipients.seen_ms, self._states.now_ms)
        facts.sent = [*facts.sent, *own.sent][-SENT_CAP:]
        own.log, own.representative = [], 0

    def _spare(self, number: int) -> None:
        if self._families.lives(number):
            self._states.spare_now(number)

    def _represent(self, facts: Facts, settlement: Settlement) -> None:
        """Let a new member that is in all its buckets take over from one that is old or in few."""
        families, number = self._families, settlement.number
        is_thin = families.presumed(number) > 0
        if not families.lives(facts.representative):
            facts.representative, facts.is_bare = number, is_thin
        elif not is_thin and (facts.is_bare or self._states.is_aging(facts.representative)):
            facts.representative, facts.is_bare = number, False

    def _sent(self, pairs: Sequence[Pair], family: int, ordinal: int) -> tuple[Pair, ...]:
        """Return the pairs to be stored: those whose events are sent, and the first one."""
        facts = self._families.facts.get(family)
        of_family: Counter[int] = Counter()
        sent: set[int] = set()
        for pair in sorted(pairs, key=lambda pair: pair.sending is not Sending.ALWAYS):
            if pair.number not in self._states.by_number or pair.sending is Sending.NEVER:
                continue
            other = self._families.of(pair.number)
            limit = 1 if other == family and self._events_per_family else self._events_per_family
            link = (pair.relation, other)
            known = other != family and ordinal > 1 and facts is not None and link in facts.sent
            if pair.sending is Sending.ONCE and limit and (known or of_family[other] >= limit):
                continue
            of_family[other] += 1
            sent.add(id(pair))
            if facts is not None and other != family and link not in facts.sent:
                facts.sent = [*facts.sent, link][-SENT_CAP:]
        stored = [
            Pair(pair.relation, Sending.ALWAYS if id(pair) in sent else Sending.NEVER, pair.number, pair.candidate)
            for place, pair in enumerate(pairs)
            if id(pair) in sent or place == 0
        ]
        return tuple(stored[:PAIRS_CAP])
