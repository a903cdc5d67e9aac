"""Walk through the keys of an index, those of all slots at once."""

import heapq
from collections.abc import AsyncIterator, Callable, Mapping
from zlib import crc32

from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.client import keys_of
from nearstream.workers.redis.server.layout import KeyKind, StoreLayout

# Keys of one kind in a sample of all slots. With those of the registry, some two million documents are counted exactly.
_MOST, _MOST_OF_OTHERS = {KeyKind.REGISTRY: 50_000}, 1_000
_LEAST = 25  # keys of one kind in a sample of one slot
_STEP = 1_000  # keys after which progress is told
_KINDS = {bytes(kind): kind for kind in KeyKind}


class KeySample:
    """Some keys of one kind in one slot, the same in each call as long as the index is the same."""

    def __init__(self, most: int) -> None:
        """Take at most so many keys."""
        self.count = 0  # how many keys there are
        self._most = most
        self._ranked: list[tuple[int, bytes]] = []
        self._known = set[bytes]()

    @property
    def keys(self) -> list[bytes]:
        """The keys that were chosen. The first of them are a smaller sample."""
        return [key for _, key in sorted(self._ranked, reverse=True)]

    def add(self, key: bytes) -> None:
        """Count a key, and choose it if its hash is one of the smallest."""
        ranked = (-crc32(key), key)
        if len(self._ranked) == self._most and ranked < self._ranked[0]:
            self.count += 1
        elif key not in self._known:  # a server may name a key twice
            self.count += 1
            self._known.add(key)
            heapq.heappush(self._ranked, ranked)
            if len(self._ranked) > self._most:
                _, dropped = heapq.heappop(self._ranked)
                self._known.remove(dropped)

    def of_all(self, total: float) -> int:
        """Return a sum over all keys, estimated from that over the chosen ones."""
        return round(total * self.count / max(len(self._ranked), 1))


KeySamples = Mapping[tuple[int, KeyKind], KeySample]


async def stored_keys(index: RedisIndex, kind: KeyKind | None = None) -> AsyncIterator[tuple[int, KeyKind, bytes]]:
    """Yield slot, kind and name of each key of an index, or of one kind.

    A key may be yielded twice. This walks through all keys of the servers, so it takes a while where there are many.
    """
    async for key in keys_of(index.client, index.layout.prefix + b"*}" + (kind or b"")):
        place = _place(index.layout, key)
        if place is not None and kind in (None, place[1]):
            yield *place, key


def _place(layout: StoreLayout, key: bytes) -> tuple[int, KeyKind] | None:
    """Return the slot and kind of a key, or None if another index owns the key."""
    place, _, rest = key.removeprefix(layout.prefix).partition(b"}")
    slot, kind = place.partition(b".")[0], _KINDS.get(rest[:1])
    if kind is None or not slot.isdigit() or int(slot) >= layout.shape.slots:
        return None
    return int(slot), kind


async def sample_keys(index: RedisIndex, step: Callable[[int], None] = lambda count: None) -> KeySamples:
    """Return a sample of the keys of each kind in each slot. `step` is told how many keys were passed since then."""
    slots = range(index.layout.shape.slots)
    samples = {
        (slot, kind): KeySample(max(_MOST.get(kind, _MOST_OF_OTHERS) // len(slots), _LEAST))
        for slot in slots
        for kind in KeyKind
    }
    passed = 0
    async for slot, kind, key in stored_keys(index):
        samples[slot, kind].add(key)
        passed += 1
        if passed == _STEP:
            step(passed)
            passed = 0
    step(passed)
    return samples
