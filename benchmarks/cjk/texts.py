"""Pieces of Chinese and Japanese texts, edited in known ways."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from benchmarks.texts import ROOT, english

LANGUAGES = {"zh": ("zh-prose.txt", "zh-tang-poems.txt"), "ja": ("ja-bocchan.txt", "ja-declaration.txt")}

_SENTENCE = re.compile("[^。\uff01\uff1f\n]+[。\uff01\uff1f」』”\u2019\n]*|\n+")
_ENGLISH_SENTENCE = re.compile(r"[^.!?]+[.!?]+\s*")
_PUNCTUATION = re.compile(r"[^\w\s]|\s")
_ENGLISH_CHARACTERS = 600_000
_NEAR = frozenset({"near_duplicate"})
_EDITED = _NEAR | {"version"}
_INSIDE = frozenset({"containment"})

Sentences = tuple[str, ...]
Edit = Callable[[Random, Sentences, Sentences], str]


@dataclass(frozen=True)
class TextPair:
    """A piece of a text with an edited copy.

    `relations` are the verdicts that count as right.
    """

    one: str
    other: str
    relations: frozenset[str]


def replaced(part: float) -> Edit:
    """Return an edit that replaces a share of the characters.

    Only letters and digits are replaced, at least one, by others that occur in the foreign sentences.
    """

    def edit(random: Random, own: Sentences, foreign: Sentences) -> str:
        text, letters = list("".join(own)), [each for each in "".join(foreign) if each.isalnum()]
        positions = [at for at, character in enumerate(text) if character.isalnum()]
        for at in random.sample(positions, max(1, round(part * len(positions)))):
            text[at] = random.choice([each for each in random.choices(letters, k=20) if each != text[at]])
        return "".join(text)

    return edit


def deleted(part: float) -> Edit:
    """Return an edit that deletes a share of the sentences.

    It deletes at least one.
    """

    def edit(random: Random, own: Sentences, _: Sentences) -> str:
        gone = set(random.sample(range(len(own)), max(1, round(part * len(own)))))
        return "".join(sentence for at, sentence in enumerate(own) if at not in gone)

    return edit


def inserted(part: float) -> Edit:
    """Return an edit that inserts foreign sentences between its own.

    Their number is a share of the number of its own, at least one.
    """

    def edit(random: Random, own: Sentences, foreign: Sentences) -> str:
        text = list(own)
        for each in random.sample(foreign, min(len(foreign), max(1, round(part * len(own))))):
            text.insert(random.randrange(len(text) + 1), each)
        return "".join(text)

    return edit


def passage(part: float) -> Edit:
    """Return an edit that keeps one passage, a share of the text."""

    def edit(random: Random, own: Sentences, _: Sentences) -> str:
        text = "".join(own)
        size = round(part * len(text))
        start = random.randrange(len(text) - size + 1)
        return text[start : start + size]

    return edit


def _wide(_: Random, own: Sentences, __: Sentences) -> str:
    return "".join(own).replace("。", "｡\r\n").replace("\uff0c", "、\u3000")


def _wrapped(_: Random, own: Sentences, __: Sentences) -> str:
    text = "".join(own)
    return "\n".join(text[start : start + 35] for start in range(0, len(text), 35))


def _bare(_: Random, own: Sentences, __: Sentences) -> str:
    return _PUNCTUATION.sub("", "".join(own))


def _joined(_: Random, own: Sentences, foreign: Sentences) -> str:
    return "".join((*own, *foreign))


def _another(_: Random, __: Sentences, foreign: Sentences) -> str:
    return "".join(foreign)


KINDS: dict[str, tuple[Edit, frozenset[str]]] = {
    "other widths": (_wide, frozenset({"exact_duplicate"})),
    "lines of 35": (_wrapped, _EDITED),
    "no punctuation": (_bare, _EDITED),
    "1 % replaced": (replaced(0.01), _NEAR),
    "5 % replaced": (replaced(0.05), _EDITED),
    "10 % replaced": (replaced(0.10), _EDITED),
    "10 % deleted": (deleted(0.1), _EDITED),
    "30 % deleted": (deleted(0.3), _EDITED | _INSIDE),
    "10 % inserted": (inserted(0.1), _EDITED),
    "30 % inserted": (inserted(0.3), _EDITED | _INSIDE),
    "passage of 10 %": (passage(0.1), _INSIDE),
    "passage of 20 %": (passage(0.2), _INSIDE),
    "passage of 50 %": (passage(0.5), _INSIDE),
    "with another": (_joined, _INSIDE),
    "another": (_another, frozenset({"unrelated"})),
}


@cache
def pieces(language: str, characters: int) -> tuple[Sentences, ...]:
    """Cut the texts of a language into pieces of whole sentences.

    Each piece has at least `characters` characters, and no sentence of a text is in two pieces.
    """
    return tuple(each for text in _texts(language) for each in _cut(_SENTENCE.findall(text), characters))


@cache
def mixed_pieces(part: float, characters: int) -> tuple[Sentences, ...]:
    """Mix Chinese or Japanese sentences with English ones into pieces.

    `part` is the share of their letters in each piece.
    """
    others = iter(_ENGLISH_SENTENCE.findall(english(_ENGLISH_CHARACTERS)))
    found: list[Sentences] = []
    for language in LANGUAGES:
        own = (each for text in _texts(language) for each in _SENTENCE.findall(text))
        found += _cut(_mixed(own, others, part), characters)
    return tuple(found)


def edited(found: tuple[Sentences, ...], kind: str, count: int) -> list[TextPair]:
    """Return `count` pieces with an edited copy each.

    Foreign sentences in a copy come from the next piece.
    """
    edit, relations = KINDS[kind]
    random = Random(f"{len(found)} {kind}")
    chosen = random.sample(range(len(found)), min(count, len(found)))
    indices = [chosen[number % len(chosen)] for number in range(count)]
    both = [(found[at], found[(at + 1) % len(found)]) for at in indices]
    return [TextPair("".join(own), edit(random, own, foreign), relations) for own, foreign in both]


def without_breaks(pair: TextPair) -> TextPair:
    """Remove punctuation, spaces and line breaks from both texts."""
    one, other = (_PUNCTUATION.sub("", text) for text in (pair.one, pair.other))
    return replace(pair, one=one, other=other)


def ending_in_a_spaceless_letter(pair: TextPair) -> TextPair:
    """Add a word, so that both texts have a spaceless letter."""
    return replace(pair, one=pair.one + " 語", other=pair.other + " 語")


def _texts(language: str) -> Iterator[str]:
    for name in LANGUAGES[language]:
        yield (ROOT / "benchmarks/texts" / name).read_text(encoding="utf-8")


def _cut(sentences: Iterable[str], characters: int) -> Iterator[Sentences]:
    taken: list[str] = []
    for each in sentences:
        taken.append(each)
        if sum(map(len, taken)) >= characters:
            yield tuple(taken)
            taken = []


def _mixed(own: Iterable[str], others: Iterator[str], part: float) -> Iterator[str]:
    """Yield sentences of both kinds in turn and keep the share close.

    Ends when either kind runs out.
    """
    inside = outside = 0
    waiting = next(others, None)
    for each in own:
        size = len(_PUNCTUATION.sub("", each))
        while waiting is not None and inside + size > part * (inside + size + outside):
            yield waiting
            outside += len(_PUNCTUATION.sub("", waiting))
            waiting = next(others, None)
        if waiting is None:
            return
        yield each + " "
        inside += size
