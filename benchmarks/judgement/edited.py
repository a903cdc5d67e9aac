"""Cases 7, 8, 11, 12, 17 and 18: texts that were edited."""

from collections.abc import Callable, Sequence

from benchmarks.judgement.cases import (
    NAMES,
    Case,
    Check,
    Expected,
    Material,
    Stream,
    couple,
    each,
    in_turn,
    normal_form,
    related,
)
from benchmarks.judgement.judges import has_change, has_span, honesty, is_changed
from benchmarks.quality.corpus import Text

_SIGNS = (("5", "-5"), ("€ 40", "$ 40"), ("\U0001f7e2", "\U0001f534"), ("a == b", "a != b"), ("+3 %", "-3 %"))


def signs(material: Material) -> Stream:
    """Return texts of 20 to 200 words in which one sign changes."""
    return in_turn((couple(n, *_signs(material, n)) for n in range(material.pairs)), material.draw)


def signs_of_one_id(material: Material) -> Stream:
    """Return states of documents in which one sign changes."""
    pairs = []
    for number in range(material.pairs):
        older, newer = _signs(material, number)
        pairs.append(Expected(Text(f"{number}", older), Text(f"{number}", newer)))
    return in_turn(pairs, material.draw)


def amounts(material: Material) -> Stream:
    """Return texts of 40 to 400 words in which one digit of an amount changes."""

    def pair(number: int) -> Expected:
        words, digits = material.words(material.draw.randint(40, 400)), material.draw.sample("123456789", 2)
        place = material.draw.randrange(10, len(words) - 10)
        older, newer = (f"{digit},240.50" for digit in digits)
        return couple(number, _with(words, place, older), _with(words, place, newer), newer)

    return in_turn(map(pair, range(material.pairs)), material.draw)


def messages(material: Material) -> Stream:
    """Return messages of 10 to 24 words in which one field changes: a number, a host, a date or a name."""

    def pair(number: int) -> Expected:
        words = material.words(material.draw.randint(9, 23))
        place, kind = material.draw.randrange(len(words) + 1), material.draw.randrange(4)
        older, newer = _fields(material, kind)
        return couple(number, _with(words, place, older), _with(words, place, newer))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def reports(material: Material) -> Stream:
    """Return reports of 110 words in which 12 values, all over the text, change."""

    def pair(number: int) -> Expected:
        words = material.words(110)
        places = material.draw.sample(range(110), 12)
        older, newer = list(words), list(words)
        for place in places:
            older[place], newer[place] = str(material.draw.randrange(10_000)), str(material.draw.randrange(10_000))
        return couple(number, " ".join(older), " ".join(newer))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def additions(material: Material) -> Stream:
    """Return texts of 150 to 900 words into which 1 to 12 real words come, in half of them in place of others."""

    def pair(number: int) -> Expected:
        words, more = material.words(material.draw.randint(150, 900)), material.draw.randint(1, 12)
        known = normal_form(" ".join(words))
        added = next(new for new in iter(lambda: material.words(more), None) if normal_form(" ".join(new)) not in known)
        place = material.draw.randrange(10, len(words) - 20)
        rest = place + (len(added) if number % 2 else 0)
        return couple(number, " ".join(words), " ".join((*words[:place], *added, *words[rest:])), " ".join(added))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def edits(material: Material) -> Stream:
    """Return texts of 100 to 600 words, each edited in one of five ways as strongly as it happens."""

    def pair(number: int) -> Expected:
        words = material.words(material.draw.randint(100, 600))
        edited = _EDITS[number % len(_EDITS)](material, words)
        return couple(number, " ".join(words), " ".join(edited))

    return in_turn(map(pair, range(5 * material.pairs)), material.draw)


def _replaced(material: Material, words: Sequence[str]) -> list[str]:
    others, part = material.words(len(words)), material.draw.uniform(0.01, 0.2)
    return [other if material.draw.random() < part else word for word, other in zip(words, others, strict=True)]


def _continued(material: Material, words: Sequence[str]) -> list[str]:
    return [*words, *material.words(material.draw.randint(10, 2 * len(words)))]


def _cut(material: Material, words: Sequence[str]) -> list[str]:
    kept = int(material.draw.uniform(0.3, 0.95) * len(words))
    start = material.draw.randrange(len(words) - kept)
    return list(words[start : start + kept])


def _quoted(material: Material, words: Sequence[str]) -> list[str]:
    part, other = _cut(material, words), material.words(material.draw.randint(50, 400))
    place = material.draw.randrange(len(other))
    return [*other[:place], *part, *other[place:]]


def _revised(material: Material, words: Sequence[str]) -> list[str]:
    """Return words with every few sentences rewritten."""
    revised: list[str] = []
    step, part = 25, material.draw.uniform(0.1, 0.7)
    for start in range(0, len(words), step):
        piece = words[start : start + step]
        revised += material.words(len(piece)) if material.draw.random() < part else piece
    return revised


_EDITS: tuple[Callable[[Material, Sequence[str]], list[str]], ...] = (_replaced, _continued, _cut, _quoted, _revised)


def _signs(material: Material, number: int) -> tuple[str, str]:
    words = material.words(material.draw.randint(20, 200))
    place = material.draw.randrange(len(words) + 1)
    older, newer = (_with(words, place, sign) for sign in _SIGNS[number % len(_SIGNS)])
    return older, newer


def _with(words: Sequence[str], place: int, inserted: str) -> str:
    return " ".join((*words[:place], inserted, *words[place:]))


def _fields(material: Material, kind: int) -> tuple[str, str]:
    """Return two values of one kind of field."""
    one, other = material.draw.sample(range(10, 100_000), 2)
    if kind == 0:
        return str(one), str(other)
    if kind == 1:
        return f"node-{one:05}.rack{one % 97}", f"node-{other:05}.rack{other % 97}"
    if kind == 2:
        return f"2026-03-02 {one // 3600:02}:{one // 60 % 60:02}", f"2026-03-{3 + other % 20:02} 07:{other % 60:02}"
    first, second = material.draw.sample(NAMES, 2)
    return first, second


_KIN = related("near_duplicate", "version")

CASES = (
    Case(7, "one sign changed", "changed", signs, (each("told as a change", 1.0, is_changed),)),
    Case(7, "one sign changed, same id", "changed", signs_of_one_id, (each("told as a change", 1.0, is_changed),)),
    Case(8, "one digit changed", "changed, and where", amounts, (each("a change, with place", 1.0, has_change),)),
    Case(
        11,
        "10 to 24 words, a field changed",
        "near-duplicate",
        messages,
        (each("near-duplicate", 0.9, related("near_duplicate")), each("related", 0.9, _KIN)),
    ),
    Case(12, "110 words, 12 changed", "version or near-duplicate", reports, (each("found", 0.9, _KIN),)),
    Case(17, "1 to 12 new words", "where they are", additions, (each("near-duplicates with a span", 0.95, has_span),)),
    Case(18, "edits of all kinds", "true confidence", edits, (Check("1 - error of the confidence", 0.95, honesty),)),
)
