"""Stored states of documents in dictionaries, until they expire.

The words of this file are those of the Redis index. States are numbered in order of admission. The floor is the low
watermark: numbers below it have expired. A mark remembers which number came first at some time, so that the floor can
advance in steps. A spared number is one that stays below the floor because an event named it or a copy joined it.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from nearstream.schemas.signature import Signature
from nearstream.streams.index.contract import KEPT_CAP, MARKS, WALK


@dataclass(slots=True)
class State:
    """One stored state of a document.

    Attributes:
        document_key: `<collection>/<id>`.
        position: Partition and offset of the record that made it, if any.
        signature: As a record keeps it.
        bands: Number of its band keys.
        anchors: Number of its anchor keys.
        prev: Number of the former state, or 0.
        dead: The number that superseded it. 0 if it is alive, its own number if it came late.
    """

    document_key: str
    position: tuple[int, int] | None
    signature: Signature
    bands: int
    anchors: int
    prev: int
    dead: int = 0


class States:
    """All states by number, with the current state of each document.

    Attributes:
        last: The number given last.
        floor: Numbers below it have expired, unless they were spared.
        now_ms: The latest time so far.
        registry: The number of the current state by document key.
        by_number: All states.
    """

    def __init__(self, retention_ms: int, forget: Callable[[int], None]) -> None:
        """Create an empty store that calls `forget` with each number that expires."""
        self.last, self.floor = 0, 1
        self.now_ms = 0
        self.registry: dict[str, int] = {}
        self.by_number: dict[int, State] = {}
        self._retention_ms = retention_ms
        self._forget = forget
        self._marks: list[tuple[int, int]] = []  # a time, and the first number given from then on
        self._spared: OrderedDict[int, int] = OrderedDict()  # number to time of its last report, the oldest first

    def advance(self, now_ms: int) -> None:
        """Set the time and expire numbers older than the retention.

        If a step has passed since the last mark, the next number gets a mark.
        """
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
        """Return the number of the document's current state, or 0."""
        return self.registry.get(document_key, 0)

    def chain(self, number: int, most: int = WALK) -> Iterator[int]:
        """Yield the number of a state and of those before it.

        At most `most` numbers are returned.
        """
        for _ in range(most):
            if number not in self.by_number:
                return
            yield number
            number = self.by_number[number].prev

    def previous(self, current: int, own: int) -> int:
        """Return the state that was current when `own` arrived.

        A state that came late never was current.
        """
        earlier = (number for number in self.chain(current, 2 * WALK) if number < own)
        return next((number for number in earlier if self.by_number[number].dead != number), 0)

    def are_twins(self, one: int, other: int) -> bool:
        """Return whether two states are stored and have equal texts."""
        states = [self.by_number.get(number) for number in (one, other)]
        digests = [state.signature.digest for state in states if state is not None]
        return len(digests) == 2 and digests[0] == digests[1]

    def share_text(self, number: int, twin: int) -> None:
        """Keep the bytes of two equal texts once."""
        state, other = self.by_number[number], self.by_number[twin].signature
        shared = replace(state.signature, sketch=other.sketch, ld=other.ld, gaps=other.gaps)
        if shared == state.signature:
            state.signature = shared

    def same_version(self, signature: Signature, current: int, own: tuple[int, int]) -> int:
        """Return the newest state with the version of a record that may have been there when this came, or 0.

        A record that stored no state, although one of its version is stored, was unchanged then.
        """
        chain = (number for number in self.chain(current) if self.is_before(number, own))
        return next((number for number in chain if self.by_number[number].signature.version == signature.version), 0)

    def is_before(self, number: int, own: tuple[int, int]) -> bool:
        """Return whether a state may have been there when the record at a position came."""
        position = self.by_number[number].position
        return position is None or position[0] != own[0] or position < own

    def signed_before(self, signature: Signature, current: int) -> int:
        """Return the state of the same record on `documents`, or 0.

        A signer that was stopped before its commit signs a record again. A state that was observed after the current
        one is new.
        """
        origin = signature.origin
        if not current or origin is None:
            return 0
        if signature.observed_at_ms > self.by_number[current].signature.observed_at_ms:
            return 0
        found = 0
        for number in self.chain(current):
            state = self.by_number[number].signature
            if state.version == signature.version and state.origin is not None:
                same = state.origin.partition == origin.partition and state.origin.offset == origin.offset
                found = number if same else found
        return found

    def repeated(self, signature: Signature, current: int) -> int:
        """Return the state that a record repeats, or 0.

        It is the last one that was not observed after it, if both have one version. A record that was unchanged stores
        no state, so another text may be current when it is signed again.
        """
        if not current or signature.observed_at_ms > self.by_number[current].signature.observed_at_ms:
            return 0
        for number in self.chain(current):
            state = self.by_number[number].signature
            if state.order <= signature.order:
                return number if state.version == signature.version else 0
        return 0

    def link(self, number: int, current: int) -> None:
        """Insert a state that came late into its document's chain.

        It goes behind the last state that was observed after it.
        """
        state, behind = self.by_number[number], current
        for at in list(self.chain(current, WALK + 1))[1:]:
            if state.signature.order >= self.by_number[at].signature.order:
                break
            behind = at
        state.prev, self.by_number[behind].prev, state.dead = self.by_number[behind].prev, number, number

    def is_aging(self, number: int, now_ms: int | None = None) -> bool:
        """Return whether a number has passed half of its retention."""
        now_ms = self.now_ms if now_ms is None else now_ms
        return self._retention_ms > 0 and number < self._first_within(self._retention_ms // 2, now_ms)

    def spare(self, number: int) -> None:
        """Keep a current, aging state for another retention.

        The retention begins at the last mark. Other states are not affected.
        """
        if self._marks and not self.by_number[number].dead and self.is_aging(number, self._marks[-1][0]):
            self.spare_now(number)

    def spare_now(self, number: int) -> None:
        """Keep a state for another retention, which begins at the last mark.

        A number given since then lives as long without this.
        """
        if not self._marks or number >= self._marks[-1][1] or self._spared.get(number) == self._marks[-1][0]:
            return
        self._spared.pop(number, None)
        self._spared[number] = self._marks[-1][0]
        if len(self._spared) > KEPT_CAP:
            self._drop(next(iter(self._spared)))

    def hidden(self, now_ms: int) -> Callable[[int], bool]:
        """Return a function that says whether a number expires by then."""
        if not self._retention_ms:
            return lambda _: False
        floor = max(self.floor, self._first_within(self._retention_ms, now_ms))
        since = now_ms - self._retention_ms
        return lambda number: number < floor and self._spared.get(number, -1) <= since

    @property
    def _step_ms(self) -> int:
        return self._retention_ms // MARKS

    def _first_within(self, age_ms: int, now_ms: int) -> int:
        """Return the first number that was given within `age_ms` before a time.

        The exact time of a number is unknown, but it was given within one step of the mark before it.
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
        state = self.by_number.pop(number, None)
        if state is not None and self.registry.get(state.document_key) == number:
            del self.registry[state.document_key]
        self._forget(number)
