"""Distances of short texts in which a few words differ lie in their band, whatever the edits are."""

from functools import cache
from random import Random

import pytest

from benchmarks.quality import few_edits
from benchmarks.texts import originals


@cache
def known() -> few_edits.Vocabulary:
    return few_edits.Vocabulary.of(originals())


@pytest.mark.parametrize("kind", few_edits.KINDS)
def test_as_many_words_are_edited_as_are_asked_for(kind: str) -> None:
    text = [f"word{letter}" for letter in "abcdefghij"]
    one, other = few_edits.edited(Random(1), text, kind, 3, known())
    of_both = zip(one.split(), other.split(), strict=False)
    assert one == other or kind == "an inserted word" or 1 <= sum(a != b for a, b in of_both) <= 3


def test_the_distance_lies_in_its_band_whatever_the_edits_are() -> None:
    for kind, by_size in few_edits.measured(originals(), 20, "letters").items():
        assert by_size["all"]["in_band"] >= 0.85, kind
        assert 0.6 <= by_size["all"]["told"] <= 2.5, kind


def test_an_unreadable_corpus_is_told() -> None:
    assert few_edits.main(["--corpus", "/nowhere"]) == 2
