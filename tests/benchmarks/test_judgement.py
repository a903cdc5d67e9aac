"""The cases of what a person calls the same, and how answers to them are judged."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.judgement import edited, framed, mails, passages, written
from benchmarks.judgement.__main__ import CASES, main
from benchmarks.judgement.answers import answers, missed, table
from benchmarks.judgement.cases import Case, Material, Stream, Told, couple, each, normal_form, related, silence
from benchmarks.judgement.judges import has_change, has_span, holds_older, honesty, is_at_place, lies_in_older
from benchmarks.quality.corpus import words
from benchmarks.quality.scoring import Figures
from benchmarks.stream.prose import Prose, sources
from nearstream.streams.signing.scheme import DEFAULT_LABEL

TEXTS = sources(None)
ROW: Figures = {
    "case": 1,
    "documents": "pages",
    "name": "pages",
    "person": "nothing",
    "check": "silent",
    "goal": 0.9,
    "share": 0.95,
    "judged": 20,
    "most_false": 0.05,
    "false_events_per_document": 0.01,
    "ms_per_document": 1.0,
}


def material(pairs: int = 5) -> Material:
    return Material(Prose(TEXTS, 1), random.Random(1), pairs)


async def told_of(older: str, newer: str, place: str) -> Told:
    pair = couple(1, older, newer, place)
    return (await answers(Stream([pair.older, pair.newer], [pair]), DEFAULT_LABEL)).told(pair)


def test_the_command_judges_pairs_of_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [str(number) for number in range(2, 19) if number not in (5, 6)]
    assert main(["--pairs", "4", "--json", "--case", *numbers]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sorted({row["case"] for row in rows}) == sorted(map(int, numbers))
    assert all(0 <= row["share"] <= 1 for row in rows)
    assert all(row["judged"] for row in rows if row["check"] != "near-duplicate by definition")
    notices = next(row for row in rows if row["case"] == 2)
    assert notices["judged"] == 300 * 299 / 2


def test_short_excerpts_of_very_long_texts_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pairs", "20", "--json", "--case", "13"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 6
    assert min(row["share"] for row in rows) >= 0.9


def test_the_command_prints_a_row_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pairs", "2", "--case", "7", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + sum(len(case.checks) for case in CASES if case.number == 7)
    assert len({line.count("|") for line in lines}) == 1


def test_a_corpus_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", "/nowhere"]) == 2
    assert "/nowhere" in capsys.readouterr().err


def test_every_case_of_a_person_has_a_generator() -> None:
    assert {case.number for case in CASES} == set(range(1, 19))


@pytest.mark.parametrize("case", [case for case in CASES if case.number != 1], ids=lambda case: case.name)
def test_documents_depend_on_nothing_but_the_seed(case: Case) -> None:
    assert case.make(material(3)) == case.make(material(3))


@pytest.mark.parametrize(
    "make", [edited.signs, partial(written.rewritten, change=partial(written.with_invisible, part=1))]
)
def test_older_documents_arrive_before_newer_ones(make: partial[Stream]) -> None:
    stream = make(material())
    places = {text.id: place for place, text in enumerate(stream.texts)}
    assert all(places[pair.older.id] < places[pair.newer.id] for pair in stream.expected)
    assert len(stream.texts) == 2 * len(stream.expected)


def test_a_sign_is_all_that_changes() -> None:
    for pair in edited.signs(material(10)).expected:
        assert pair.older.text != pair.newer.text
        assert words(pair.older.text) == words(pair.newer.text)


def test_states_of_one_document_have_one_id() -> None:
    stream = edited.signs_of_one_id(material())
    assert all(pair.older.id == pair.newer.id for pair in stream.expected)


def test_a_reply_quotes_the_whole_mail() -> None:
    for pair in mails.replies(material()).expected:
        quoted, whole = words(pair.newer.text), words(pair.older.text)
        assert any(quoted[at : at + len(whole)] == whole for at in range(len(quoted)))
        assert 10 <= len(quoted) - len(whole) <= 60


def test_an_excerpt_is_a_run_of_words_of_its_text() -> None:
    for pair in passages.excerpts(material(3), 50, 1_000).expected:
        assert pair.newer.text in pair.older.text
        assert len(pair.newer.text.split()) == 50


def test_an_amount_differs_in_one_character() -> None:
    for pair in edited.amounts(material()).expected:
        older, newer = pair.older.text, pair.newer.text
        assert sum(one != other for one, other in zip(older, newer, strict=True)) == 1
        assert pair.place in newer


def test_a_syndicated_article_is_in_both_frames() -> None:
    stream = framed.syndicated(material())
    assert all(pair.place in pair.older.text and pair.place in pair.newer.text for pair in stream.expected)
    assert len(stream.texts) == 300 + 2 * len(stream.expected)


def test_a_text_without_its_invisible_characters_is_the_original() -> None:
    text = " ".join(material().words(100))
    changed = written.with_invisible(text, random.Random(1), 1)
    assert changed != text
    assert "".join(letter for letter in changed if letter not in "\u00ad\u200b\u200c\u200d\u2060") == text


def test_letters_of_another_script_look_like_those_of_the_text() -> None:
    assert written.with_twins("map " * 20, random.Random(1)).isascii() is False
    assert len(written.with_twins("shape", random.Random(1))) == 5


async def test_an_insertion_is_found_at_its_place() -> None:
    text, added = material().words(300), Prose(TEXTS, 2).words(100)
    newer = [*text[:150], *added, *text[150:]]
    told = await told_of(" ".join(text), " ".join(newer), " ".join(added))
    assert normal_form(" ".join(added)) == told.forms[1][slice(*told.place)]
    assert told.relation
    assert has_change(told)
    assert not is_at_place(told)  # common text is everywhere else
    elsewhere = replace(told.pair, place=" ".join(text[:20]))
    assert not has_change(replace(told, pair=elsewhere))


async def test_a_long_quote_is_found_at_its_place() -> None:
    quote = material().words(200)
    newer = [*Prose(TEXTS, 3).words(400), *quote]
    told = await told_of(" ".join(quote), " ".join(newer), " ".join(quote))
    assert (told.relation, holds_older(told), lies_in_older(told)) == ("containment", True, False)
    assert is_at_place(told)
    assert has_span(told) is None  # this is about near-duplicates


async def test_nothing_is_said_of_unrelated_texts() -> None:
    prose = Prose(TEXTS, 4)
    told = await told_of(" ".join(prose.words(100)), " ".join(prose.words(100)), "")
    assert (told.relation, told.event) == ("", None)
    assert not has_change(told)


async def test_confidence_is_true_if_as_many_answers_are_right_as_it_says() -> None:
    text = material().words(300)
    right = await told_of(" ".join(text), " ".join(text), "")
    assert right.event is not None
    wrong = replace(right, pair=couple(2, " ".join(text), " ".join(Prose(TEXTS, 5).words(300))))
    nothing = (0.0, 0)
    assert honesty([right] * 9, nothing)[0] == pytest.approx(right.event.confidence)
    assert honesty([right] * 9, nothing)[1] == 9
    assert honesty([right, wrong], nothing)[0] == pytest.approx(1.5 - right.event.confidence)
    assert honesty([], nothing) == (0, 0)


@pytest.mark.parametrize(
    ("share", "events", "is_missed"), [(0.95, 0.01, False), (0.85, 0.01, True), (0.95, 0.06, True)]
)
def test_a_row_below_its_goal_is_marked(share: float, events: float, is_missed: bool) -> None:
    row = ROW | {"share": share, "false_events_per_document": events}
    assert missed(row) is is_missed
    assert ("missed" in table([row])) is is_missed


def test_silence_is_the_share_of_pairs_of_which_nothing_is_said() -> None:
    assert silence(0.98).share([], (0.25, 40)) == (0.75, 40)


def test_answers_that_are_left_out_are_not_counted() -> None:
    pair = couple(1, "a", "b")
    told: Sequence[Told] = [Told(pair, "version", None), Told(pair, "", None)]
    assert each("found", 1.0, related()).share(told, (0.0, 0)) == (0.5, 2)
    assert each("found", 1.0, related("version")).share(told[:1], (0.0, 0)) == (1.0, 1)
    assert each("left out", 1.0, lambda _: None).share(told, (0.0, 0)) == (0.0, 0)
