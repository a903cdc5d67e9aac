"""Cases 14, 15 and 16: one text in other characters, and noise."""

import random
from collections.abc import Callable
from functools import partial

from benchmarks.judgement.cases import Case, Expected, Material, Stream, couple, each, in_turn, related
from benchmarks.texts import ROOT

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060"
# Latin letters, and the Cyrillic ones that look like them.
_TWINS = str.maketrans("aceopxyisj", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458")
_VOWELS = "\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"
_HAMZA = str.maketrans("أإآؤئ", "اااوي")
_ARABIC = ROOT / "benchmarks/texts/ar-declaration.txt"
_ARABIC_WORDS = 40
_OCR = {"l": "1", "o": "0", "e": "c", "h": "b", "i": "l", "s": "5", "t": "f", "u": "v", "n": "r", "a": "o", "c": "e"}

Change = Callable[[str, random.Random], str]


def rewritten(material: Material, change: Change) -> Stream:
    """Return texts of 60 to 600 words, and each of them changed."""

    def pair(number: int) -> Expected:
        text = " ".join(material.words(material.draw.randint(60, 600)))
        return couple(number, text, change(text, material.draw))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def arabic(material: Material, change: Change) -> Stream:
    """Return pieces of 40 words of the Universal Declaration of Human Rights in Arabic, and each of them changed."""
    words = _ARABIC.read_text(encoding="utf-8").split()
    texts = [" ".join(words[at : at + _ARABIC_WORDS]) for at in range(0, len(words) - _ARABIC_WORDS, _ARABIC_WORDS)]
    return in_turn(
        (couple(number, text, change(text, material.draw)) for number, text in enumerate(texts[: material.pairs])),
        material.draw,
    )


def with_invisible(text: str, draw: random.Random, part: float) -> str:
    """Put an invisible character into this share of the words of four letters or more."""

    def word(word: str) -> str:
        if len(word) < 4 or draw.random() >= part:
            return word
        place = draw.randrange(1, len(word) - 1)
        return word[:place] + draw.choice(_INVISIBLE) + word[place:]

    return " ".join(map(word, text.split(" ")))


def with_twins(text: str, draw: random.Random) -> str:
    """Replace letters in all words by letters of another script that look like them."""
    return "".join(letter.translate(_TWINS) if draw.random() < 0.5 else letter for letter in text)


def with_vowels(text: str, draw: random.Random) -> str:
    """Put a vowel mark after most Arabic letters."""
    return "".join(
        letter + draw.choice(_VOWELS) if "\u0621" <= letter <= "\u064a" and draw.random() < 0.7 else letter
        for letter in text
    )


def with_plain_hamza(text: str, _: random.Random) -> str:
    """Write all Arabic letters without their hamza."""
    return text.translate(_HAMZA)


def with_random_words(text: str, draw: random.Random) -> str:
    """Put a word of random letters after every fifth word."""
    words: list[str] = []
    for number, word in enumerate(text.split(" "), 1):
        words.append(word)
        if number % 5 == 0:
            words.append("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 9))))
    return " ".join(words)


def scanned(text: str, draw: random.Random, part: float) -> str:
    """Read this share of the characters as a scanner might, or lose or double them."""

    def read(letter: str) -> str:
        if letter.isspace() or draw.random() >= part:
            return letter
        return draw.choice((_OCR.get(letter, "i"), _OCR.get(letter, "i"), "", letter + letter))

    return "".join(map(read, text))


_SAME = each("the same text", 1.0, related("exact_duplicate", "near_duplicate"))
_TOLD = "the same text"


def _case(number: int, name: str, make: Callable[..., Stream], change: Change) -> Case:
    return Case(number, name, _TOLD, partial(make, change=change), (_SAME,))


def _noisy(name: str, change: Change, goal: float) -> Case:
    return Case(16, name, "related", partial(rewritten, change=change), (each("found", goal, related()),))


CASES = (
    _case(14, "invisible characters in one word of ten", rewritten, partial(with_invisible, part=0.1)),
    _case(14, "invisible characters in all words", rewritten, partial(with_invisible, part=1)),
    _case(15, "letters of another script in all words", rewritten, with_twins),
    _case(15, "Arabic with vowel marks", arabic, with_vowels),
    _case(15, "Arabic with plain hamza", arabic, with_plain_hamza),
    _noisy("a random word every five", with_random_words, 0.9),
    _noisy("5 % of the characters misread", partial(scanned, part=0.05), 0.95),
    _noisy("10 % of the characters misread", partial(scanned, part=0.1), 0.85),
)
