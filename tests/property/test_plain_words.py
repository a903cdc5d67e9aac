"""Under the preset `fine`, a text is one text in all the ways in which its language is written."""
# ruff: noqa: RUF001 - texts in other scripts

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import TWINS
from nearstream.streams.fingerprints.plain_words import fixed_forms, plain_words, plain_words_slowly
from nearstream.streams.fingerprints.rewriting import rewritten
from tests.reference.signing import signers
from tests.support.made_up import sign

RULES = TextRules(spelling="plain/5")
TURKISH_CAPITALS = {"i": "\u0130", "\u0131": "I"}
ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىأإآؤئ"
POINTS = "\u05b0\u05b4\u05b8\u05bc\u05c1"


class Language(NamedTuple):
    """A language, and how another person writes it."""

    letters: str  # letters of which words are made up
    other: Callable[[str], str]  # the other writing of a text
    between: str = " "  # what is between two words


def swapped(*pairs: tuple[str, str]) -> Callable[[str], str]:
    """Return a writing that replaces letters."""
    table = str.maketrans({one: other for ones, others in pairs for one, other in zip(ones, others, strict=True)})
    return lambda text: text.translate(table)


def turkish_capitals(text: str) -> str:
    return "".join(TURKISH_CAPITALS.get(letter, letter.upper()) for letter in text)


def greek_capitals(text: str) -> str:
    apart = unicodedata.normalize("NFD", text.upper())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def with_points(text: str) -> str:
    return "".join(
        letter + POINTS[number % len(POINTS)] if letter != " " else " " for number, letter in enumerate(text)
    )


def with_break(text: str) -> str:
    return text.replace("\n", "\u200b")


def with_joiners(text: str) -> str:
    for chillu, letter in zip("ൺൻർൽൾ", "ണനരലള", strict=True):
        text = text.replace(chillu, f"{letter}്\u200d")
    return text


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


LANGUAGES = {
    "Turkish in capitals": Language("abcçdefgğhıijklmnoöprsştuüvyz", turkish_capitals),
    "Azeri in capitals": Language("abcçdeəfgğhxıijkqlmnoöprsştuüvyz", turkish_capitals),
    "Turkish in pieces": Language("abcçğıİiöşüz", decomposed),
    "German in capitals": Language("abcdefghijklmnopqrstuvwxyzäöüß", str.upper),
    "Greek in capitals": Language("αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ", greek_capitals),
    "Greek of old": Language("ἀἁἂἄἅἐἑἔἕἠἡἤἱἴἰὁὀὅὑὕὐὡὥῶῆῖῦᾳῃῳςβγδλμν", greek_capitals),
    "Persian on an Arabic keyboard": Language("ابپتجچخدرزژسشفقکگلمنوهی۱۲۳۴", swapped(("یک", "يك"), ("۱۲۳۴", "١٢٣٤"))),
    "Urdu": Language("ابپتٹجچحخدڈرڑزسشکگلمنوہھی", swapped(("ہکی", "هكي"))),
    "Arabic as it is typed": Language(ARABIC, swapped(("ةىأإآؤئ", "هياااوي"))),
    "Uzbek": Language("abdefghijklmnopqrstuvxyz\u02bb", swapped(("\u02bb", "\u2018"))),
    "Uzbek on a keyboard": Language("abdefghijklmnopqrstuvxyz\u02bb", swapped(("\u02bb", "`"))),
    "Ukrainian": Language("абвгґдеєжзиіїйклмнопрстуфхцчшщьюя\u02bc", swapped(("\u02bc", "'"))),
    "Ukrainian in print": Language("абвгґдеєжзиіїйклмнопрстуфхцчшщьюя\u02bc", swapped(("\u02bc", "\u2019"))),
    "Russian without io": Language("абвгдеёжзийклмнопрстуфхцчшщъыьэюя", swapped(("ё", "е"))),
    "Romanian with cedilla": Language("aăâbcdefghiîjlmnoprsștțuvxz", swapped(("șț", "şţ"))),
    "Romanian in pieces": Language("aăâbcdefghiîjlmnoprsștțuvxz", lambda text: decomposed(swapped(("șț", "şţ"))(text))),
    "Romanian in capitals": Language("aăâbcdefghiîjlmnoprsștțuvxz", lambda text: swapped(("șț", "şţ"))(text).upper()),
    "Hebrew with points": Language("אבגדהוזחטיכךלמםנןסעפףצץקרשת", with_points),
    "Yiddish": Language("אבגדװױײלמ", lambda text: text.replace("װ", "וו").replace("ױ", "וי").replace("ײ", "יי")),
    "Khmer with breaks": Language("កខគឃងចឆជឈញដ", with_break, "\n"),
    "Thai with breaks": Language("กขคงจฉชซญดต", with_break, "\n"),
    "Lao with breaks": Language("ກຂຄງຈສຊຍດຕ", with_break, "\n"),
    "Burmese with breaks": Language("ကခဂဃငစဆဇဈည", with_break, "\n"),
    "Malayalam": Language("കഖഗങചഛജൺൻർൽൾ", with_joiners),
    "Hindi in digits of others": Language("कखगघचछजझ१२३४", swapped(("१२३४", "1234"))),
    "Korean in pieces": Language("가나다라마바사각난달", decomposed),
}  # fmt: skip


def form(text: str) -> str:
    return normalize(rewritten(text, RULES), RULES).data.decode()


def words(letters: str) -> st.SearchStrategy[list[str]]:
    # Words of one letter each are letters set apart, with or without signs behind them.
    return st.lists(st.text(letters, min_size=2, max_size=9), min_size=1, max_size=30)


@pytest.mark.parametrize("name", LANGUAGES)
@given(data=st.data())
def test_a_text_has_one_form_in_both_writings_of_its_language(name: str, data: st.DataObject) -> None:
    language = LANGUAGES[name]
    text = language.letters[0] + language.between.join(data.draw(words(language.letters)))
    other = language.other(text)
    if language.between == "\n":
        text = text.replace("\n", "")
    assert form(text) == form(other)


# Of these both writings differ in case, points of code or punctuation alone.
EXACT = {
    *("Turkish in pieces", "Uzbek", "Uzbek on a keyboard", "Ukrainian", "Ukrainian in print", "Romanian with cedilla"),
    *("Romanian in pieces", "Romanian in capitals", "Khmer with breaks", "Thai with breaks", "Lao with breaks"),
    *("Burmese with breaks", "Korean in pieces"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_both_writings_of_a_language_are_copies_and_equal_only_if_they_look_so(name: str) -> None:
    language = LANGUAGES[name]
    text = language.between.join(language.letters[at:] + language.letters[:at] for at in range(9))
    other, text = language.other(text), text.replace("\n", "")
    assert other != text
    signed = [sign(each, "a", signer) for signer in signers("fine") for each in (text, other)]
    assert len({each.digest[8:] for each in signed}) == 1
    assert len({each.sketch for each in signed}) == 1
    assert (len({each.digest for each in signed}) == 1) == (name in EXACT)


@pytest.mark.parametrize(("letters", "same"), [
    ("abcdefghijklmnopqrstuvwxyzßþŋ", ""), ("αβγδεζηθικλμνξοπρστυφχψω", ""), ("абвгґдеєжзиіїйклмн", ""),
    ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", ""), ("אבגדהוזחטיכךלמםנן", ""), ("กขคงจฉช", ""), ("漢字仮名交文", ""),
])  # fmt: skip
def test_other_letters_are_other_texts(letters: str, same: str) -> None:
    forms = {form(f"{letters[0]}{letter}{letters[-1]}") for letter in letters if letter not in same[1:]}
    assert len(forms) == len(letters) - len(same[1:])


@given(st.lists(st.one_of(words("漢字仮名交文の"), words("abcXYZ019")), min_size=2, max_size=9), st.data())
def test_blanks_beside_letters_of_east_asia_say_nothing(parts: list[list[str]], data: st.DataObject) -> None:
    pieces = ["".join(part) for part in parts]
    blanks = [data.draw(st.sampled_from(("", " ", "\n", "\u3000", " \n "))) for _ in pieces]
    text, other = "漢", "漢"
    for piece, blank in zip(pieces, blanks, strict=True):
        text += "字" + piece
        other += blank + "字" + blank + piece
    assert form(text) == form(other)


# A capital may look like one of another script whose small form does not.
@given(st.text(st.characters(codec="utf-8", exclude_characters="".join(map("".join, TWINS.values()))), max_size=60))
def test_case_changes_no_form(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text)
    assert form(plain.casefold()) == form(plain)


PRINTS = st.characters(min_codepoint=0xA0, max_codepoint=0x2044, exclude_categories=["Cs"])
LATIN = st.characters(min_codepoint=0x09, max_codepoint=0x180)
SIGNS = st.characters(min_codepoint=0x2010, max_codepoint=0x20C1)


@given(st.one_of(st.text(st.one_of(LATIN, SIGNS), max_size=30), st.text(st.one_of(LATIN, SIGNS, PRINTS), max_size=30)))
def test_a_text_of_letters_with_fixed_forms_is_read_as_any_text(text: str) -> None:
    assert plain_words(text, RULES) == (text if text.isascii() else plain_words_slowly(text, RULES))


def test_a_letter_has_its_fixed_form_beside_each_other_one() -> None:
    letters = list(fixed_forms())
    assert len(letters) > 250
    for one in letters:
        for text in (" ".join(f"a{one}{other}i" for other in letters), "".join(f"{one}{other}" for other in letters)):
            assert plain_words(text, RULES) == plain_words_slowly(text, RULES), one


STRANGE = st.text(st.one_of(st.characters(), st.characters(categories=["Cs"]),
                            st.sampled_from("aeo\u0430\u0435\u043e\u03bf\u00ad\u200d\u064b\u0623\u0e01 \n5-")),
                  max_size=60)  # fmt: skip


@given(STRANGE, st.integers(0, 60))
def test_an_invisible_character_changes_nothing(text: str, place: int) -> None:
    assert form(text[:place] + "\u2060" + text[place:]) == form(text + "\u2060")


@given(STRANGE)
def test_ascii_words_around_any_text_remain(text: str) -> None:
    read = form(f"plain words at the start. {text} plain words at the end.")
    assert (read.startswith("plain words at the start"), read.endswith("plain words at the end")) == (True, True)
