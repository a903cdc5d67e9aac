"""The buckets of a slot in memory: which states have a key."""

from collections.abc import Sequence
from struct import Struct, unpack
from typing import Protocol

from nearstream.streams.store.limits import ANCHOR_HEADS, BAND_CAP, HEADS, LINEAGE_CAP
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, KEY_BYTES, LINEAGE, Entry
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.streams.store.tables import Table

BUCKET = Struct(">HH")  # index of a key in its entry, count of the numbers that follow
_SINGLE_BYTES = KEY_BYTES + NUMBER_BYTES
_CHUNK_SINGLES = 16  # keys of a chunk on average


class Held(Protocol):
    """What buckets hold, by key: numbers, packed as `peek` returns them."""

    def get(self, key: bytes) -> bytes:
        """Return the numbers of a bucket."""

    def put(self, key: bytes, before: bytes, numbers: bytes) -> None:
        """Store the numbers of a bucket in place of those before."""


class Buckets:
    """The oldest and the newest numbers of each key, as they came."""

    def __init__(self, anchor_cap: int, held: Held, keys: Table[int, bytes]) -> None:
        """Take what they hold, and the keys of all entries of a number.

        A bucket of an anchor holds `anchor_cap` numbers.
        """
        self._shapes = {  # heads and cap by kind, in bytes
            kind: (heads * NUMBER_BYTES, cap * NUMBER_BYTES)
            for kind, heads, cap in (
                (DIGEST, HEADS, BAND_CAP),
                (LINEAGE, 0, LINEAGE_CAP),
                (BAND, HEADS, BAND_CAP),
                (ANCHOR, min(ANCHOR_HEADS, anchor_cap - 1), anchor_cap),
            )
        }
        self._held, self._keys = held, keys

    def numbers(self, key: bytes) -> list[int]:
        """Return the numbers of a bucket."""
        held = self._held.get(key)
        return [int.from_bytes(held[at : at + NUMBER_BYTES], "big") for at in range(0, len(held), NUMBER_BYTES)]

    def enter(self, entry: Entry) -> bytes:
        """Add a number to the buckets of its keys, unless they hold its hint, and return what they held before.

        A full bucket drops the first number after its heads.
        """
        own, hint, answer = _packed(entry.number), _packed(entry.hint), list[bytes]()
        known = self._keys.get(entry.number) or b""
        if entry.keys not in known:
            self._keys[entry.number] = known + entry.keys
        for index, key in enumerate(split(entry.keys)):
            held = self._held.get(key)
            if held:
                answer += (BUCKET.pack(index, len(held) // NUMBER_BYTES), held)
            if place_of(own, held) >= 0 or place_of(hint, held) >= 0:
                continue
            heads, cap = self._shapes[key[:1]]
            kept = held if len(held) < cap else held[:heads] + held[heads + NUMBER_BYTES :]
            self._held.put(key, held, kept + own)
        return b"".join(answer)

    def peek(self, entry: Entry) -> bytes:
        """Return what the buckets of keys hold: for each that is not empty `BUCKET`, then its numbers."""
        found: list[bytes] = []
        for index, key in enumerate(split(entry.keys)):
            held = self._held.get(key)
            if held:
                found += (BUCKET.pack(index, len(held) // NUMBER_BYTES), held)
        return b"".join(found)

    def withdraw(self, entry: Entry) -> None:
        """Take a number out of the buckets of its keys."""
        number = _packed(entry.number)
        for key in split(entry.keys):
            held = self._held.get(key)
            at = place_of(number, held)
            if at >= 0:
                self._held.put(key, held, held[:at] + held[at + NUMBER_BYTES :])

    def forget(self, number: int) -> None:
        """Take a number out of all buckets."""
        keys = self._keys.get(number)
        if keys is not None:
            self.withdraw(Entry(number, 0, keys))
            del self._keys[number]


class HeldInMemory:
    """What buckets hold, in memory.

    Most keys have one number for ever, so these are packed in chunks, where a key takes a fifth of what it takes in a
    dictionary.
    """

    def __init__(self) -> None:
        self._several: dict[bytes, bytes] = {}  # by key with at least two numbers
        self._chunks = [b""]  # each key with one number, and this number
        self._singles = 0

    def get(self, key: bytes) -> bytes:
        """Return the numbers of a bucket."""
        held = self._several.get(key)
        if held is None:
            chunk = self._chunks[self._chunk_of(key)]
            at = place_of(key, chunk, _SINGLE_BYTES)
            held = b"" if at < 0 else chunk[at + KEY_BYTES : at + _SINGLE_BYTES]
        return held

    def put(self, key: bytes, before: bytes, numbers: bytes) -> None:
        """Store the numbers of a bucket in place of those before."""
        if len(numbers) > NUMBER_BYTES:
            self._several[key] = numbers
        elif len(before) > NUMBER_BYTES:
            del self._several[key]
        at = self._chunk_of(key)
        chunk = self._chunks[at]
        if len(before) == NUMBER_BYTES:
            place = place_of(key, chunk, _SINGLE_BYTES)
            self._chunks[at] = chunk[:place] + chunk[place + _SINGLE_BYTES :]
            self._singles -= 1
        if len(numbers) == NUMBER_BYTES:
            self._chunks[at] += key + numbers
            self._singles += 1
            if self._singles > _CHUNK_SINGLES * len(self._chunks):
                self._split_chunk()

    def _chunk_of(self, key: bytes) -> int:
        """Return the chunk of a key: by as many bits as chunks have, or one less where that is not split yet."""
        bits = len(self._chunks).bit_length()
        at = int.from_bytes(key[-NUMBER_BYTES:], "big") & ((1 << bits) - 1)
        return at if at < len(self._chunks) else at & ((1 << bits - 1) - 1)

    def _split_chunk(self) -> None:
        """Split the next chunk in two (linear hashing), so that a store of any size has short ones."""
        count = len(self._chunks)
        at = count - (1 << count.bit_length() - 1)
        chunk, self._chunks[at] = self._chunks[at], b""
        self._chunks.append(b"")
        for start in range(0, len(chunk), _SINGLE_BYTES):
            single = chunk[start : start + _SINGLE_BYTES]
            self._chunks[self._chunk_of(single[:KEY_BYTES])] += single


def split(keys: bytes) -> Sequence[bytes]:
    """Return keys one by one."""
    return unpack(f"{KEY_BYTES}s" * (len(keys) // KEY_BYTES), keys)


def place_of(piece: bytes, packed: bytes, width: int = NUMBER_BYTES) -> int:
    """Return where a piece begins among pieces of a width, -1 if it is not there."""
    at = packed.find(piece)
    while at > 0 and at % width:
        at = packed.find(piece, at + 1)
    return at


def _packed(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big")
