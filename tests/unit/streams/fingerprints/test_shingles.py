"""Words, shingles, anchor windows."""

import numpy as np
import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import AnchorRules, SketchRules
from nearstream.streams.fingerprints.shingles import FeatureHasher, word_bounds

HASHER = FeatureHasher(HashKey.public(), 64)


def shingles(text: str, rules: SketchRules | None = None) -> set[int]:
    (found,) = HASHER.shingles(HASHER.features([normalize(text)]), rules or SketchRules())
    return set(found.tolist())


def windows(text: str) -> list[int]:
    (found,) = HASHER.anchor_windows(HASHER.features([normalize(text)]), AnchorRules()).each()
    return found.tolist()


def bounds(text: str) -> list[tuple[int, int]]:
    starts, ends = word_bounds(np.frombuffer(text.encode(), dtype=np.uint8), 64)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def test_words_are_what_stands_between_spaces() -> None:
    assert bounds("a bc def") == [(0, 1), (2, 4), (5, 8)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v" * 64, [(0, 64)]),
        ("v" * 65, [(0, 64), (64, 65)]),
        ("v" * 128 + " ab " + "w" * 70, [(0, 64), (64, 128), (129, 131), (132, 196), (196, 202)]),
    ],
)
def test_long_words_are_cut_every_64_bytes_from_their_start(text: str, expected: list[tuple[int, int]]) -> None:
    assert bounds(text) == expected


def test_shingles_are_the_distinct_runs_of_a_text() -> None:
    # The seeds' example: abcdabd in runs of two gives ab, bc, cd, da, bd.
    words = shingles("a b c d a b d", SketchRules(shingle_words=2))
    assert words == set().union(
        *(shingles(pair, SketchRules(shingle_words=2)) for pair in ("a b", "b c", "c d", "d a")),
        shingles("b d", SketchRules(shingle_words=2)),
    )
    assert len(words) == 5


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_a_text_of_up_to_five_words_has_one_shingle(words: int) -> None:
    assert len(shingles(" ".join("abcde"[:words]))) == 1


def test_a_text_of_six_words_has_two_shingles() -> None:
    assert shingles("a b c d e f") == shingles("a b c d e") | shingles("b c d e f")


def test_spaceless_texts_have_one_shingle_for_each_code_point_with_12_bytes_after_it() -> None:
    text = "日本語の文章は空白"
    assert shingles(text) == {next(iter(shingles(text[start : start + 4]))) for start in range(len(text) - 3)}


def test_a_spaceless_text_below_12_bytes_has_its_words_as_shingle() -> None:
    assert len(shingles("日本語")) == 1
    assert len(shingles("日 本 語")) == 1


def test_spaced_and_spaceless_texts_share_no_shingle() -> None:
    assert not shingles("the quick brown fox jumps") & shingles("the quick brown fox jumps" + "語" * 20)


def test_eight_words_give_one_anchor_window() -> None:
    assert len(windows("one two three four five six seven eight")) == 1
    assert windows("one two three four five six seven") == []


def test_spaceless_texts_have_anchor_windows_of_40_bytes() -> None:
    assert [len(windows("語" * size)) for size in (13, 14, 15)] == [0, 1, 2]


def test_anchor_windows_keep_the_order_of_the_text() -> None:
    text = "one two three four five six seven eight nine ten"
    assert windows(text) == [windows(" ".join(text.split()[start : start + 8]))[0] for start in range(3)]


def test_shingles_and_anchor_windows_of_equal_words_have_different_hashes() -> None:
    rules = SketchRules(shingle_words=8)
    assert shingles("one two three four five six seven eight", rules) != set(
        windows("one two three four five six seven eight")
    )
