"""An index that notes which pairs it brought together, and where it lost the others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.corpus import words
from benchmarks.scoring import Figures
from streams.index import ENOUGH, Admission, Admitted, Candidate, IndexState, Report
from streams.memory_buckets import Seen
from streams.memory_index import MemoryIndex
from streams.scheme import Keys

Both = frozenset[str]


@dataclass
class Recording:
    """An index that notes what it answers.

    Attributes:
        inner: The index that is asked.
        limit: Earlier documents that it answers for one.
        met: Pairs that came back together.
        left: Why other pairs that share a bucket did not.
        keys: Bands and anchors of each document.
        looked_up: Earlier documents that shared a bucket, of all documents.
    """

    inner: MemoryIndex
    limit: int
    met: set[Both] = field(default_factory=set)
    left: dict[Both, str] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    looked_up: int = 0
    _ids: dict[int, str] = field(default_factory=dict)

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        """The answers of the inner index."""
        return [await self._admit(admission) for admission in batch]

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """As the inner index."""
        return await self.inner.report(pairs)

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """As the inner index."""
        return await self.inner.look_up(keys, limit)

    async def state(self) -> IndexState:
        """As the inner index."""
        return await self.inner.state()

    @property
    def entries(self) -> int:
        """Keys of all documents, with those of digests."""
        return sum(1 + len(keys.bands) + len(keys.anchors) for keys in self.keys.values())

    def fate(self, both: Both) -> str:
        """Why this pair did not come back together, if it did not: what a cap, a bound or the keys left out."""
        if both in self.met:
            return "met"
        if both in self.left:
            return self.left[both]
        one, other = (self.keys.get(name) for name in both)
        if one is None or other is None:
            return "empty"
        shares = not {*one.bands, *one.anchors}.isdisjoint((*other.bands, *other.anchors))
        return "full_buckets" if shares else "no_key"

    async def _admit(self, admission: Admission) -> Admitted:
        seen = self.inner.seen(admission.keys)
        (answer,) = await self.inner.admit([admission])
        own = admission.document_key.partition("/")[2]
        self.keys[own] = admission.keys
        self._ids[answer.number] = own
        self.met |= {frozenset((own, each.signature.id)) for each in answer.candidates}
        self._note_left(own, seen)
        self.looked_up += len(seen.shared)
        return answer

    def _note_left(self, own: str, seen: Seen) -> None:
        ranked = [number for number in seen.ranked() if not seen.shared[number].named]
        for rank, number in enumerate(ranked):
            name = self._ids[number]
            both = frozenset((own, name))
            if both in self.met:
                continue
            fewer = min(len(self.keys[own].anchors), len(self.keys[name].anchors))
            if rank >= 2 * self.limit:
                self.left[both] = "not_read"
            else:
                self.left[both] = "over_limit" if seen.shared[number].share(fewer) >= ENOUGH else "weak"


def fates(told: Iterable[tuple[str, bool]]) -> dict[str, Figures]:
    """Of each fate how many pairs had it, and how many of these have a label that hangs on a bound of its rules."""
    told = list(told)
    unclear = Counter(fate for fate, clear in told if not clear)
    return {fate: {"n": n, "unclear": unclear[fate]} for fate, n in Counter(fate for fate, _ in told).most_common()}


def longest_common_run(one: str, other: str) -> int:
    """Words of the longest passage that both texts have."""
    first, second = words(one), words(other)
    low, high = 0, min(len(first), len(second)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _runs(first, middle).isdisjoint(_runs(second, middle)):
            high = middle
        else:
            low = middle
    return low


def _runs(found: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(found[start : start + length]) for start in range(len(found) - length + 1)}
