"""Capped buckets in dictionaries: who shares a key with whom."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from streams.index import ANCHOR_HEADS, BAND_ANCHORS, BAND_CAP, HEADS, LINEAGE_CAP, WEIGHT_MAX, weight
from streams.scheme import Keys


@dataclass(slots=True)
class Shared:
    """How an earlier state meets the keys of a document; rare keys weigh more."""

    bands: int = 0
    anchors: int = 0
    weight: int = 0
    by_digest: bool = False
    by_lineage: bool = False
    in_full_bucket: bool = False

    @property
    def named(self) -> bool:
        """Found by a key that names it, so no limit leaves it out."""
        return self.by_digest or self.by_lineage

    def share(self, anchors: int) -> float:
        """What an earlier state is ranked by: weight for each of the anchors of the document with fewer of them."""
        return self.weight / max(anchors, 1)

    def add(self, weight: int) -> None:
        """Counts a shared key; what sorts by weight takes 16 bits of it."""
        self.weight = min(self.weight + weight, WEIGHT_MAX)


@dataclass(slots=True)
class Seen:
    """What the buckets of a document held.

    Attributes:
        shared: By number of the earlier state.
        full_buckets: Buckets that held as many entries as they may.
        may_change: Another look may tell otherwise: later arrivals displace an entry, a bucket is full, or neighbours
            are left out by weights that change when others expire.
        gone: Numbers of which no state is left; whoever meets them notes them here.
    """

    shared: dict[int, Shared] = field(default_factory=dict)
    full_buckets: int = 0
    may_change: bool = False
    gone: set[int] = field(default_factory=set)

    def ranked(self) -> list[int]:
        """Numbers, best first: named ones, then by weight, ties by number."""
        shared = self.shared
        return sorted(shared, key=lambda number: (not shared[number].named, -shared[number].weight, number))


class Buckets:
    """For each key the numbers of its oldest and newest documents, ascending."""

    def __init__(self, anchor_cap: int) -> None:
        """Makes empty buckets, those of anchors for `anchor_cap` entries."""
        self._shapes = {
            "band": (HEADS, BAND_CAP),
            "digest": (HEADS, BAND_CAP),
            "anchor": (ANCHOR_HEADS, anchor_cap),
            "lineage": (0, LINEAGE_CAP),
        }
        self._entries: dict[str, dict[bytes, tuple[int, ...]]] = {kind: {} for kind in self._shapes}
        self._keys: dict[int, Keys] = {}

    def gather(self, keys: Keys, own: int, hidden: Callable[[int], bool] = lambda _: False) -> Seen:
        """What these keys' buckets held when the number `own` was given, without `hidden` numbers."""
        seen = Seen()
        for kind, key in _pairs(keys):
            entries = self._entries[kind].get(key)
            if entries is not None:
                heads, cap = self._shapes[kind]
                _tally(seen, kind, [entry for entry in entries if entry < own and not hidden(entry)], heads, cap)
        return seen

    def enter(self, keys: Keys, number: int, age: Callable[[int], tuple[int, str, int]]) -> None:
        """Adds a number; a full bucket drops the entry behind its heads, of a lineage the least by `age`."""
        self._keys[number] = keys
        for kind, key in _pairs(keys):
            heads, cap = self._shapes[kind]
            entries = (*self._entries[kind].get(key, ()), number)
            if len(entries) > cap:
                out = min(entries, key=age) if kind == "lineage" else entries[heads]
                entries = tuple(entry for entry in entries if entry != out)
            self._entries[kind][key] = entries

    def forget(self, number: int) -> None:
        """Takes an expired number out of its buckets, which makes room for others."""
        keys = self._keys.pop(number, None)
        if keys is not None:
            self.take_out(keys, {number})

    def take_out(self, keys: Keys, numbers: Container[int]) -> None:
        """Takes numbers out of the buckets of these keys."""
        for kind, key in _pairs(keys):
            before = self._entries[kind].pop(key, ())
            entries = tuple(entry for entry in before if entry not in numbers)
            if entries:
                self._entries[kind][key] = entries


def _tally(seen: Seen, kind: str, entries: list[int], heads: int, cap: int) -> None:
    full = len(entries) >= cap
    seen.full_buckets += full
    seen.may_change |= full or len(entries) > heads
    weighs = weight(len(entries)) if entries else 0
    for entry in entries:
        shared = seen.shared.get(entry)
        if shared is None:
            shared = seen.shared[entry] = Shared()
        shared.in_full_bucket |= full
        if kind == "band":
            shared.bands += 1
            shared.add(BAND_ANCHORS * weighs)
        elif kind == "anchor":
            shared.anchors += 1
            shared.add(weighs)
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
