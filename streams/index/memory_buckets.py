"""Capped buckets in dictionaries: which documents share a key."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from nearstream.streams.index.candidate import BAND_ANCHORS, RARE_BELOW, WEIGHT_MAX, weight
from nearstream.streams.index.contract import ANCHOR_HEADS, BAND_CAP, HEADS, LINEAGE_CAP
from nearstream.streams.signing.scheme import Keys

_THINNED = ("band", "anchor")  # kinds that a copy may leave out


@dataclass(slots=True)
class Shared:
    """The keys that an earlier state shares with a document.

    Rare keys weigh more.
    """

    bands: int = 0
    anchors: int = 0
    rare: int = 0
    weight: int = 0
    by_digest: bool = False
    by_lineage: bool = False
    in_full_bucket: bool = False

    @property
    def named(self) -> bool:
        """Whether this is a digest or lineage match, exempt from limits."""
        return self.by_digest or self.by_lineage

    def share(self, anchors: int) -> float:
        """Return the weight for each anchor, by which earlier states are ranked.

        Args:
            anchors: Number of anchors of the document with fewer of them.
        """
        return self.weight / max(anchors, 1)

    def add(self, weight: int) -> None:
        """Add the weight of a shared key, up to `WEIGHT_MAX`.

        The Redis index sorts by 16 bits of it.
        """
        self.weight = min(self.weight + weight, WEIGHT_MAX)


@dataclass(slots=True)
class Seen:
    """What the buckets of a document held.

    Attributes:
        shared: The shared keys, by number of the earlier state.
        full_buckets: Number of buckets that were full.
        may_change: A later look may give another answer: a new entry may displace one, a bucket is full, or
            neighbours were left out by weights that change when others expire.
        gone: Numbers without a state, added while reading. They are taken out of the buckets afterwards.
    """

    shared: dict[int, Shared] = field(default_factory=dict)
    full_buckets: int = 0
    may_change: bool = False
    gone: set[int] = field(default_factory=set)

    def ranked(self) -> list[int]:
        """Return all numbers, the best first.

        Digest and lineage matches come before the others. Both are sorted by weight, ties by number.
        """
        shared = self.shared
        return sorted(shared, key=lambda number: (not shared[number].named, -shared[number].weight, number))


class Buckets:
    """The numbers of the oldest and newest documents of each key.

    The numbers in a bucket are ascending.
    """

    def __init__(self, anchor_cap: int) -> None:
        """Create empty buckets. Anchor buckets hold `anchor_cap` entries."""
        self._shapes = {  # heads and cap by kind
            "band": (HEADS, BAND_CAP),
            "digest": (HEADS, BAND_CAP),
            "anchor": (ANCHOR_HEADS, anchor_cap),
            "lineage": (0, LINEAGE_CAP),
        }
        self._entries: dict[str, dict[bytes, tuple[int, ...]]] = {kind: {} for kind in self._shapes}
        self._keys: dict[int, Keys] = {}

    def gather(self, keys: Keys, own: int, hidden: Callable[[int], bool] = lambda _: False) -> Seen:
        """Return what the buckets held when the number `own` was given.

        Numbers for which `hidden` is true are left out.
        """
        seen = Seen()
        for kind, key in _pairs(keys):
            entries = self._entries[kind].get(key)
            if entries is not None:
                heads, cap = self._shapes[kind]
                _count_shared(seen, kind, [entry for entry in entries if entry < own and not hidden(entry)], heads, cap)
        return seen

    def entries(self, kind: str, key: bytes) -> tuple[int, ...]:
        """Return the numbers in a bucket."""
        return self._entries[kind].get(key, ())

    def enter(
        self,
        keys: Keys,
        number: int,
        age: Callable[[int], tuple[int, str, int]],
        leaves: Callable[[tuple[int, ...]], bool],
    ) -> None:
        """Add a number to the buckets of its keys, but not to those that it leaves out.

        A full bucket drops the first entry after its heads. A full lineage bucket drops the entry with the least `age`.
        """
        self._keys[number] = keys
        for kind, key in _pairs(keys):
            before = self.entries(kind, key)
            if kind in _THINNED and leaves(before):
                continue
            heads, cap = self._shapes[kind]
            entries = (*before, number)
            if len(entries) > cap:
                out = min(entries, key=age) if kind == "lineage" else entries[heads]
                entries = tuple(entry for entry in entries if entry != out)
            self._entries[kind][key] = entries

    def enter_late(self, keys: Keys, number: int) -> Seen:
        """Add a number to the buckets that it left out.

        The answer names the others in these, and in its other buckets those that came later: when this is repeated,
        it is not known any more which buckets it had left out.
        """
        seen = Seen()
        self._keys[number] = keys
        for kind, key in _pairs(keys):
            before = self.entries(kind, key)
            if kind not in _THINNED:
                continue
            heads, cap = self._shapes[kind]
            is_in = number in before
            _count_shared(seen, kind, [entry for entry in before if entry > number or not is_in], heads, cap)
            if is_in:
                continue
            entries = tuple(sorted((*before, number)))
            self._entries[kind][key] = entries if len(entries) <= cap else entries[:heads] + entries[heads + 1 :]
        return seen

    def forget(self, number: int) -> None:
        """Remove an expired number from its buckets, which makes room for others."""
        keys = self._keys.pop(number, None)
        if keys is not None:
            self.take_out(keys, {number})

    def take_out(self, keys: Keys, numbers: Container[int]) -> None:
        """Remove numbers from the buckets of these keys."""
        for kind, key in _pairs(keys):
            before = self._entries[kind].pop(key, ())
            entries = tuple(entry for entry in before if entry not in numbers)
            if entries:
                self._entries[kind][key] = entries


def _count_shared(seen: Seen, kind: str, entries: list[int], heads: int, cap: int) -> None:
    """Count one shared key for every entry of its bucket."""
    full = len(entries) >= cap
    seen.full_buckets += full
    seen.may_change |= full or len(entries) > heads
    key_weight = weight(len(entries)) if entries else 0
    is_rare = kind in _THINNED and len(entries) < RARE_BELOW
    for entry in entries:
        shared = seen.shared.get(entry)
        if shared is None:
            shared = seen.shared[entry] = Shared()
        shared.in_full_bucket |= full
        shared.rare += is_rare
        if kind == "band":
            shared.bands += 1
            shared.add(BAND_ANCHORS * key_weight)
        elif kind == "anchor":
            shared.anchors += 1
            shared.add(key_weight)
        elif kind == "digest":
            shared.by_digest = True
        else:
            shared.by_lineage = True


def _pairs(keys: Keys) -> Iterator[tuple[str, bytes]]:
    yield "digest", keys.digest
    if keys.lineage is not None:
        yield "lineage", keys.lineage
    for band in keys.bands:
        yield "band", band
    for anchor in keys.anchors:
        yield "anchor", anchor
