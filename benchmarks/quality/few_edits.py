"""Measure the distance of short texts in which a few words differ, by what the edits are.

    python -m benchmarks.quality.few_edits [--corpus DIR] [--pairs N] [--scheme S]

Texts of 30 to 400 words are woven of real text, and one to five of their words are edited. Prints a JSON object: for
each kind of edit and length, the share of the true distances that are in their band, and the mean estimate over the
mean true distances. The exit code is 2 when an input cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_lowercase, digits

from rapidfuzz.distance import Levenshtein

from benchmarks.quality.corpus import Text, document, share, words
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from benchmarks.stream.prose import Prose, options_and_sources
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, preset
from nearstream.streams.signing.signer import Signer

SIZES = (30, 58, 120, 400)
EDITS = (1, 2, 3, 5)
_SHORTEST = 3  # letters of an edited word
_NUMBERS = (2, 4, 6, 8)  # digits of a number


@dataclass(frozen=True)
class Vocabulary:
    """All words of some texts, and those of each length."""

    words: Sequence[str]
    of_length: Mapping[int, Sequence[str]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Vocabulary":
        """Collect the words of texts, each as often as it comes."""
        found = [word for text in texts for word in words(text)]
        by_length: dict[int, list[str]] = {}
        for word in sorted(set(found)):
            by_length.setdefault(len(word), []).append(word)
        return cls(found, by_length)


def _another_word(draw: Random, word: str, known: Vocabulary) -> tuple[str, str]:
    return word, draw.choice(known.words)


def _of_equal_length(draw: Random, word: str, known: Vocabulary) -> tuple[str, str]:
    return word, draw.choice(known.of_length[len(word)])


def _a_number(draw: Random, _: str, __: Vocabulary) -> tuple[str, str]:
    count = draw.choice(_NUMBERS)
    return "".join(draw.choices(digits, k=count)), "".join(draw.choices(digits, k=count))


def _a_character(draw: Random, word: str, _: Vocabulary) -> tuple[str, str]:
    at = draw.randrange(len(word))
    return word, word[:at] + draw.choice(ascii_lowercase) + word[at + 1 :]


def _inserted(draw: Random, word: str, known: Vocabulary) -> tuple[str, str]:
    return word, f"{word} {draw.choice(known.words)}"


def _any(draw: Random, word: str, known: Vocabulary) -> tuple[str, str]:
    return draw.choice((_another_word, _of_equal_length, _a_number, _a_character, _inserted))(draw, word, known)


KINDS: dict[str, Callable[[Random, str, Vocabulary], tuple[str, str]]] = {
    "another word": _another_word,
    "a word of equal length": _of_equal_length,
    "a number of equal length": _a_number,
    "one character": _a_character,
    "an inserted word": _inserted,
    "any of these": _any,
}


def edited(draw: Random, text: Sequence[str], kind: str, edits: int, known: Vocabulary) -> tuple[str, str]:
    """Return a text, and the text with some words edited."""
    one, other = list(text), list(text)
    places = [at for at in draw.sample(range(len(text)), len(text)) if len(text[at]) >= _SHORTEST]
    for at in places[:edits]:
        one[at], other[at] = KINDS[kind](draw, text[at], known)
    return " ".join(one), " ".join(other)


def row(pairs: Sequence[tuple[str, str]], signer: Signer) -> Figures:
    """Return the figures of pairs, of which those of equal texts do not count."""
    held, told, true = [], 0.0, 0
    for one, other in pairs:
        if one == other:
            continue
        numbers = estimate(*(signer.sign(document(Text(text, text))) for text in (one, other)))
        distance = Levenshtein.distance(one, other)
        held.append(round(numbers.low) <= distance <= max(numbers.changed_characters, round(numbers.high)))
        told, true = told + numbers.distance, true + distance
    return {"in_band": share(sum(held), len(held)), "told": round(told / max(true, 1), 2)}


def measured(texts: Sequence[str], count: int, label: str) -> Figures:
    """Return the figures of each kind of edit and length, and of all lengths."""
    key, known = HashKey.public(), Vocabulary.of(texts)
    signer, prose, found = Signer(preset(label, key), key), Prose(texts, 1), Figures()
    for kind in KINDS:
        draw = Random(kind)
        pairs = {
            size: [
                edited(draw, words(" ".join(prose.words(size))), kind, edits, known)
                for edits in EDITS
                for _ in range(count)
            ]
            for size in SIZES
        }
        by_size = {str(size): row(each, signer) for size, each in pairs.items()}
        found[kind] = {**by_size, "all": row([both for each in pairs.values() for both in each], signer)}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=positive, default=100, metavar="N", help="of each kind, length and count")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    options, texts = options_and_sources(parser, arguments)
    print(json.dumps(measured(texts, options.pairs, options.scheme), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
