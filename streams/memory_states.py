"""Stored states of documents in dictionaries, until they expire."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from schemas.signature import Signature
from streams.index import KEPT_CAP, MARKS, WALK, Admitted


@dataclass(slots=True)
class State:
    """One stored state of a document.

    `dead` is the number from which on it is superseded (0: alive; its own: it came late); `answer` is
    kept when the buckets may not tell it again.
    """

    document_key: str
    place: tuple[int, int] | None
    signature: Signature
    bands: int
    anchors: int
    prev: int
    dead: int = 0
    reports: list[str] = field(default_factory=list)
    answer: Admitted | None = None

    @property
    def order(self) -> tuple[int, bytes]:
        """Which of two states of a document is the newer one."""
        return self.signature.observed_at_ms, self.signature.digest[:8]


class States:
    """States by number, with the registry of the current one of each document.

    `last` is the number given last; what lies below `floor` has expired, unless a report spared it.
    """

    def __init__(self, retention_ms: int, forget: Callable[[int], None]) -> None:
        """Holds nothing yet; `forget` is told each number that expires."""
        self.last, self.floor = 0, 1
        self.now_ms = 0
        self.registry: dict[str, int] = {}
        self.by_number: dict[int, State] = {}
        self._retention_ms = retention_ms
        self._forget = forget
        self._marks: list[tuple[int, int]] = []
        self._spared: OrderedDict[int, int] = OrderedDict()  # by last report, which is the value

    def advance(self, now_ms: int) -> None:
        """Marks which numbers come from now on, then forgets those older than the retention."""
        self.now_ms = now_ms = max(self.now_ms, now_ms)
        if not self._retention_ms:
            return
        if not self._marks or now_ms - self._marks[-1][0] >= self._step_ms:
            self._marks.append((now_ms, self.last + 1))
            self._trim(now_ms - self._retention_ms)
        floor = self._first_within(self._retention_ms, now_ms)
        for number in range(self.floor, floor):
            if number not in self._spared:
                self._expire(number)
        while len(self._marks) > 1 and self._marks[0][0] + self._step_ms <= now_ms - self._retention_ms:
            del self._marks[0]
        self.floor = floor

    def current(self, document_key: str) -> int:
        """The number of the document's current state; 0: it has none."""
        return self.registry.get(document_key, 0)

    def chain(self, number: int, most: int = WALK) -> Iterator[int]:
        """This state and those before it, at most so many."""
        for _ in range(most):
            if number not in self.by_number:
                return
            yield number
            number = self.by_number[number].prev

    def previous(self, current: int, own: int) -> int:
        """The state that was current when `own` arrived: those that came late never were."""
        earlier = (number for number in self.chain(current, 2 * WALK) if number < own)
        return next((number for number in earlier if self.by_number[number].dead != number), 0)

    def link(self, number: int, current: int) -> None:
        """Puts a state that came late behind the last one in the chain that was observed after it."""
        state, behind = self.by_number[number], current
        for at in list(self.chain(current, WALK + 1))[1:]:
            if state.order >= self.by_number[at].order:
                break
            behind = at
        state.prev, self.by_number[behind].prev, state.dead = self.by_number[behind].prev, number, number

    def is_aging(self, number: int, now_ms: int | None = None) -> bool:
        """Whether more than half of the retention has passed since this number was given."""
        now_ms = self.now_ms if now_ms is None else now_ms
        return self._retention_ms > 0 and number < self._first_within(self._retention_ms // 2, now_ms)

    def spare(self, number: int) -> None:
        """Keeps the aging current state of a document for another retention from the last mark on."""
        if not self._marks or self.by_number[number].dead or not self.is_aging(number, self._marks[-1][0]):
            return
        self._spared.pop(number, None)
        self._spared[number] = self._marks[-1][0]
        if len(self._spared) > KEPT_CAP:
            self._drop(next(iter(self._spared)))

    def hidden(self, now_ms: int) -> Callable[[int], bool]:
        """Tells of a number whether it will have expired by then."""
        if not self._retention_ms:
            return lambda _: False
        floor = max(self.floor, self._first_within(self._retention_ms, now_ms))
        since = now_ms - self._retention_ms
        return lambda number: number < floor and self._spared.get(number, -1) <= since

    @property
    def _step_ms(self) -> int:
        return self._retention_ms // MARKS

    def _first_within(self, age_ms: int, now_ms: int) -> int:
        """The first number given within so many ms.

        What was given between two marks was given within a step after the first.
        """
        marks = self._marks
        after = bisect_right(marks, now_ms - age_ms - self._step_ms, key=lambda mark: mark[0])
        if not after:
            return self.floor
        return marks[after][1] if after < len(marks) else self.last + 1

    def _trim(self, since_ms: int) -> None:
        while self._spared and next(iter(self._spared.values())) <= since_ms:
            self._drop(next(iter(self._spared)))

    def _drop(self, number: int) -> None:
        del self._spared[number]
        if number < self.floor:
            self._expire(number)

    def _expire(self, number: int) -> None:
        self._forget(number)
        state = self.by_number.pop(number, None)
        if state is not None and self.registry.get(state.document_key) == number:
            del self.registry[state.document_key]
