"""A store in this process."""

from collections.abc import Callable, Sequence
from typing import Any

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Shape, Store

_LIMITS = IndexLimits()


class Local:
    """Carries calls to slots in this process."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Take the slots."""
        self._parts = parts

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls."""
        return [self._parts[call.slot].call(call.name, call.items) for call in calls]


def local_store(limits: IndexLimits = _LIMITS, clock: Callable[[], int] | None = None) -> Store:
    """Return a new store of one slot.

    Args:
        limits: Bounds of the index.
        clock: Returns milliseconds since 1970. None: the time is the largest `observed_ms` registered so far.
    """
    return Store(Local([Part(limits, clock)]), Shape(), limits)
