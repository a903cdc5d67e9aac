"""Capped buckets in dictionaries: who shares a key with whom."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from streams.index import ANCHOR_HEADS, BAND_CAP, HEADS, LINEAGE_CAP
from streams.scheme import Keys


@dataclass(slots=True)
class Shared:
    """How an earlier state meets the keys of a document."""

    bands: int = 0
    anchors: int = 0
    by_digest: bool = False
    by_lineage: bool = False
    in_full_bucket: bool = False

    @property
    def named(self) -> bool:
        """Found by a key that names it, so no limit leaves it out."""
        return self.by_digest or self.by_lineage

    @property
    def score(self) -> int:
        """What an earlier state is ranked by."""
        return 4 * self.bands + self.anchors


@dataclass(slots=True)
class Seen:
    """What the buckets of a document held.

    Attributes:
        shared: By number of the earlier state.
        full_buckets: Buckets that held as many entries as they may.
        beyond_heads: What was seen may change: an entry that later arrivals displace, or that a bucket is full.
        gone: Numbers of which no state is left; whoever meets them notes them here.
    """

    shared: dict[int, Shared] = field(default_factory=dict)
    full_buckets: int = 0
    beyond_heads: bool = False
    gone: set[int] = field(default_factory=set)

    def ranked(self) -> list[int]:
        """Numbers, best first: named ones, then by score, ties by number."""
        shared = self.shared
        return sorted(shared, key=lambda number: (not shared[number].named, -shared[number].score, number))


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
    seen.beyond_heads |= full or len(entries) > heads
    for entry in entries:
        shared = seen.shared.get(entry)
        if shared is None:
            shared = seen.shared[entry] = Shared()
        shared.in_full_bucket |= full
        if kind == "band":
            shared.bands += 1
        elif kind == "anchor":
            shared.anchors += 1
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
