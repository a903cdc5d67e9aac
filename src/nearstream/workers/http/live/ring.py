"""The newest events in memory, which each reader goes through at its pace."""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

EVENTS = 10_000
EVENT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """An event in the ring.

    Attributes:
        number: Its place in the order of arrival, from 1 on.
        event_id: Its id.
        collection: The tenant of its documents.
        data: The event as JSON, without line breaks.
    """

    number: int
    event_id: str
    collection: str
    data: bytes


class Ring:
    """Holds the newest events, at most `EVENTS` of them and `EVENT_BYTES` together.

    A reader has no queue. It remembers the number of its last event and asks for those after it, so a reader that never
    reads costs nothing and loses only what has left the ring.
    """

    def __init__(self, events: int = EVENTS, event_bytes: int = EVENT_BYTES) -> None:
        """Create an empty ring."""
        self._limits = events, event_bytes
        self._entries: deque[Entry] = deque()
        self._numbers: dict[str, int] = {}
        self._bytes = 0
        self._last = 0
        self._arrived = asyncio.Event()
        self.is_closed = False

    @property
    def last(self) -> int:
        """Return the number of the newest event, 0 if there was none."""
        return self._last

    def append(self, event_id: str, collection: str, data: bytes) -> None:
        """Add an event, and drop the oldest ones above the limits."""
        self._last += 1
        self._entries.append(Entry(self._last, event_id, collection, data))
        self._numbers[event_id] = self._last
        self._bytes += len(data)
        events, event_bytes = self._limits
        while len(self._entries) > events or (self._bytes > event_bytes and len(self._entries) > 1):
            oldest = self._entries.popleft()
            self._bytes -= len(oldest.data)
            if self._numbers.get(oldest.event_id) == oldest.number:
                del self._numbers[oldest.event_id]
        self._wake()

    def holds(self, event_id: str) -> bool:
        """Return whether an event is in the ring."""
        return event_id in self._numbers

    def number_of(self, event_id: str) -> int | None:
        """Return the number of an event, None if it is not in the ring."""
        return self._numbers.get(event_id)

    def after(self, number: int, limit: int) -> tuple[int, list[Entry]]:
        """Return how many events were missed after a number, and the next ones.

        Args:
            number: Number of the last event that was read, 0 for none.
            limit: Most events to return.
        """
        first = self._last - len(self._entries) + 1
        missed = max(first - 1 - number, 0)
        start = max(number + 1 - first, 0)
        return missed, list(islice(self._entries, start, start + limit))

    def newest(self) -> Iterator[Entry]:
        """Yield all events, the newest first."""
        return reversed(self._entries)

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for an event after a number, and return whether there is one within this time."""
        if self._last > number or self.is_closed:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Let readers end."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()
