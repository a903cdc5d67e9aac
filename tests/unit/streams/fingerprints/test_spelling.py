"""Other spellings of a text have its form, and other words do not."""

import unicodedata
from collections.abc import Callable
from random import Random

import pytest

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.sent_places import sent_places
from nearstream.streams.fingerprints.spelling import as_meant

RULES = TextRules(spelling="plain/5")
GERMAN = (
    "Für Gäste der großen Höhle müssen wir neue Öfen aufstellen und den Eingang größer machen."
    " Die Behörde prüft das Geländer, und aus der Quelle fließt Wasser."
)
DANISH = "På øen går både køer og får, og når vejret er dårligt, søger dyrene ly bag væggen."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"
VIETNAMESE = "Chúng tôi đã đến thăm một ngôi làng nhỏ"
RUSSIAN = "Река вышла из берегов, и город закрыл нижнюю дорогу до тех пор, пока вода не опустится"
YO = "Ёлка ещё стоит «у берега», и её объём — ровно такой, о каком вчера говорил инженер на собрании"  # noqa: RUF001
UKRAINIAN = "Річка вийшла з берегів, та місто закрило нижню дорогу доти, доки вода не спаде, її рівень ще високий"
GREEK = "Το ποτάμι βγήκε από την κοίτη του, και η πόλη έκλεισε τον κάτω δρόμο"  # noqa: RUF001
CHARSETS = ("cp1252", "latin-1", "cp1250", "cp1251", "koi8-r")
ENGLISH = "the office will close its north gate on Tuesday"
_TWO = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "ß": "ss",
        "Ö": "Oe",
        "å": "aa",
        "ø": "oe",
        "æ": "ae",
    }
)
_BARE = str.maketrans("đĐøØ", "dDoO", "")


def form(text: str) -> str:
    return normalize(rewritten(text, RULES), RULES).data.decode()


def two_letters(text: str) -> str:
    return text.translate(_TWO).replace("På", "Paa")


def without_marks(text: str) -> str:
    bare = text.translate(_BARE).replace("ß", "ss").replace("æ", "ae")
    return "".join(each for each in unicodedata.normalize("NFD", bare) if not unicodedata.combining(each))


def misread(*charsets: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        for charset in charsets:
            text = "".join(bytes([byte]).decode(charset, "ignore") or chr(byte) for byte in text.encode())
        return text

    return read


def read_as(written: str, read: str) -> Callable[[str], str]:
    return lambda text: text.encode(written).decode(read)


def in_parentheses(text: str) -> str:
    return "".join(chr(0x249C + ord(each) - 97) if each.isalpha() else each for each in text.lower())


def styled(first: int) -> Callable[[str], str]:
    return lambda text: "".join(chr(first + ord(each) - 65) if each.isalpha() else each for each in text.upper())


def marked(mark: str) -> Callable[[str], str]:
    return lambda text: "".join(each + mark for each in text)


def set_apart(sign: str, between: str = "   ") -> Callable[[str], str]:
    return lambda text: between.join(sign.join(word) for word in text.split())


@pytest.mark.parametrize(
    ("text", "spell"),
    [
        *((GERMAN, each) for each in (two_letters, without_marks)),
        *((DANISH, each) for each in (two_letters, without_marks)),
        *((each, without_marks) for each in (CZECH, VIETNAMESE)),
        *((each, misread(charset)) for each in (GERMAN, CZECH, VIETNAMESE, RUSSIAN, GREEK) for charset in CHARSETS),
        *((each, misread("cp1252", "cp1252")) for each in (GERMAN, RUSSIAN)),
        (RUSSIAN, misread("cp1251", "cp1251")),
        *((RUSSIAN, read_as(*each)) for each in (("cp1251", "koi8-r"), ("koi8-r", "cp1251"))),
        *((each, read_as("cp1251", read)) for each in (YO, UKRAINIAN) for read in ("koi8-r", "latin-1")),
        *((each, read_as("koi8-r", "cp1251")) for each in (YO.translate(dict.fromkeys(map(ord, "«»—"))), RUSSIAN)),
        *((RUSSIAN, read_as(each, "cp1252")) for each in ("cp1251", "koi8-r")),
        *((each, str.upper) for each in (GERMAN, DANISH)),
        *((ENGLISH, styled(each)) for each in (0x1F150, 0x1F170, 0x1F1E6, 0x24B6, 0x1D400, 0x1F110)),
        (ENGLISH, in_parentheses),
        *(
            (each, marked(mark))
            for each in (ENGLISH, RUSSIAN)
            for mark in ("\u0336", "\u0332", "\u0323", "\u0489", "\u20dd")
        ),
        (ENGLISH, marked("\u0301")),
        *((each, set_apart(" ")) for each in (ENGLISH, RUSSIAN)),
        *((ENGLISH, set_apart(each, " ")) for each in ".-_*|/~"),
    ],
)
def test_another_spelling_of_a_text_has_its_form(text: str, spell: Callable[[str], str]) -> None:
    assert spell(text) != text
    assert form(spell(text)) == form(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sold 1,204,550 of 3'000'000 and 1 200", "sold 1204550 of 3000000 and 1 200"),
        ("sold 1 204 550 of 3\u202f000\u202f000 and 1\u2019204", "sold 1.204.550 of 3000000 and 1204"),
        ("12,34,567 rupees, 12,500 of 3,400.25", "1234567 rupees, 12500 of 3400.25"),
        ("ᴛʜᴇ \u1d0f\ua730\ua730\u026a\u1d04\u1d07", "the office"),
        ("an acc0unt, p4ssw0rd, fr33dom, unl1ke v1agra", "an account, password, freedom, unlike viagra"),
        ("\u0585ffi\u0581e \u13dfl\u0585se, \u0251ccount", "offige Close, account"),
        ("&amp;lt;p class=&amp;quot;a&amp;quot;&amp;gt;Tom &lt;b>and &lt;/b&gt;Ann", "Tom and Ann"),
        ("taza ma`no a`lo a`a a`a", "taza ma\u02bbno a\u02bblo a\u02bba a\u02bba"),
        ("vector<int> &lt; 3", "vector<int> < 3"),
        ("&lt;p&gt;Tom &amp;amp; Ann said &amp;quot;no&amp;quot;.&lt;/p&gt;", 'Tom & Ann said "no".'),
    ],
)
def test_escapes_groups_and_letters_that_look_alike_are_read(one: str, other: str) -> None:
    assert form(one) == form(other)


# Words of other meanings, each in a text of its language.
DIFFERENT = """poet pot|does dos|blue blu|shoe sho|due du|aerial arial|3.141 3141|1.204 1204|0,123 0123|12:30 1230
12.03.2024 12032024|1.2.3 123|192.168.100.200 192168100200
1.234.567.8 12345678|030 123 456 030123456|1 800 555 1234 18005551234|555 123 4567 5551234567
1 510 486-8634 1510486-8634|e.g. eg|a,b ab|a b ab|AT&T ATT
&c amp|caf\u00e9\u201d caf|Ét\u00e9\u2019 Et|Ukrïne Ukrine2|i18n ien|mp4a mpaa|a3f9c0de affcode
ab1cd3f4g abicdefag|sha256sum shasum|b0a boa|covid19 covidig|Рівне гвне|й ы|ї іи|\u304c \u304b"""


@pytest.mark.parametrize("pair", DIFFERENT.replace("\n", "|").split("|"))
def test_other_words_keep_another_form(pair: str) -> None:
    *left, right = pair.split(" ")
    assert form(f"{ENGLISH} {' '.join(left)} {ENGLISH}") != form(f"{ENGLISH} {right} {ENGLISH}")


@pytest.mark.parametrize("pair", ["neue neu", "Quelle Quele", "bauen baun", "Feuer Feur"])
def test_a_german_text_keeps_the_e_that_is_a_letter_of_its_own(pair: str) -> None:
    one, other = pair.split()
    assert form(f"{GERMAN} {one}") != form(f"{GERMAN} {other}")


@pytest.mark.parametrize(
    "text",
    ["Невірне геометричне значення.", "Бүртгэгдсэн feeds байхгүй байна.", "Бузныг нӕ сайтӕй нын кӕй пайда кӕныс!"],
)
def test_a_text_in_another_language_of_cyrillic_is_no_misread_russian(text: str) -> None:
    assert as_meant(text) == text
    assert as_meant(text.upper()) == text.upper()


def test_places_in_a_text_with_umlauts_are_those_of_its_words() -> None:
    words = [Random(number).choice(GERMAN.split()) for number in range(400)]
    text = " ".join([*words[:200], "Zwischenruf", *words[200:], "und", "und"])
    plain = form(two_letters(text))
    at = plain.index("zwischenruf")
    (start, end), *_ = sent_places(two_letters(text), [(at, at + len("zwischenruf"))], RULES)
    assert two_letters(text)[start:end] == "Zwischenruf"
