"""The buckets of a slot in memory: which states have a key."""

from collections.abc import Sequence
from struct import Struct, unpack

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
        self._numbers: dict[bytes, list[bytes]] = {}  # packed, as `peek` returns them
        self._keys: dict[int, set[bytes]] = {}  # the buckets that a number is in

    def numbers(self, key: bytes) -> list[int]:
        """Return the numbers of a bucket."""
        return [int.from_bytes(each, "big") for each in self._numbers.get(key, [])]

    def enter(self, entry: Entry) -> bytes:
        """Add a number to the buckets of its keys, unless they hold its hint, and return what they held before.

        A full bucket drops the first number after its heads.
        """
        answer, own, hint = self.peek(entry), _packed(entry.number), _packed(entry.hint)
        buckets = self._keys.setdefault(entry.number, set())
        for key in split(entry.keys):
            held = self._numbers.setdefault(key, [])
            if own in held or hint in held:
                continue
            heads, cap = self._shapes[key[:1]]
            if len(held) >= cap:
                self._take_out(key, int.from_bytes(held[heads], "big"))
            held.append(own)
            buckets.add(key)
        return answer

    def peek(self, entry: Entry) -> bytes:
        """Return what the buckets of keys hold: for each that is not empty `BUCKET`, then its numbers."""
        found: list[bytes] = []
        for index, key in enumerate(split(entry.keys)):
            held = self._numbers.get(key)
            if held:
                found += (BUCKET.pack(index, len(held)), *held)
        return b"".join(found)

    def withdraw(self, entry: Entry) -> None:
        """Take a number out of the buckets of its keys."""
        for key in split(entry.keys):
            self._take_out(key, entry.number)

    def forget(self, number: int) -> None:
        """Take a number out of all buckets."""
        for key in tuple(self._keys.pop(number, ())):
            self._take_out(key, number)

    def _take_out(self, key: bytes, number: int) -> None:
        held, packed = self._numbers.get(key, []), _packed(number)
        if packed in held:
            held.remove(packed)
            self._keys.get(number, set()).discard(key)
            if not held:
                del self._numbers[key]


def split(keys: bytes) -> Sequence[bytes]:
    """Return keys one by one."""
    return unpack(f"{KEY_BYTES}s" * (len(keys) // KEY_BYTES), keys)


def _packed(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big")
