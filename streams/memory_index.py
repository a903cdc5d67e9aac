"""The index contract in dictionaries, for embedded use."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from schemas.signature import Signature
from streams.index import (
    BEST,
    ENOUGH,
    READS,
    REPORTS_CAP,
    Admission,
    Admitted,
    Candidate,
    IndexBehindError,
    IndexLimits,
    IndexState,
    Position,
    Report,
    Status,
    in_order,
)
from streams.memory_buckets import Buckets, Seen, Shared
from streams.memory_states import State, States
from streams.scheme import Keys

_DEFAULTS = IndexLimits()
_STALE = Admitted(Status.STALE)
_REMOVAL_MS = 604_800_000  # answers to removals are kept for a week of redeliveries


class MemoryIndex:
    """An index in this process; the oracle that every other form is compared with.

    Time is the clock's; without one the largest `observed_at_ms` admitted so far.
    """

    def __init__(self, limits: IndexLimits = _DEFAULTS, clock: Callable[[], int] | None = None) -> None:
        """Makes an empty index; `clock` gives milliseconds since 1970."""
        self._limits = limits
        self._clock = clock
        self._buckets = Buckets(limits.bucket_cap)
        self._states = States(limits.retention_seconds * 1000, self._buckets.forget)
        self._removals: OrderedDict[tuple[int, int], tuple[int, Admitted]] = OrderedDict()  # when, answer
        self._checkpoints: dict[int, int] = {}

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Adds each document and answers its earlier neighbours, as of `now_ms`.

        Raises:
            IndexBehindError: Records before this batch were never admitted.
        """
        return [self._admit(admission, now_ms) for admission in batch]

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """Notes events before they leave; False: a document was removed or expired meanwhile."""
        return [self._report(pair) for pair in pairs]

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys, none that has expired by `now_ms`."""
        now_ms = max(self._states.now_ms, self._time(None) if now_ms is None else now_ms)
        own = self._states.last + 1
        picked, _ = self._pick(self._buckets.gather(keys, own, self._states.hidden(now_ms)), own, keys, "", limit)
        return picked[:limit]

    def seen(self, keys: Keys) -> Seen:
        """What the buckets of these keys hold now, before any of it is left out."""
        return self._buckets.gather(keys, self._states.last + 1)

    async def state(self) -> IndexState:
        """Always ready."""
        return IndexState.READY

    def _time(self, signature: Signature | None) -> int:
        return self._clock() if self._clock else signature.observed_at_ms if signature else 0

    def _admit(self, admission: Admission, now_ms: int | None) -> Admitted:
        position, signature = admission.position, admission.signature
        if position is not None and self._checkpoint(position) < position.previous:
            raise IndexBehindError(position.partition, self._checkpoint(position))
        self._states.advance(self._time(signature) if now_ms is None else now_ms)
        answer = self._remove(admission) if signature is None else self._put(admission, signature)
        if position is not None:
            self._checkpoints[position.partition] = max(self._checkpoint(position), position.offset)
        return answer

    def _checkpoint(self, position: Position) -> int:
        return self._checkpoints.get(position.partition, -1)

    def _put(self, admission: Admission, signature: Signature) -> Admitted:
        states = self._states
        current = states.current(admission.document_key)
        position = admission.position
        if position is not None and position.offset <= self._checkpoint(position):
            places = (number for number in states.chain(current) if states.by_number[number].place == _place(position))
            number = next(places, 0)
            return self._replay(current, number, admission.keys) if number else _STALE
        if current and states.by_number[current].order[1] == signature.digest[:8]:
            if states.is_aging(current):
                current = self._refresh(current, admission.keys)
            shared = Shared(len(admission.keys.bands), len(admission.keys.anchors), by_digest=True, by_lineage=True)
            return Admitted(Status.UNCHANGED, current, self._candidate(current, shared))
        return self._store(admission, signature, current)

    def _replay(self, current: int, number: int, keys: Keys) -> Admitted:
        """The answer of then to a state, without what was removed or has expired."""
        states = self._states.by_number
        then = states[number].answer
        if then is not None:
            kept = tuple(one for one in then.candidates if one.number in states)
            before = then.previous if then.previous is not None and then.previous.number in states else None
            return replace(then, status=Status.REPLAYED, previous=before, candidates=kept)
        previous = self._states.previous(current, number)
        return self._answer(Status.REPLAYED, number, previous, keys, self._buckets.gather(keys, number))

    def _store(self, admission: Admission, signature: Signature, current: int) -> Admitted:
        keys, place = admission.keys, _place(admission.position)
        self._states.last = number = self._states.last + 1
        state = State(admission.document_key, place, signature, len(keys.bands), len(keys.anchors), current)
        self._states.by_number[number] = state
        former = self._states.by_number.get(current)
        seen = self._buckets.gather(keys, number)
        answer = self._answer(Status.NEW if former is None else Status.UPDATED, number, current, keys, seen)
        if seen.may_change and place is not None:
            state.answer = answer
        if former is not None and state.order < former.order:
            self._states.link(number, current)  # nobody after it meets it
            return answer
        self._enter(number, keys)
        self._buckets.take_out(keys, seen.gone)
        return answer

    def _refresh(self, current: int, keys: Keys) -> int:
        """The new number of a document that is seen again late in its life; no position leads to it."""
        self._states.last = number = self._states.last + 1
        former = self._states.by_number[current]
        self._states.by_number[number] = replace(
            former, place=None, prev=current, reports=[*former.reports], answer=None
        )
        self._enter(number, keys)
        return number

    def _enter(self, number: int, keys: Keys) -> None:
        """Makes a state the current one of its document."""
        state = self._states.by_number[number]
        self._buckets.enter(keys, number, self._age)
        self._states.registry[state.document_key] = number
        if state.prev in self._states.by_number:
            self._states.by_number[state.prev].dead = number

    def _answer(self, status: Status, number: int, previous: int, keys: Keys, seen: Seen) -> Admitted:
        own_key = self._states.by_number[number].document_key
        candidates, cut = self._pick(seen, number, keys, own_key, self._limits.candidates)
        before = None
        if previous:
            before = self._candidate(previous, replace(seen.shared.get(previous, Shared()), by_lineage=True))
        return Admitted(status, number, before, candidates, seen.full_buckets, cut)

    def _pick(self, seen: Seen, own: int, keys: Keys, own_key: str, limit: int) -> tuple[tuple[Candidate, ...], bool]:
        """The best living candidates; whether the limit, or the bound of reading, left some out."""
        found, cut = self._shortlist(seen, own, own_key, limit)
        fewer = {number: min(len(keys.anchors), self._states.by_number[number].anchors) for number in found}
        shares = {number: seen.shared[number].share(fewer[number]) for number in found}
        ranked = sorted(found, key=lambda number: (not seen.shared[number].named, -shares[number], number))
        named = sum(seen.shared[number].named for number in found)
        good = [number for rank, number in enumerate(ranked) if rank < named + BEST or shares[number] >= ENOUGH]
        best = good[: named + limit]
        seen.may_change |= len(best) < len(found)
        return in_order(self._candidate(number, seen.shared[number]) for number in best), cut or len(best) < len(good)

    def _shortlist(self, seen: Seen, own: int, own_key: str, limit: int) -> tuple[list[int], bool]:
        """Twice as many living neighbours as are wanted, by weight, and named ones besides; whether there are more."""
        found: list[int] = []
        room = 2 * limit
        for reads, number in enumerate(seen.ranked()):
            if reads == READS:
                return found, True
            state = self._states.by_number.get(number)
            if state is None:
                seen.gone.add(number)
            elif state.document_key != own_key and not 0 < state.dead <= own:
                room -= not seen.shared[number].named
                if room < 0:
                    return found, True
                found.append(number)
        return found, False

    def _candidate(self, number: int, shared: Shared) -> Candidate:
        state = self._states.by_number[number]
        found_by = (shared.by_digest, shared.by_lineage, shared.in_full_bucket)
        return Candidate(number, state.signature, shared.bands, shared.anchors, state.anchors, *found_by)

    def _age(self, number: int) -> tuple[int, str, int]:
        """What a full lineage bucket drops first: removed states, then the longest not observed."""
        state = self._states.by_number.get(number)
        return (-1 << 63, "", number) if state is None else (state.signature.observed_at_ms, state.signature.id, number)

    def _remove(self, admission: Admission) -> Admitted:
        states = self._states.by_number
        position, place = admission.position, _place(admission.position)
        if position is not None and place is not None and position.offset <= self._checkpoint(position):
            return self._removals.get(place, (0, _STALE))[1]
        number = self._states.registry.pop(admission.document_key, 0)
        found, complete = number > 0, True
        ids: dict[str, None] = {}
        while number in states:
            state = states.pop(number)
            ids.update(dict.fromkeys(state.reports))
            complete &= len(state.reports) < REPORTS_CAP
            number = state.prev
        answer = Admitted(Status.REMOVED, retracted=tuple(ids), complete=complete and not number, found=found)
        if place is not None:
            self._removals[place] = self._states.now_ms, answer
            while next(iter(self._removals.values()))[0] < self._states.now_ms - _REMOVAL_MS:
                self._removals.popitem(last=False)
        return answer

    def _report(self, pair: Report) -> bool:
        states = self._states.by_number
        newer, older = states.get(pair.newer), states.get(pair.older)
        if newer is None or older is None:
            return False
        for state in (newer, older):
            if pair.event_id not in state.reports and len(state.reports) < REPORTS_CAP:
                state.reports.append(pair.event_id)
        self._states.spare(min(pair.newer, pair.older))
        return True


def _place(position: Position | None) -> tuple[int, int] | None:
    return None if position is None else (position.partition, position.offset)
