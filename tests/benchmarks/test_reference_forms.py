"""Text profile, stop-word shingles and block comparison give the figures of the sources."""

import pytest
from rapidfuzz.distance import Levenshtein

from benchmarks.reference.block_comparison import cross_distance
from benchmarks.reference.stop_words import stop_word_shingles
from benchmarks.reference.text_profile import profile_digest, text_profile

CAT = "The cat sat. The cat ran; the dog sat on it!"
NEWS = (
    "A spokesperson for the Sudzo Corporation revealed today that studies have shown it is good for people to buy"
    " Sudzo products"
)
STOP_WORDS = {"a", "for", "the", "that", "have", "it", "is", "to", "i", "you", "your"}


@pytest.mark.parametrize(
    ("text", "profile", "digest"),
    [
        (CAT, "cat 2\nsat 2\nthe 2", "fc7dd611c5dbe187ff04a506633f85a3"),
        ("the CAT sat the cat hid: the dog sat upon it", "cat 2\nsat 2\nthe 2", "fc7dd611c5dbe187ff04a506633f85a3"),
        ("one two three", "one 1\nthree 1\ntwo 1", "99a9525fdb41ea78db6bdc79810b27c4"),
        ("don't stop; don't stop", "don 2\nstop 2", "d961b9b3f4b60f22e75858b5c20295b6"),
    ],
)
def test_a_profile_is_that_of_nutch(text: str, profile: str, digest: str) -> None:
    assert (text_profile(text), profile_digest(text)) == (profile, digest)


@pytest.mark.parametrize(("largest", "quantum"), [(149, 2), (250, 3), (99, 2)])
def test_counts_are_rounded_down_to_multiples_of_the_quantum(largest: int, quantum: int) -> None:
    text = " ".join(["many"] * largest + ["seven"] * 7)
    assert text_profile(text).splitlines() == [
        f"many {largest // quantum * quantum}",
        f"seven {7 // quantum * quantum}",
    ]


def test_an_empty_profile_gives_no_key() -> None:
    assert (text_profile("we do it so"), profile_digest("we do it so")) == ("", None)


def test_an_article_has_stop_words_and_an_advertisement_none() -> None:
    found = stop_word_shingles(NEWS, STOP_WORDS)
    assert found[:3] == ["a spokesperson for", "for the sudzo", "the sudzo corporation"]
    assert len(found) == 9
    assert stop_word_shingles("Buy Sudzo", STOP_WORDS) == []
    exercise = "I recommend that you buy Sudzo for your laundry"
    assert len(stop_word_shingles(exercise, STOP_WORDS)) == 4
    assert len(stop_word_shingles(f"{exercise} today", STOP_WORDS)) == 5


def test_blocks_are_found_in_another_order() -> None:
    one, other = "AAAAABBBBBCCCCC", "CCCCCAAAAABBBBB"
    assert Levenshtein.distance(one, other) == 10
    assert cross_distance(one, other, 5) == 0
    assert cross_distance(one, "CCCCCAAAAABBXBB", 5) == 1
    assert cross_distance(one, "CCCCCAAAAABBXBB", 5, best=2) == 0
    with pytest.raises(ValueError, match="at least one symbol"):
        cross_distance("", other, 5)
