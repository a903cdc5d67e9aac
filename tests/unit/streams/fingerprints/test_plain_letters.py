"""How a text is read whose letters are written in an unusual way."""

import random

import pytest

from benchmarks.judgement.written import with_invisible, with_plain_hamza, with_twins, with_vowels
from benchmarks.texts import ROOT, english
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import plain_letters
from nearstream.streams.fingerprints.rewriting import rewritten

PLAIN = "The quick brown fox jumps over the lazy dog."
ARABIC = (ROOT / "benchmarks/texts/ar-declaration.txt").read_text(encoding="utf-8")
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах."  # noqa: RUF001
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια."  # noqa: RUF001


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("co\u00adop\u200dera\u2060tion", "cooperation"),
        ("\ufeffzero\u200bwidth", "zerowidth"),
        ("by \u200ba word", "by \u200ba word"),
        ("ภาษา\u200bไทย", "ภาษา\u200bไทย"),
        ("葛\U000e0100城", "葛城"),
        ("كِتَابٌ", "كتاب"),
        ("أحمد إلى آخر ٱلكتاب", "احمد الى اخر الكتاب"),
        ("مؤمن وقارئ", "مومن وقاري"),
        (f"Some p\u0430ypal scam. {PLAIN} Россия", f"Some paypal scam. {PLAIN} Россия"),
        ("s\u0435\u0435 \u0430 c\u043ew", "see a cow"),
        ("\u03bfrder n\u03bfw, \u03bf", "order now, o"),
        ("россия и мо\u0063ква", "россия и москва"),  # noqa: RUF001
    ],
)
def test_letters_are_read_as_a_person_reads_them(text: str, plain: str) -> None:
    assert plain_letters(text) == plain


def test_other_texts_are_read_as_they_are() -> None:
    mixed = ["Москва is the capital of Россия", "the letters \u0430, \u0435 and \u043e of Cyrillic"]
    for text in ("", PLAIN, RUSSIAN, GREEK, "naïve café, “curly”", "日本語", *mixed, "lone \ud800", "e\u0301te\u0301"):
        assert plain_letters(text) is text


@pytest.mark.parametrize("seed", range(5))
def test_what_was_made_of_a_text_is_read_as_the_text(seed: int) -> None:
    draw, text = random.Random(seed), english(20_000)[seed * 2_000 :][:2_000]
    assert plain_letters(with_invisible(text, draw, 1)) == text
    assert plain_letters(with_twins(text, draw)) == text
    bare = plain_letters(ARABIC)
    assert plain_letters(with_vowels(ARABIC, draw)) == bare
    assert plain_letters(with_plain_hamza(ARABIC, draw)) == bare


def test_reading_comes_before_masking() -> None:
    rules = TextRules(spelling="plain/4", masks="mail/1")
    assert rewritten("Your c\u00ado\u0501e is 4711", rules) == "your code is 0"
    assert rewritten("co\u00adde", TextRules()) == "co\u00adde"
