"""An index in the memory of this process, for embedded use."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from nearstream.schemas.signature import Signature
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import (
    Admission,
    Admitted,
    IndexBehindError,
    IndexLimits,
    IndexState,
    Position,
    Status,
)
from nearstream.streams.index.details import FamilyDetails
from nearstream.streams.index.family import FamilyFacts, Pair, Settled, Settlement
from nearstream.streams.index.memory_buckets import Buckets, Seen, Shared
from nearstream.streams.index.memory_families import Families
from nearstream.streams.index.memory_labels import Labels
from nearstream.streams.index.memory_neighbours import Neighbours
from nearstream.streams.index.memory_removals import Removals
from nearstream.streams.index.memory_settling import Settling
from nearstream.streams.index.memory_states import State, States
from nearstream.streams.signing.scheme import Keys

_DEFAULTS = IndexLimits()
_STALE = Admitted(Status.STALE)


class MemoryIndex:
    """An index in dictionaries, the oracle for all other implementations.

    Time is given by the clock. Without a clock it is the largest `observed_at_ms` admitted so far.
    """

    def __init__(self, limits: IndexLimits = _DEFAULTS, clock: Callable[[], int] | None = None) -> None:
        """Create an empty index.

        Args:
            limits: Bounds of the index.
            clock: Returns milliseconds since 1970.
        """
        self._limits = limits
        self._clock = clock
        self._buckets = Buckets(limits.bucket_cap)
        self._states = States(limits.retention_seconds * 1000, self._forget)
        self._families = Families(self._states)
        self._settling = Settling(self._states, self._families, limits.events_per_family)
        self._neighbours = Neighbours(limits, self._buckets, self._states, self._families)
        self._removals = Removals()
        self._labels = Labels(self._states, self._families, limits.retention_seconds * 1000)
        self._checkpoints: dict[int, int] = {}  # last offset by partition

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Add each document and return its earlier neighbours, as of `now_ms`.

        Raises:
            IndexBehindError: Records before this batch were never admitted.
        """
        return [self._admit(admission, now_ms) for admission in batch]

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        """Add states, given by number, to the buckets that they left out, and name who did not see them."""
        return [self._enter_late(number, admission.keys) for number, admission in batch]

    async def settle(self, batch: Sequence[Settlement], now_ms: int | None = None) -> Sequence[Settled]:
        """Record decisions before their verdicts and events are sent."""
        self._states.now_ms = max(self._states.now_ms, self._time(None) if now_ms is None else now_ms)
        return [self._settle(settlement) for settlement in batch]

    async def families(self) -> Sequence[FamilyFacts]:
        """Return the size and growth of all families with two members or more."""
        return self._families.all_facts()

    def family_of(self, number: int) -> int:
        """Return the number of the state that founded the family of a state."""
        return self._families.of(number)

    async def details(self, number: int, delay_ms: int = 0, now_ms: int | None = None) -> FamilyDetails:
        """Return the details of the family of a state. Labels count from the age `delay_ms` on."""
        now_ms = max(self._states.now_ms, self._time(None) if now_ms is None else now_ms)
        labels = self._labels.count(self._families.of(number), now_ms - delay_ms, self._states.hidden(now_ms))
        return FamilyDetails(labels, *self._families.count_addresses(number, now_ms))

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Return up to `limit` neighbours of some keys.

        None of them has expired by `now_ms`.
        """
        now_ms = max(self._states.now_ms, self._time(None) if now_ms is None else now_ms)
        own = self._states.last + 1
        seen = self._buckets.gather(keys, own, self._states.hidden(now_ms))
        found, _ = self._neighbours.shortlist(seen, own, "", keys, limit)
        picked, _ = self._neighbours.pick(seen, found, keys, limit)
        return picked[:limit]

    def seen(self, keys: Keys) -> Seen:
        """Return what the buckets of these keys hold, without any limit."""
        return self._buckets.gather(keys, self._states.last + 1)

    async def state(self) -> IndexState:
        """Return `READY`, as this index always is."""
        return IndexState.READY

    def _time(self, signature: Signature | None) -> int:
        return self._clock() if self._clock else signature.observed_at_ms if signature else 0

    def _admit(self, admission: Admission, now_ms: int | None) -> Admitted:
        position, signature = admission.position, admission.signature
        if position is not None and self._checkpoint(position) < position.previous:
            raise IndexBehindError(position.partition, self._checkpoint(position))
        self._states.advance(self._time(signature) if now_ms is None else now_ms)
        if admission.labelling is not None:
            self._labels.put(admission.document_key, admission.labelling, position)
            answer = Admitted(Status.LABELLED)
        else:
            answer = self._remove(admission) if signature is None else self._put(admission, signature)
        if position is not None:
            self._checkpoints[position.partition] = max(self._checkpoint(position), position.offset)
        return answer

    def _checkpoint(self, position: Position) -> int:
        return self._checkpoints.get(position.partition, -1)

    def _put(self, admission: Admission, signature: Signature) -> Admitted:
        states, keys = self._states, admission.keys
        current = states.current(admission.document_key)
        position = admission.position
        is_known = position is not None and position.offset <= self._checkpoint(position)
        own = _partition_and_offset(position)
        if is_known:
            number = next((number for number in states.chain(current) if states.by_number[number].position == own), 0)
            if number:
                return self._replay(current, number, keys)
        removal = None if is_known else self._removals.later(admission, states.now_ms)
        if removal:
            return Admitted(Status.OVERTAKEN, found=current > 0, removed_by=removal)
        again = self._signed_again(signature, current, keys)
        if again is not None:
            return again
        if is_known and own is not None:
            number = states.same_version(signature, current, own)
            return self._unchanged(number, keys) if number else _STALE
        if current and states.by_number[current].signature.version == signature.version:
            return self._unchanged(self._refresh(current, keys) if states.is_aging(current) else current, keys)
        return self._store(admission, signature, current)

    def _signed_again(self, signature: Signature, current: int, keys: Keys) -> Admitted | None:
        """Return the answer to a record that was signed before, None if it was not."""
        number = self._states.signed_before(signature, current)
        if number:
            return self._replay(current, number, keys)
        number = self._states.repeated(signature, current)
        return self._unchanged(number, keys) if number not in (0, current) else None

    def _unchanged(self, number: int, keys: Keys) -> Admitted:
        shared = Shared(len(keys.bands), len(keys.anchors), by_digest=True, by_lineage=True)
        decision = self._families.decision(number, self._found)
        return Admitted(Status.UNCHANGED, number, self._neighbours.candidate(number, shared), decision=decision)

    def _replay(self, current: int, number: int, keys: Keys) -> Admitted:
        """Return what was decided about a state, or answer again if nothing was."""
        decision = self._families.decision(number, self._found)
        if decision is not None:
            return Admitted(Status.REPLAYED, number, decision=decision)
        previous, own_key = self._states.previous(current, number), self._states.by_number[number].document_key
        # Documents that came while it was not in all its buckets have not seen it.
        was_denied = self._families.was_denied(number)
        before = self._states.last + 1 if was_denied else number
        presumed = self._families.presumed(number)
        seen = self._seen(keys, before, presumed if self._states.are_twins(number, presumed) else 0)
        found = self._neighbours.shortlist(seen, before, own_key, keys, self._limits.candidates)
        answer = self._answer(Status.REPLAYED, number, previous, keys, seen, *found)
        return replace(answer, presumed=presumed, may_change=answer.may_change or was_denied)

    def _store(self, admission: Admission, signature: Signature, current: int) -> Admitted:
        keys, position = admission.keys, _partition_and_offset(admission.position)
        self._states.last = number = self._states.last + 1
        state = State(admission.document_key, position, signature, len(keys.bands), len(keys.anchors), current)
        self._states.by_number[number] = state
        former = self._states.by_number.get(current)
        is_late = former is not None and signature.order < former.signature.order
        thins = not is_late and self._limits.events_per_family > 0
        twin = self._neighbours.twin(signature, keys) if thins else 0
        if twin:
            self._states.share_text(number, twin)
        seen = self._seen(keys, number, twin)
        found = self._neighbours.shortlist(seen, number, admission.document_key, keys, self._limits.candidates)
        answer = self._answer(Status.NEW if former is None else Status.UPDATED, number, current, keys, seen, *found)
        if is_late:
            self._states.link(number, current)  # it enters no bucket, so that later documents do not find it
            return answer
        presumed = twin or self._neighbours.presumed(seen, found[0], keys) if thins else 0
        if former is not None and not twin and not self._families.has_joined(presumed):
            presumed = 0  # whose representative may be in flight and updated before a copy joins it
        entered = replace(keys, bands=(), anchors=()) if twin else keys
        self._enter(number, entered, self._neighbours.left_out(presumed, found[0]))
        self._buckets.take_out(keys, seen.gone)
        if presumed:
            self._families.presume(number, presumed)
        return replace(answer, presumed=presumed)

    def _seen(self, keys: Keys, before: int, twin: int) -> Seen:
        """Return the entries of the buckets, or of the lineage alone if there is a twin, whose family has the rest."""
        if not twin:
            return self._buckets.gather(keys, before)
        seen = self._buckets.gather(Keys(b"", keys.lineage, (), ()), before)
        by_lineage = twin in seen.shared
        seen.shared[twin] = Shared(len(keys.bands), len(keys.anchors), by_digest=True, by_lineage=by_lineage)
        return seen

    def _refresh(self, current: int, keys: Keys) -> int:
        """Give an unchanged document that is aging a new number.

        The new state has no position, so no redelivered record leads to it.
        """
        self._states.last = number = self._states.last + 1
        self._states.by_number[number] = replace(self._states.by_number[current], position=None, prev=current)
        self._families.renumber(current, number)
        self._enter(number, keys)
        return number

    def _enter(self, number: int, keys: Keys, leaves: Callable[[tuple[int, ...]], bool] = lambda _: False) -> None:
        """Make a state the current one of its document."""
        state = self._states.by_number[number]
        self._buckets.enter(keys, number, self._age, leaves)
        self._states.registry[state.document_key] = number
        if state.prev in self._states.by_number:
            self._states.by_number[state.prev].dead = number
            self._families.leave(state.prev)

    def _enter_late(self, number: int, keys: Keys) -> tuple[Candidate, ...]:
        """Enter the buckets that were left out, and return their documents that have not seen this one."""
        if number not in self._states.by_number:
            return ()
        seen = self._buckets.enter_late(keys, number)
        self._families.deny(number)
        own_key = self._states.by_number[number].document_key
        found, _ = self._neighbours.shortlist(seen, self._states.last + 1, own_key, keys, self._limits.candidates)
        return self._neighbours.pick(seen, found, keys, self._limits.candidates)[0]

    def _answer(
        self, status: Status, number: int, previous: int, keys: Keys, seen: Seen, found: list[int], cut: bool
    ) -> Admitted:
        candidates, left_out = self._neighbours.pick(seen, found, keys, self._limits.candidates)
        before = None
        if previous:
            before = self._neighbours.candidate(previous, replace(seen.shared.get(previous, Shared()), by_lineage=True))
        cut, may_change = cut or left_out, cut or left_out or seen.may_change
        return Admitted(status, number, before, candidates, seen.full_buckets, cut, may_change)

    def _found(self, pair: Pair) -> Pair:
        """Return a pair of a decision with its candidate, if that is still stored."""
        if pair.candidate is None or pair.number not in self._states.by_number:
            return replace(pair, candidate=None)
        return replace(pair, candidate=replace(pair.candidate, represents=False))  # which is not stored

    def _settle(self, settlement: Settlement) -> Settled:
        answer = self._settling.settle(settlement, lambda number: self._neighbours.candidate(number, Shared()))
        for pair, is_sent in zip(settlement.pairs, answer.sent, strict=False):
            if is_sent:
                self._states.spare(min(settlement.number, pair.number))
        return answer

    def _forget(self, number: int) -> None:
        self._buckets.forget(number)
        self._families.forget(number)

    def _age(self, number: int) -> tuple[int, str, int]:
        """Return the sort key by which a full lineage bucket drops entries.

        Removed states go first, then the state with the earliest observation.
        """
        state = self._states.by_number.get(number)
        return (-1 << 63, "", number) if state is None else (state.signature.observed_at_ms, state.signature.id, number)

    def _remove(self, admission: Admission) -> Admitted:
        states = self._states.by_number
        position, own = admission.position, _partition_and_offset(admission.position)
        if position is not None and own is not None and position.offset <= self._checkpoint(position):
            return self._removals.answer(own)
        if self._removals.later(admission, self._states.now_ms):
            return Admitted(Status.REMOVED, repeated=True)
        self._removals.remember(admission, self._states.now_ms)
        number = self._states.registry.pop(admission.document_key, 0)
        answer = Admitted(Status.REMOVED, found=number > 0)
        if number:
            states[number].dead = number
            self._families.leave(number)
        while number in states:
            number = states.pop(number).prev
        if own is not None:
            self._removals.keep_answer(own, answer, self._states.now_ms)
        return answer


def _partition_and_offset(position: Position | None) -> tuple[int, int] | None:
    return None if position is None else (position.partition, position.offset)
