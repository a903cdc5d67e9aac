"""The recall of a window: which pairs there are, which of them count as found, and what a sample sees."""

from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest

from nearstream.workers.operations.audit import Audited, Found, Missed, Pair, similar_pairs, summed
from nearstream.workers.operations.terminal import report_lines

FOUR_FIFTHS = Fraction(4, 5)


def document(name: str, first: int, offset: int, collection: str = "default") -> Audited:
    shingles = np.arange(first, first + 20, dtype=np.uint64)
    return Audited(f"{collection}/{name}", (0, offset), offset, shingles)


def pairs(documents: list[Audited], found: Found, one_in: int = 1) -> dict[tuple[str, ...], bool]:
    judged = found.among(similar_pairs(documents, FOUR_FIFTHS, one_in))
    return {names(newer, older): is_found for (newer, older, _), is_found in judged}


def names(*documents: Audited) -> tuple[str, ...]:
    return tuple(each.document_key.partition("/")[2] for each in documents)


def test_a_pair_is_found_by_its_family_or_by_an_event_between_families() -> None:
    documents = [document(name, 0, offset) for offset, name in enumerate(("a", "copy", "b", "lost"))]
    families = {(0, 0): "A", (0, 1): "A", (0, 2): "B", (0, 3): "C"}
    found = Found(families, {frozenset(((0, 2), (0, 0)))})
    assert pairs(documents, found) == {
        ("copy", "a"): True,
        ("b", "a"): True,
        ("b", "copy"): True,
        ("lost", "a"): False,
        ("lost", "copy"): False,
        ("lost", "b"): False,
    }


def test_documents_without_a_verdict_are_found_by_events_alone_and_only_in_one_collection() -> None:
    documents = [document("a", 0, 0), document("b", 1, 1), document("c", 2, 2), document("d", 0, 3, "mail")]
    assert pairs(documents, Found({}, {frozenset(((0, 1), (0, 0)))})) == {
        ("b", "a"): True,
        ("c", "b"): False,
        ("c", "a"): False,
    }


def test_the_recall_audit_probes_a_sample_but_indexes_all() -> None:
    documents = [
        document(f"{cluster}-{at}", 100 * cluster, 10 * cluster + at) for cluster in range(60) for at in (0, 1)
    ]
    every, some = pairs(documents, Found()), pairs(documents, Found(), one_in=4)
    assert len(every) == 60
    assert some.items() <= every.items()
    assert 5 <= len(some) <= 30  # one pair in 4, not one in 16


def test_the_recall_is_summed_by_resemblance() -> None:
    both = document("a", 0, 0, "x"), document("b", 0, 1, "x")
    shares = ((80, True), (84, False), (100, True))
    found: list[tuple[Pair, bool]] = [((*both, Fraction(each, 100)), is_found) for each, is_found in shares]
    recall = summed(found, 4, 1, FOUR_FIFTHS)
    assert (recall.pairs, recall.found, recall.ratio) == (3, 2, 2 / 3)
    assert [(each.low, each.pairs, each.found) for each in recall.ranges] == [(0.8, 2, 1), (1.0, 1, 1)]
    assert recall.missed == (Missed("x/a", "x/b", 0.84),)
    lines = list(report_lines(asdict(recall)))
    assert lines[:2] == ["documents        4", "waiting          1"]
    assert "ranges           low 0.8, pairs 2, found 1" in lines
    assert lines[-1] == "missed           newer x/a, older x/b, resemblance 0.84"


def resemblance(one: set[int], other: set[int]) -> Fraction:
    return Fraction(len(one & other), len(one | other))


def related_sets(seed: int) -> list[set[int]]:
    """Return sets in clusters whose members differ by some symbols."""
    random, found = Random(seed), list[set[int]]()
    for _ in range(25):
        core = set(random.sample(range(4_000), random.randint(3, 40)))
        for _ in range(9):
            kept = set(random.sample(sorted(core), random.randint(max(1, len(core) - 4), len(core))))
            found.append(kept | set(random.sample(range(4_000), random.randint(0, 2))))
    random.shuffle(found)
    return found


@pytest.mark.parametrize("share", ["0.7", "0.9"])
def test_no_pair_at_the_bound_or_above_is_missed(share: str) -> None:
    sets, bound = related_sets(3), Fraction(share)
    documents = [
        Audited(f"x/{number}", (0, number), number, np.array(sorted(each), np.uint64))
        for number, each in enumerate(sets)
    ]
    found = {(older.time_ms, newer.time_ms) for newer, older, _ in similar_pairs(documents, bound, 1)}
    pairs = list(combinations(range(len(sets)), 2))
    assert found == {pair for pair in pairs if resemblance(sets[pair[0]], sets[pair[1]]) >= bound}
    assert len(found) > 100
