"""Normal forms of listed texts."""

import random
import unicodedata

import pytest

from nearstream.streams.fingerprints.normalize import nfkc, normalize
from nearstream.streams.fingerprints.unicode_tables import COMPLEX, NEWER, bmp_table


def form(text: str) -> str:
    return normalize(text).data.decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u201c\uff26\uff35\uff2c\uff2c\u201d \u21161: e\u0301te\u0301 naïve_\ufb01le", "full no1 été naïve file"),
        ("½ x² Ⅷ", "1 2 x2 viii"),
        ("can\u00adnot", "can not"),
        ("\u0301x", "x"),
        ("\ud800x", "x"),
        ("\ud83c\udf89a\udc00", "a"),
        ("ΟΔΟΣ οδος", "οδοσ οδος"),
        ("İSTANBUL Straße", "İstanbul straße"),
        ("  two\t\n words  ", "two words"),
        (" . ", ""),
        ("한글 ᄒ\u1161\u11ab", "한글 한"),
        ("\U0001d400\U0001d7d9", "a1"),
        ("e" + "\u0301" * 31 + "x", "é" + "\u0301" * 29 + " x"),
    ],
)
def test_a_text_has_its_listed_normal_form(text: str, expected: str) -> None:
    assert form(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\uff28\uff25\uff2c\uff2c\uff2f\u3000\uff57\uff4f\uff52\uff4c\uff44", "hello world"),
        ("\u00abhello\u00bb \u2014 \u2018World\u2019!", "hello world"),
        ("Hello\u00a0,\n WORLD…", "hello world"),
        *((unicodedata.normalize("NFD", text), text) for text in ("Ärger über Öl", "가나다 라마", "が ぎ", "क़ ख़")),
    ],
)
def test_width_case_quotes_spacing_and_composition_do_not_matter(one: str, other: str) -> None:
    assert form(one) == form(other) != ""


def test_the_tables_of_code_points_are_those_of_unicode_14() -> None:
    newer = {code for first, last in NEWER for code in range(first, last + 1)}
    bounds = [bound for first, last in NEWER for bound in (first, last + 1)]
    assert bounds == sorted(set(bounds))
    assert len(newer) == 28_111
    # What is not newer is as much as Unicode 14 has assigned, private use, surrogates and controls included.
    assert sum(unicodedata.category(chr(code)) != "Cn" for code in range(0x110000) if code not in newer) == 284_278
    assert int((bmp_table().units == COMPLEX).sum()) == 2768


def test_newer_code_points_are_spaces_on_every_python() -> None:
    newer = [code for first, last in NEWER for code in range(first, last + 1)]
    assert normalize("".join(map(chr, newer))).data == b""
    assert form("\u0301".join(f"a{chr(code)}" for code in newer)) == " ".join("a" * len(newer))


def test_mark_runs_are_counted_anew_after_any_other_character() -> None:
    text = "a" + "\u0323" * 30 + "b" + "\u0323" * 30
    assert normalize(text).characters == 62 - 2  # ạ and ḅ compose


@pytest.mark.parametrize(
    ("text", "spaceless"),
    [
        ("abcd日", True),
        ("abcde日", False),
        ("ภาษาไทย", True),
        ("한글은 띄어쓴다", False),
        ("", False),
        ("e\u0301", False),
    ],
)
def test_a_fifth_of_its_code_points_makes_a_text_spaceless(text: str, spaceless: bool) -> None:
    assert normalize(text).spaceless is spaceless


def test_pieces_have_the_form_of_the_whole() -> None:
    # Marks of several classes, jamo, voiced marks in half width, vowels in two parts, and what NFKC makes long.
    alphabet = "a e\u0300\u0316\u0345\u1100\u1161\u11a8\uac00\ufb01\ufdfa\uff76\uff9e\uffbe\u09c7\u09be"
    alphabet += "\u3099\u304b\u0f71\u0f72"
    drawn = random.Random(1)
    for _ in range(2_000):
        text = "".join(drawn.choices(alphabet, k=drawn.randrange(1, 40)))
        assert nfkc(text, drawn.randrange(1, 12)) == unicodedata.normalize("NFKC", text)
