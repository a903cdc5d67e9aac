"""The parts of a slot: tables, members of families, and ages."""

from collections import defaultdict
from heapq import heappop, heappush, nlargest, nsmallest
from typing import Any, Protocol, TypeVar

Key = TypeVar("Key", contravariant=True)
Value = TypeVar("Value")
EXPIRED_AT_ONCE = 256  # of each kind, so that no call takes long


class Table(Protocol[Key, Value]):
    """Values by key. A value may be changed where it is, once it was read here."""

    def get(self, key: Key, /) -> Value | None:
        """Return a value, or None without one."""

    def __getitem__(self, key: Key, /) -> Value:
        """Return a value that is there."""

    def __setitem__(self, key: Key, value: Value, /) -> None:
        """Store a value in place of the one before."""

    def __delitem__(self, key: Key, /) -> None:
        """Forget a value that is there."""

    def __contains__(self, key: Key, /) -> bool:
        """Return whether a key has a value."""


class Members(Protocol):
    """The members of a family. They may leave before they join."""

    def place(self, number: int) -> tuple[int, bool]:
        """Return the ordinal of a member, 0 if it has not joined, and whether it has left."""

    def put(self, number: int, ordinal: int, has_left: bool) -> None:
        """Store the place of a member."""

    def forget(self, number: int) -> None:
        """Forget a member."""

    def newest(self, most: int) -> list[int]:
        """Return the living members with the largest ordinals, the largest first."""

    def page(self, first: int, last: int, most: int) -> list[tuple[int, int]]:
        """Return living members and their ordinals from one ordinal to another, in order."""

    def count(self) -> int:
        """Return how many live."""

    def clear(self) -> None:
        """Forget all."""


class _MembersInMemory:
    """The members of a family in memory.

    Attributes:
        ordinals: By number of the member.
        left: The numbers of those that have left.
    """

    def __init__(self) -> None:
        self.ordinals: dict[int, int] = {}
        self.left: set[int] = set()

    @property
    def living(self) -> set[int]:
        return self.ordinals.keys() - self.left

    def place(self, number: int) -> tuple[int, bool]:
        return self.ordinals.get(number, 0), number in self.left

    def put(self, number: int, ordinal: int, has_left: bool) -> None:
        self.forget(number)
        if ordinal:
            self.ordinals[number] = ordinal
        if has_left:
            self.left.add(number)

    def forget(self, number: int) -> None:
        self.ordinals.pop(number, None)
        self.left.discard(number)

    def newest(self, most: int) -> list[int]:
        return nlargest(most, self.living, key=lambda each: (self.ordinals[each], each))

    def page(self, first: int, last: int, most: int) -> list[tuple[int, int]]:
        places = [(self.ordinals[each], each) for each in self.living if first <= self.ordinals[each] <= last]
        return [(number, ordinal) for ordinal, number in nsmallest(most, places)]

    def count(self) -> int:
        return len(self.living)

    def clear(self) -> None:
        self.ordinals.clear()
        self.left.clear()


class Ages(Protocol):
    """The times since when keys are there, by kind."""

    def add(self, kind: str, since_ms: int, key: Any) -> None:  # noqa: ANN401 - a number, or a hash
        """Note since when a key is there."""

    def take(self, kind: str, before_ms: int) -> list[Any]:
        """Take out the oldest keys of a kind, as far as they are older than a time."""


class _AgesInMemory:
    """Ages in a heap for each kind."""

    def __init__(self) -> None:
        self._heaps: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)

    def add(self, kind: str, since_ms: int, key: Any) -> None:  # noqa: ANN401 - a number, or a hash
        heappush(self._heaps[kind], (since_ms, key))

    def take(self, kind: str, before_ms: int) -> list[Any]:
        heap, taken = self._heaps[kind], list[Any]()
        while heap and heap[0][0] < before_ms and len(taken) < EXPIRED_AT_ONCE:
            taken.append(heappop(heap)[1])
        return taken


def members_in_memory(_founder: int) -> Members:
    """Return the members of a new family."""
    return _MembersInMemory()


def ages_in_memory() -> Ages:
    """Return ages of no key."""
    return _AgesInMemory()
