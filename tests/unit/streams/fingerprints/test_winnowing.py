"""Winnowed and sampled windows: guarantee, subsets, bounds."""

from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import AnchorRules, NoiseRules
from nearstream.streams.fingerprints.ragged import RaggedRows
from nearstream.streams.fingerprints.shingles import FeatureHasher
from nearstream.streams.fingerprints.winnowing import anchors, run_minima, sampled_windows

RULES = AnchorRules()
HASHER = FeatureHasher(HashKey.public(), 64)
UNBOUND = AnchorRules(max_anchors=1 << 30)


def values(size: int, seed: int = 1) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


def row(windows: NDArray[np.uint64]) -> RaggedRows:
    return RaggedRows.between(windows, [0, windows.size])


def found(windows: NDArray[np.uint64], run: int = 32, most: int = 1 << 30, spaceless: bool = False) -> set[int]:
    (packed,) = anchors(row(windows), spaceless, AnchorRules(run=run, max_anchors=most))
    return set(np.frombuffer(packed, dtype="<u8").tolist())


def anchors_of(text: str) -> set[int]:
    form = normalize(text)
    windows = HASHER.anchor_windows(HASHER.features([form]), RULES)
    return set(np.frombuffer(anchors(windows, form.spaceless, RULES)[0], dtype="<u8").tolist())


def words(size: int, seed: int) -> list[str]:
    return [f"w{Random(f'{seed} {number}').randrange(10**6)}" for number in range(size)]


@pytest.mark.parametrize("run", [1, 2, 3, 7, 32, 33, 100, 1000])
@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 500])
def test_anchors_are_the_minima_of_all_runs(run: int, size: int) -> None:
    y = values(size)
    expected = {min(y[start : start + run].tolist()) for start in range(max(1, size - run + 1))}
    assert set(run_minima(y, run).tolist()) == found(y, run) == expected


def test_no_windows_have_no_anchors() -> None:
    assert anchors(row(values(0)), False, RULES) == [b""]


def test_anchors_are_ascending() -> None:
    packed = np.frombuffer(anchors(row(values(5000)), False, RULES)[0], dtype="<u8")
    assert np.array_equal(packed, np.unique(packed))


@pytest.mark.parametrize("run", [2, 5, 32, 64])
def test_a_larger_window_gives_a_subset(run: int) -> None:
    y = values(4000)
    assert found(y, 2 * run) < found(y, run)


@pytest.mark.parametrize("size", [9000, 40_000, 500_000])
def test_there_are_never_more_than_512(size: int) -> None:
    y = values(size)
    run = 32
    while len(found(y, run)) > 512:
        run *= 2
    assert run > 32
    assert found(y, 32, 512) == found(y, run)


@pytest.mark.parametrize("spaceless", [False, True])
@pytest.mark.parametrize("rules", [AnchorRules(), AnchorRules(dense_below=400), AnchorRules(max_anchors=20)])
def test_rows_of_any_size_have_the_anchors_that_they_have_alone(spaceless: bool, rules: AnchorRules) -> None:
    sizes = [0, 500, 1, 31, 0, 32, 700, 64, 3_000, 5, 0]
    bounds = np.cumsum([3, *(size + 7 for size in sizes)]).tolist()  # values between rows are ignored
    windows = RaggedRows(
        values(bounds[-1]), bounds[:-1], [start + size for start, size in zip(bounds, sizes, strict=False)]
    )
    alone = [anchors(row(each.copy()), spaceless, rules)[0] for each in windows.each()]
    assert anchors(windows, spaceless, rules) == alone


def test_spaceless_texts_have_twice_the_run() -> None:
    y = values(3000)
    assert found(y, 32, spaceless=True) == found(y, 64)


def test_repeated_text_collapses() -> None:
    assert len(anchors_of("one two three four five six seven eight nine " * 300)) <= 9


def test_eight_words_give_one_anchor() -> None:
    assert len(anchors_of("one two three four five six seven eight")) == 1
    assert anchors_of("one two three four five six seven") == set()


@pytest.mark.parametrize("seed", range(20))
def test_a_shared_passage_of_39_words_shares_an_anchor(seed: int) -> None:
    passage = words(39, seed)
    first = words(seed * 13, 1000 + seed) + passage + words(200, 2000 + seed)
    second = words(300, 3000 + seed) + passage + words(seed * 7, 4000 + seed)
    assert anchors_of(" ".join(first)) & anchors_of(" ".join(second))


def test_an_excerpt_shares_an_anchor_with_its_book() -> None:
    book = words(30_000, 5)
    assert anchors_of(" ".join(book[9000:11_500])) & anchors_of(" ".join(book))


def test_a_short_text_has_the_anchors_of_the_run_and_more() -> None:
    rules = AnchorRules(dense_below=400)
    for size, is_dense in ((16, True), (399, True), (400, False)):
        windows = values(size)
        own = set(np.frombuffer(anchors(row(windows), False, rules)[0], "<u8").tolist())
        assert found(windows, 32) <= own
        assert own == found(windows, 16 if is_dense else 32)


def sampled(data: bytes, rules: NoiseRules) -> list[int]:
    windows = HASHER.byte_windows(HASHER.joined([data]), rules.window_bytes, HashKey.public().anchor_salt)
    found = sampled_windows(windows.values, rules).tolist()
    assert found == sorted(set(found))
    return found


def test_of_sampled_windows_a_longer_text_keeps_those_of_its_part() -> None:
    part, rules = Random(5).randbytes(600), NoiseRules(max_keys=1 << 30)
    assert set(sampled(part, rules)) <= set(sampled(b"before" + part + b"after", rules))


def test_fewer_sampled_windows_are_some_of_those_at_the_finer_rate() -> None:
    data = Random(6).randbytes(20_000)
    every = set(sampled(data, NoiseRules(max_keys=1 << 30)))
    few = sampled(data, NoiseRules())
    assert 20 <= len(few) <= 48
    assert set(few) < every
    assert len(every) == pytest.approx(20_000 / 16, rel=0.1)


@pytest.mark.parametrize("size", [0, 1, 11])
def test_a_text_below_one_window_has_no_sampled_windows(size: int) -> None:
    assert sampled(bytes(size), NoiseRules(rate=2)) == []
