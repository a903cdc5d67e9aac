"""The index contract in dictionaries, for embedded use."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from schemas.signature import Signature
from streams.index import (
    MARKS,
    READS,
    REPORTS_CAP,
    WALK,
    Admission,
    Admitted,
    Candidate,
    IndexBehindError,
    IndexLimits,
    IndexState,
    Position,
    Report,
    Status,
)
from streams.memory_buckets import Buckets, Seen, Shared
from streams.scheme import Keys

_DEFAULTS = IndexLimits()
_STALE = Admitted(Status.STALE)
_REMOVAL_MS = 604_800_000  # answers to removals are kept for a week of redeliveries


@dataclass(slots=True)
class _State:
    """One stored state of a document.

    `dead` is the number from which on it is superseded (0: alive; its own: it came late); `answer` is
    kept when the buckets may not tell it again.
    """

    document_key: str
    place: tuple[int, int] | None
    signature: Signature
    anchor_count: int
    prev: int
    dead: int = 0
    reports: list[str] = field(default_factory=list)
    answer: Admitted | None = None

    @property
    def order(self) -> tuple[int, bytes]:
        return self.signature.observed_at_ms, self.signature.digest[:8]


class MemoryIndex:
    """An index in this process; the oracle that every other form is compared with.

    Time is the clock's; without one the largest `observed_at_ms` admitted so far.
    """

    def __init__(self, limits: IndexLimits = _DEFAULTS, clock: Callable[[], int] | None = None) -> None:
        """Makes an empty index; `clock` gives milliseconds since 1970."""
        self._limits = limits
        self._clock = clock
        self._buckets = Buckets(limits.bucket_cap)
        self._registry: dict[str, int] = {}
        self._states: dict[int, _State] = {}
        self._removals: OrderedDict[tuple[int, int], tuple[int, Admitted]] = OrderedDict()  # when, answer
        self._checkpoints: dict[int, int] = {}
        self._marks: deque[tuple[int, int]] = deque()
        self._now_ms = 0
        self._last, self._floor = 0, 1

    async def admit(self, batch: Sequence[Admission], now_ms: int | None = None) -> Sequence[Admitted]:
        """Adds each document and answers its earlier neighbours, as of `now_ms`.

        Raises:
            IndexBehindError: Records before this batch were never admitted.
        """
        return [self._admit(admission, now_ms) for admission in batch]

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """Notes events before they leave; False: a document was removed or expired meanwhile."""
        return [self._report(pair) for pair in pairs]

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys."""
        own = self._last + 1
        picked, _ = self._pick(self._buckets.gather(keys, own), own, "", limit)
        return picked[:limit]

    async def state(self) -> IndexState:
        """Always ready."""
        return IndexState.READY

    def _admit(self, admission: Admission, now_ms: int | None) -> Admitted:
        position, signature = admission.position, admission.signature
        if position is not None and self._checkpoint(position) < position.previous:
            raise IndexBehindError(position.partition, self._checkpoint(position))
        if now_ms is None:
            now_ms = self._clock() if self._clock else signature.observed_at_ms if signature else 0
        self._advance(now_ms)
        answer = self._remove(admission) if signature is None else self._put(admission, signature)
        if position is not None:
            self._checkpoints[position.partition] = max(self._checkpoint(position), position.offset)
        return answer

    def _checkpoint(self, position: Position) -> int:
        return self._checkpoints.get(position.partition, -1)

    def _advance(self, now_ms: int) -> None:
        """Marks which numbers come from now on, then forgets those older than the retention."""
        self._now_ms = now_ms = max(self._now_ms, now_ms)
        retention_ms = self._limits.retention_seconds * 1000
        if not retention_ms:
            return
        step_ms = retention_ms // MARKS
        if not self._marks or now_ms - self._marks[-1][0] >= step_ms:
            self._marks.append((now_ms, self._last + 1))
        # What was given between two marks was given within a step after the first.
        while self._marks[0][0] + step_ms <= now_ms - retention_ms:
            self._marks.popleft()
            for number in range(self._floor, self._marks[0][1]):
                self._expire(number)
            self._floor = self._marks[0][1]

    def _expire(self, number: int) -> None:
        self._buckets.forget(number)
        state = self._states.pop(number, None)
        if state is not None and self._registry.get(state.document_key) == number:
            del self._registry[state.document_key]

    def _put(self, admission: Admission, signature: Signature) -> Admitted:
        current = self._registry.get(admission.document_key, 0)
        position = admission.position
        if position is not None and position.offset <= self._checkpoint(position):
            chain = self._chain(current)
            for depth, number in enumerate(chain):
                if self._states[number].place == _place(position):
                    return self._replay(chain[: depth + 1], admission.keys)
            return _STALE
        if current and self._states[current].order[1] == signature.digest[:8]:
            shared = Shared(len(admission.keys.bands), len(admission.keys.anchors), by_digest=True, by_lineage=True)
            return Admitted(Status.UNCHANGED, current, self._candidate(current, shared))
        return self._store(admission, signature, current)

    def _chain(self, number: int) -> list[int]:
        """Up to `WALK` states of a document, the current one first."""
        chain: list[int] = []
        while number in self._states and len(chain) < WALK:
            chain.append(number)
            number = self._states[number].prev
        return chain

    def _replay(self, chain: list[int], keys: Keys) -> Admitted:
        """The answer of then to the last state of `chain`, without what was removed or has expired."""
        number = chain[-1]
        state = self._states[number]
        if state.answer is not None:
            kept = tuple(one for one in state.answer.candidates if one.number in self._states)
            before = state.answer.previous
            before = before if before is not None and before.number in self._states else None
            return replace(state.answer, status=Status.REPLAYED, previous=before, candidates=kept)
        # A late state answered the state that it stands behind, any other the next one that was not late.
        others = chain[-2::-1] if state.dead == number else self._chain(state.prev)
        previous = next((one for one in others if self._states[one].dead != one), 0)
        return self._answer(Status.REPLAYED, number, previous, self._buckets.gather(keys, number))

    def _store(self, admission: Admission, signature: Signature, current: int) -> Admitted:
        self._last = number = self._last + 1
        place = _place(admission.position)
        state = _State(admission.document_key, place, signature, len(admission.keys.anchors), current)
        self._states[number] = state
        former = self._states.get(current)
        seen = self._buckets.gather(admission.keys, number)
        answer = self._answer(Status.NEW if former is None else Status.UPDATED, number, current, seen)
        if seen.beyond_heads and place is not None:
            state.answer = answer
        if former is not None and state.order < former.order:
            # It came late: it stands behind the current state, and nobody after it meets it.
            state.prev, former.prev, state.dead = former.prev, number, number
            return answer
        self._buckets.enter(admission.keys, number, self._age)
        self._registry[admission.document_key] = number
        if former is not None:
            former.dead = number
        return answer

    def _answer(self, status: Status, number: int, previous: int, seen: Seen) -> Admitted:
        candidates, cut = self._pick(seen, number, self._states[number].document_key, self._limits.candidates)
        before = None
        if previous:
            before = self._candidate(previous, replace(seen.shared.get(previous, Shared()), by_lineage=True))
        return Admitted(status, number, before, candidates, seen.full_buckets, cut)

    def _pick(self, seen: Seen, own: int, own_key: str, limit: int) -> tuple[tuple[Candidate, ...], bool]:
        """The best living candidates; whether the limit, or the bound of reading, left some out."""
        picked: list[Candidate] = []
        room = limit
        for reads, number in enumerate(seen.ranked()):
            if reads == READS:
                return tuple(picked), True
            state, shared = self._states.get(number), seen.shared[number]
            if state is None or state.document_key == own_key or 0 < state.dead <= own:
                continue
            room -= not shared.named
            if room < 0:
                return tuple(picked), True
            picked.append(self._candidate(number, shared))
        return tuple(picked), False

    def _candidate(self, number: int, shared: Shared) -> Candidate:
        state = self._states[number]
        found_by = (shared.by_digest, shared.by_lineage, shared.in_full_bucket)
        return Candidate(number, state.signature, shared.bands, shared.anchors, state.anchor_count, *found_by)

    def _age(self, number: int) -> tuple[int, int]:
        """What a full lineage bucket drops first: removed states, then the longest not observed."""
        state = self._states.get(number)
        return -1 << 63 if state is None else state.signature.observed_at_ms, number

    def _remove(self, admission: Admission) -> Admitted:
        position, place = admission.position, _place(admission.position)
        if position is not None and place is not None and position.offset <= self._checkpoint(position):
            return self._removals.get(place, (0, _STALE))[1]
        number = self._registry.pop(admission.document_key, 0)
        found, complete = number > 0, True
        ids: dict[str, None] = {}
        while number in self._states:
            state = self._states.pop(number)
            ids.update(dict.fromkeys(state.reports))
            complete &= len(state.reports) < REPORTS_CAP
            number = state.prev
        answer = Admitted(Status.REMOVED, retracted=tuple(ids), complete=complete and not number, found=found)
        if place is not None:
            self._removals[place] = self._now_ms, answer
            while next(iter(self._removals.values()))[0] < self._now_ms - _REMOVAL_MS:
                self._removals.popitem(last=False)
        return answer

    def _report(self, pair: Report) -> bool:
        newer, older = self._states.get(pair.newer), self._states.get(pair.older)
        if newer is None or older is None:
            return False
        for state in (newer, older):
            if pair.event_id not in state.reports and len(state.reports) < REPORTS_CAP:
                state.reports.append(pair.event_id)
        return True


def _place(position: Position | None) -> tuple[int, int] | None:
    return None if position is None else (position.partition, position.offset)
