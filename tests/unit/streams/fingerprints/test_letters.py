"""The table of letters that are read as others."""

import unicodedata

import pytest

from nearstream.streams.fingerprints.letters import LETTERS
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.signing.signer import signs
from tests.support.letter_table import FILE, UNICODE, table

RULES = TextRules(spelling="plain/4")
FROZEN = {  # a text and its form. A change here requires a new scheme.
    "turkish": ("\u0130stanbul'da I\u015f\u0131k", "istanbul da isik"),
    "greek": (
        "\u039f\u03af \u03ac\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03b9",
        "\u03bf\u03b9 \u03b1\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03b9",
    ),
    "persian": ("\u06cc\u06a9 \u06f1\u06f2", "\u064a\u0643 12"),
    "hebrew": ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    "khmer": ("\u1797\u17b6\u200b\u1781\u17d2", "\u1797\u17b6\u1781\u17d2"),
    "chinese": ("\u4f7f\u7528 Python \u7f16\u7a0b\uff0c\u597d", "\u4f7f\u7528python\u7f16\u7a0b \u597d"),
    "quotes": ("\u4f7f\n> \u7528", "\u4f7f \u7528"),
    "german": ("Stra\u00dfe", "strasse"),
}


if unicodedata.unidata_version == UNICODE:  # that of Python 3.11, from whose data the table is made

    def test_the_table_is_what_the_script_makes() -> None:
        assert FILE.read_text(encoding="utf-8") == table()


def test_each_row_comes_once_and_becomes_letters_that_stay() -> None:
    rows = [row.split(":") for packed in LETTERS.values() for row in packed.split()]
    letters = [letter for letter, _ in rows]
    results = {code for _, plain in rows for code in plain.split("+") if code}
    assert len(letters) == len(set(letters))
    assert not results & set(letters)


@pytest.mark.parametrize("name", FROZEN)
def test_the_forms_of_texts_in_letters_of_all_kinds_are_frozen(name: str) -> None:
    text, form = FROZEN[name]
    assert normalize(rewritten(text, RULES), RULES).data.decode() == form


@pytest.mark.parametrize(
    ("line", "other"), [("\u4f60\n> \u597d", "\u4f60\n\u597d"), ("\u4f60 - \u597d", "\u4f60-\u597d")]
)
def test_a_blank_beside_a_sign_still_says_what_the_sign_is(line: str, other: str) -> None:
    assert signs(rewritten(line, RULES)) == signs(line)
    assert normalize(rewritten(line, RULES)).data
    assert signs(rewritten(other, RULES)) == signs(other)
