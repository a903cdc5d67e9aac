"""The buckets of a slot in memory: which states have a key."""

from collections.abc import Iterator
from struct import Struct

from nearstream.streams.store.limits import ANCHOR_HEADS, BAND_CAP, HEADS, LINEAGE_CAP
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, KEY_BYTES, LINEAGE, Entry
from nearstream.streams.store.registration import NUMBER_BYTES

BUCKET = Struct(">HH")  # index of a key in its entry, count of the numbers that follow


class Buckets:
    """The oldest and the newest numbers of each key, as they came."""

    def __init__(self, anchor_cap: int) -> None:
        """Create empty buckets. Those of anchors hold `anchor_cap` numbers."""
        self._shapes = {  # heads and cap by kind
            DIGEST: (HEADS, BAND_CAP),
            LINEAGE: (0, LINEAGE_CAP),
            BAND: (HEADS, BAND_CAP),
            ANCHOR: (min(ANCHOR_HEADS, anchor_cap - 1), anchor_cap),
        }
        self._numbers: dict[bytes, list[int]] = {}
        self._keys: dict[int, set[bytes]] = {}  # the buckets that a number is in

    def numbers(self, key: bytes) -> list[int]:
        """Return the numbers of a bucket."""
        return self._numbers.get(key, [])

    def enter(self, entry: Entry) -> bytes:
        """Add a number to the buckets of its keys, unless they hold its hint, and return what they held before.

        A full bucket drops the first number after its heads.
        """
        answer = self.peek(entry)
        for key in _keys(entry):
            held = self.numbers(key)
            if entry.number in held or (entry.hint and entry.hint in held):
                continue
            heads, cap = self._shapes[key[:1]]
            if len(held) >= cap:
                self._take_out(key, held[heads])
            self._numbers.setdefault(key, []).append(entry.number)
            self._keys.setdefault(entry.number, set()).add(key)
        return answer

    def peek(self, entry: Entry) -> bytes:
        """Return what the buckets of keys hold: for each that is not empty `BUCKET`, then its numbers."""
        found = []
        for index, key in enumerate(_keys(entry)):
            held = self.numbers(key)
            if held:
                found.append(BUCKET.pack(index, len(held)) + b"".join(n.to_bytes(NUMBER_BYTES, "big") for n in held))
        return b"".join(found)

    def withdraw(self, entry: Entry) -> None:
        """Take a number out of the buckets of its keys."""
        for key in _keys(entry):
            self._take_out(key, entry.number)

    def forget(self, number: int) -> None:
        """Take a number out of all buckets."""
        for key in tuple(self._keys.pop(number, ())):
            self._take_out(key, number)

    def _take_out(self, key: bytes, number: int) -> None:
        held = self.numbers(key)
        if number in held:
            held.remove(number)
            self._keys.get(number, set()).discard(key)
            if not held:
                del self._numbers[key]


def _keys(entry: Entry) -> Iterator[bytes]:
    for at in range(0, len(entry.keys), KEY_BYTES):
        yield entry.keys[at : at + KEY_BYTES]
