"""Records which pairs met and why others did not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from benchmarks.quality.corpus import words
from benchmarks.quality.scoring import Figures
from nearstream.streams.matching.counterpart import Compared
from nearstream.streams.matching.judge import Documents
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import ENOUGH, FAMILY_CANDIDATES
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.tally import held_by
from nearstream.streams.signing.scheme import Keys

Both = frozenset[str]


@dataclass
class Recording:
    """The judge of a matcher, which records what it was asked."""

    met: set[Both] = field(default_factory=set)  # pairs that met: one was compared with the other when it arrived
    left: dict[Both, str] = field(default_factory=dict)  # why other pairs that share a bucket did not meet
    keys: dict[str, Keys] = field(default_factory=dict)  # bands and anchors of each document
    looked_up: int = 0  # number of earlier documents that shared a bucket, summed over all documents
    families: dict[str, int] = field(default_factory=dict)  # number of the founder of its family by document
    # Documents that left buckets to the one that represents their family.
    thinned: set[str] = field(default_factory=set)
    twins: set[str] = field(default_factory=set)  # those of them with an equal text
    _ids: dict[int, str] = field(default_factory=dict)
    _compared: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, matcher: Matcher) -> Self:
        """Begin to record what a matcher does, which is given documents one by one."""
        recording = cls()
        inner = matcher._documents
        matcher._documents = _Judge(inner, recording)  # type: ignore[assignment] # the product has no hook for this
        return recording

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

    def compared(self, numbers: Sequence[int]) -> None:
        """Note that the document in work is compared with states."""
        self._compared.update(numbers)

    def decided(self, case: Case, representative: int) -> None:
        """Note what has become of a document."""
        own: str = case.document.signature.id
        self.keys[own], self._ids[case.number] = case.document.keys, own
        self.families[own] = case.decision.founder if case.decision else case.number
        if representative not in (0, case.number):
            self.thinned.add(own)
            if case.left and not case.hint:
                self.twins.add(own)  # it entered no bucket of words
        names = [self._ids[number] for number in self._compared]
        self.met |= {frozenset((own, name)) for name in names}
        seen = {number for _, numbers in held_by(case.found) for number in numbers} - {case.number}
        self._note_left(case, seen - self._compared, Counter(self.families[name] for name in names))
        self.looked_up += len(seen)
        self._compared.clear()

    def _note_left(self, case: Case, numbers: Iterable[int], families: Counter[int]) -> None:
        """Note why documents that share a bucket were not compared. `families` counts those that were."""
        own = self._ids[case.number]
        for number in numbers:
            name = self._ids[number]
            fewer = min(len(self.keys[own].anchors), len(self.keys[name].anchors))
            if families[self.families[name]] >= FAMILY_CANDIDATES:
                fate = "family"
            elif number in case.shared and case.shared[number].weight >= ENOUGH * max(fewer, 1):
                fate = "over_limit"
            elif name in self.thinned:
                fate = "left_out"
            else:
                fate = "weak" if number in case.shared else "not_read"
            self.left[frozenset((own, name))] = fate


class _Judge:
    """Tells a recording what a judge is asked."""

    def __init__(self, inner: Documents, recording: Recording) -> None:
        """Take the judge that does the work."""
        self._inner, self._recording = inner, recording
        self.decision, self.shortened = inner.decision, inner.shortened
        self.join, self.hint = inner.join, inner.hint

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> Sequence[Compared]:
        """Compare a document with states."""
        self._recording.compared(numbers)
        return self._inner.compare(case, numbers, known)

    def learn(self, case: Case, representative: int) -> None:
        """Learn who represents the family of a document, which is the last that is asked about it."""
        self._recording.decided(case, representative)
        self._inner.learn(case, representative)


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
