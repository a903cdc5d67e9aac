"""Copies and edits of Chinese and Japanese texts are found, classified and measured.

Unrelated texts are not paired.
"""

import json
from functools import cache
from itertools import combinations
from random import Random

import numpy as np
import pytest

from benchmarks.cjk import __main__ as cjk
from benchmarks.cjk.judged import KEY, STANDARD, Judged, document, judge, met
from benchmarks.cjk.texts import (
    KINDS,
    LANGUAGES,
    edited,
    ending_in_a_spaceless_letter,
    inserted,
    mixed_pieces,
    passage,
    pieces,
    replaced,
    without_breaks,
)
from nearstream.streams.estimates import alignment
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.signing.signer import Signer

LENGTHS = (500, 2_000)
COUNT = 12
COPIES = ("other widths", "lines of 35", "1 % replaced")
EDITS = ("5 % replaced", "10 % deleted", "30 % deleted", "10 % inserted", "30 % inserted")
PASSAGES = ("passage of 20 %", "passage of 50 %", "with another")
FOUND = (*COPIES, *EDITS, *PASSAGES)
each_language = pytest.mark.parametrize("language", LANGUAGES)


@cache
def judged(language: str, kind: str) -> list[Judged]:
    return judge(pair for length in LENGTHS for pair in edited(pieces(language, length), kind, COUNT))


def right(found: list[Judged]) -> float:
    return float(np.mean([each.said.verdict.relation in each.pair.relations for each in found]))


def inside(text: str) -> float:
    """Return the share of a text's characters that belong to scripts without spaces."""
    letters = [each for each in text if each.isalnum()]
    return sum(each > "\u2fff" for each in letters) / len(letters)


@each_language
def test_there_is_enough_text_that_no_two_pieces_share(language: str) -> None:
    whole = pieces(language, 1_000)
    assert sum(len("".join(each).encode()) for each in whole) > {"zh": 200_000, "ja": 120_000}[language]
    assert len({"".join(each) for each in whole}) == len(whole)


def test_edits_change_as_much_as_they_say() -> None:
    own, foreign = pieces("ja", 1_000)[:2]
    text = "".join(own)
    letters = sum(map(str.isalnum, text))
    other = replaced(0.05)(Random(1), own, foreign)
    assert sum(a != b for a, b in zip(text, other, strict=True)) == round(0.05 * letters)
    assert len(passage(0.2)(Random(1), own, foreign)) == round(0.2 * len(text))
    assert passage(0.2)(Random(1), own, foreign) in text
    longer = inserted(0.3)(Random(1), own, foreign)
    assert len(longer) > len(text)
    assert all(sentence in longer for sentence in own)


@pytest.mark.parametrize("part", [0.02, 0.2, 0.5])
def test_mixed_pieces_hold_their_share_of_letters(part: float) -> None:
    shares = [inside("".join(each)) for each in mixed_pieces(part, 1_000)]
    assert len(shares) > 50
    assert abs(float(np.mean(shares)) - part) < 0.03


@each_language
@pytest.mark.parametrize("kind", FOUND)
def test_copies_edits_and_passages_meet(language: str, kind: str) -> None:
    found = judged(language, kind)
    assert all(each.said.newer.spaceless for each in found)
    assert (met(found) or 0) >= (1.0 if kind in COPIES else 0.9)


@each_language
def test_copies_with_a_tenth_of_their_letters_replaced_mostly_meet(language: str) -> None:
    assert (met(judged(language, "10 % replaced")) or 0) >= 0.85


@each_language
@pytest.mark.parametrize("kind", FOUND)
def test_each_edit_gets_a_relation_that_fits(language: str, kind: str) -> None:
    assert right(judged(language, kind)) >= (1.0 if kind == "other widths" else 0.9)


@each_language
def test_strangers_share_no_key_and_are_unrelated(language: str) -> None:
    found = judged(language, "another")
    assert met(found) == 0
    assert right(found) >= 0.95
    signer = Signer(STANDARD, KEY)
    keys = [STANDARD.keys(signer.sign(document("a", "".join(own))), KEY) for own in pieces(language, 2_000)]
    sets = [{*each.bands, *each.anchors} for each in keys]
    assert sum(not a.isdisjoint(b) for a, b in combinations(sets, 2)) <= 1


@each_language
@pytest.mark.parametrize("kind", [*EDITS[1:], *PASSAGES])
def test_the_distance_of_blocks_is_right(language: str, kind: str) -> None:
    assert float(np.mean([abs(each.error) for each in judged(language, kind)])) <= 0.03


@each_language
@pytest.mark.parametrize("kind", ["lines of 35", "1 % replaced", "5 % replaced", "10 % replaced"])
def test_the_distance_of_edited_letters_counts_each_once_whatever_its_bytes(language: str, kind: str) -> None:
    assert float(np.mean([abs(each.error) for each in judged(language, kind)])) <= 0.015


@each_language
def test_verdicts_about_them_say_that_no_bound_was_measured_on_such_texts(language: str) -> None:
    for kind in ("10 % inserted", "passage of 50 %"):
        assert all("no_word_breaks" in each.said.verdict.low_confidence for each in judged(language, kind))


@each_language
def test_punctuation_matters_only_because_it_leaves_spaces(language: str) -> None:
    pairs = [each.pair for each in judged(language, "no punctuation")]
    assert all(each.said.verdict.relation == "exact_duplicate" for each in judge(map(without_breaks, pairs)))


@pytest.mark.parametrize("kind", ["10 % replaced", "passage of 20 %"])
def test_windows_find_texts_that_are_partly_english_at_least_as_well_as_words(kind: str) -> None:
    for part in (0.1, 0.3):
        pairs = [ending_in_a_spaceless_letter(each) for each in edited(mixed_pieces(part, 1_000), kind, 30)]
        shares = [met(judge(pairs, scheme)) or 0 for scheme in cjk.MIXED_SCHEMES.values()]
        assert shares == sorted(shares)


def test_texts_on_both_sides_of_a_fifth_share_no_key_though_their_symbols_agree() -> None:
    english = "there is nothing in this line but words that somebody wrote before the others came "
    below, above = english * 6 + "語" * 80, english * 6 + "語" * 120
    assert [normalize(text).spaceless for text in (below, above)] == [False, True]
    (pair,) = edited((("".join(below),), (above,)), "another", 1)
    (found,) = judge([pair])
    assert (found.said.keys.bands, found.said.keys.anchors) == (0, 0)
    assert found.said.estimate.resemblance.value == 0
    assert found.said.estimate.order_free > 0.9


@pytest.mark.parametrize(("language", "told"), [("zh", 0.85), ("ja", 0.9)])
async def test_edited_copies_that_arrive_one_by_one_are_told(language: str, told: float) -> None:
    row = await cjk.arriving(language, 1_000)
    assert row["copies"] == len(pieces(language, 1_000))
    assert float(str(row["told"])) >= float(str(row["right"])) >= told
    assert int(str(row["about others"])) <= 3


def test_other_windows_are_tried_without_a_trace() -> None:
    rows = {str(row["bytes"]): row for row in cjk.ld_windows(1, (500,))}
    assert {str(width) for width in cjk.LD_WINDOWS} == rows.keys()
    assert all(KINDS.keys() < row.keys() for row in rows.values())
    with cjk._window_of(12):
        assert alignment.LD_WINDOW_BYTES == 12
    assert alignment.LD_WINDOW_BYTES == 16


def test_the_command_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cjk.main(["--json", "--pairs", "1", "--lengths", "500"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("scheme") == STANDARD.name
    assert len(told) == 7
    assert all(rows for rows in told.values())
    assert cjk.table("met", [{"bytes": 9, "n": 1}, {"bytes": 12, "n": 2}]).splitlines() == [
        *("**met**", "", "| bytes | n |", "| --- | --- |", "| 9 | 1 |", "| 12 | 2 |")
    ]
