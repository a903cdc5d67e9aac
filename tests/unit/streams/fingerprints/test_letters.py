"""Letters that are read as others."""

from hashlib import blake2b
from random import Random

import pytest

from benchmarks.judgement.written import with_invisible, with_plain_hamza, with_twins, with_vowels
from benchmarks.texts import ROOT, english
from nearstream.streams.fingerprints.letters import letters
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.signing.signer import signs

RULES = TextRules(spelling="plain/5")
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


def test_what_letters_become_is_frozen_and_stays() -> None:
    rows = letters()
    plain = "".join(f"{code:x}:{rows[code]!a} " for code in sorted(rows))
    assert blake2b(plain.encode(), digest_size=8).hexdigest() == "37086ddc63fd4665"
    assert not {ord(each) for become in rows.values() for each in become} & rows.keys()


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


PLAIN = "The quick brown fox jumps over the lazy dog."


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("co\u00adop\u200dera\u2060tion", "cooperation"),
        ("\ufeffzero\u200bwidth", "zerowidth"),
        ("葛\U000e0100城", "葛城"),
        ("كِتَابٌ", "كتاب"),
        ("أحمد إلى آخر ٱلكتاب", "احمد الي اخر الكتاب"),
        ("مؤمن وقارئ", "مومن وقاري"),
        (f"Some p\u0430ypal scam. {PLAIN} Россия", f"Some paypal scam. {PLAIN} Россия"),
        ("s\u0435\u0435 \u0430 c\u043ew", "see a cow"),
        ("\u03bfrder n\u03bfw, \u03bf", "order now, o"),
        ("россия и мо\u0063ква", "россия и москва"),  # noqa: RUF001
        ("Москва is the capital of Россия", "Москва is the capital of Россия"),
        ("the letters \u0430, \u0435 and \u043e of Cyrillic", "the letters \u0430, \u0435 and \u043e of Cyrillic"),
        ("lone \ud800", "lone  "),
    ],
)
def test_letters_are_read_as_a_person_reads_them(text: str, plain: str) -> None:
    assert rewritten(text, RULES) == plain


@pytest.mark.parametrize("seed", range(5))
def test_what_was_made_of_a_text_is_read_as_the_text(seed: int) -> None:
    draw, text = Random(seed), english(20_000)[seed * 2_000 :][:2_000]
    assert rewritten(with_invisible(text, draw, 1), RULES) == rewritten(text, RULES)
    assert rewritten(with_twins(text, draw), RULES) == rewritten(text, RULES)
    arabic = (ROOT / "benchmarks/texts/ar-declaration.txt").read_text(encoding="utf-8")
    assert rewritten(with_vowels(arabic, draw), RULES) == rewritten(arabic, RULES)
    assert rewritten(with_plain_hamza(arabic, draw), RULES) == rewritten(arabic, RULES)
