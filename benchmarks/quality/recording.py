"""An index that records which pairs met and why others did not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.quality.corpus import words
from benchmarks.quality.scoring import Figures
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import FAMILY_CANDIDATES, Settled, Settlement
from nearstream.streams.index.memory_buckets import Seen
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.store.limits import ENOUGH, Admission, Admitted, IndexState

Both = frozenset[str]


@dataclass
class Recording:
    """An index that records its own answers.

    Attributes:
        inner: The index that does the work.
        limit: The most earlier documents that it returns for one document.
        met: Pairs that met: the index returned one when the other was admitted.
        left: Why other pairs that share a bucket did not meet.
        keys: Bands and anchors of each document.
        looked_up: Number of earlier documents that shared a bucket, summed over all documents.
        families: Number of the founder of its family by document.
        thinned: Documents that left out the buckets of the one whose copy they seemed to be.
        twins: Those of them with an equal text.
    """

    inner: Store
    limit: int
    met: set[Both] = field(default_factory=set)
    left: dict[Both, str] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    looked_up: int = 0
    families: dict[str, int] = field(default_factory=dict)
    thinned: set[str] = field(default_factory=set)
    twins: set[str] = field(default_factory=set)
    _ids: dict[int, str] = field(default_factory=dict)

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        """Admit a batch, one document after the other, and record the answers."""
        return [await self._admit(admission) for admission in batch]

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        """Enter documents into the buckets that they left out, and record who is there."""
        found = await self.inner.enter(batch)
        for (number, _), missed in zip(batch, found, strict=True):
            self.thinned.discard(self._ids[number])
            self.met |= {frozenset((self._ids[number], each.signature.id)) for each in missed}
        return found

    async def settle(self, batch: Sequence[Settlement]) -> Sequence[Settled]:
        """Settle a batch and record the families."""
        answers = await self.inner.settle(batch)
        for settlement, answer in zip(batch, answers, strict=True):
            if answer.family is not None:
                self.families[self._ids[settlement.number]] = answer.family.number
        return answers

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """Look up keys in the inner index."""
        return await self.inner.look_up(keys, limit)

    async def state(self) -> IndexState:
        """Return the state of the inner index."""
        return await self.inner.state()

    @property
    def entries(self) -> int:
        """Return the number of keys of all documents, including digests."""
        return sum(1 + len(keys.bands) + len(keys.anchors) for keys in self.keys.values())

    def fate(self, both: Both) -> str:
        """Return `met`, or why a pair did not meet.

        A pair is lost by a cap of the index, by a bound of the ranking, by the thinning of families, or because its
        documents share no key.
        """
        if both in self.met:
            return "met"
        if both in self.left:
            return self.left[both]
        one, other = (self.keys.get(name) for name in both)
        if one is None or other is None:
            return "empty"
        shares = not {*one.bands, *one.anchors}.isdisjoint((*other.bands, *other.anchors))
        if not shares:
            return "no_key"
        if not both.isdisjoint(self.twins):
            return "twin"
        return "full_buckets" if both.isdisjoint(self.thinned) else "left_out"

    async def _admit(self, admission: Admission) -> Admitted:
        seen = self.inner.seen(admission.keys)
        (answer,) = await self.inner.admit([admission])
        own = admission.document_key.partition("/")[2]
        self.keys[own] = admission.keys
        self._ids[answer.number] = own
        self.families[own] = answer.number
        if answer.presumed:
            self.thinned.add(own)
        met = [each.signature.id for each in answer.candidates]
        self.met |= {frozenset((own, name)) for name in met}
        if any(each.by_digest and each.number == answer.presumed for each in answer.candidates):
            self.twins.add(own)  # it reads no other bucket
        else:
            self._note_left(own, seen, Counter(self.families[name] for name in met))
        self.looked_up += len(seen.shared)
        return answer

    def _note_left(self, own: str, seen: Seen, families: Counter[int]) -> None:
        """Note why documents that share a bucket were not returned. `families` counts those that were."""
        ranked = [number for number in seen.ranked() if not seen.shared[number].named]
        for rank, number in enumerate(ranked):
            name = self._ids[number]
            both = frozenset((own, name))
            if both in self.met:
                continue
            fewer = min(len(self.keys[own].anchors), len(self.keys[name].anchors))
            if rank >= 2 * self.limit:
                self.left[both] = "not_read"
            elif families[self.families[name]] >= FAMILY_CANDIDATES:
                self.left[both] = "family"
            elif seen.shared[number].share(fewer) >= ENOUGH:
                self.left[both] = "over_limit"
            else:
                self.left[both] = "left_out" if name in self.thinned else "weak"


def fates(pairs: Iterable[tuple[str, bool]]) -> dict[str, Figures]:
    """Count the pairs of each fate.

    `unclear` counts the pairs whose label depends on a bound of the label rules.
    """
    pairs = list(pairs)
    unclear = Counter(fate for fate, clear in pairs if not clear)
    return {fate: {"n": n, "unclear": unclear[fate]} for fate, n in Counter(fate for fate, _ in pairs).most_common()}


def longest_common_run(one: str, other: str) -> int:
    """Return the number of words of the longest common passage."""
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
