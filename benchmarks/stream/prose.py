"""Paragraphs made of real text, which never repeat."""

import argparse
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.quality.corpus import CorpusError, read_texts
from benchmarks.texts import originals

_SHORTEST, _LONGEST = 20, 200  # words of a paragraph
_FRAGMENT = 4  # most words of a fragment, which is less than a shingle


class Prose:
    """Real paragraphs, each used once, then paragraphs woven of real fragments.

    A fragment has two to four words that follow each other in a real text. Two woven paragraphs share no run of five
    words, except by chance.
    """

    def __init__(self, texts: Iterable[str], seed: int) -> None:
        """Split the texts into paragraphs.

        Raises:
            ValueError: The texts have no paragraph of usual length.
        """
        self._draw = random.Random(f"prose {seed}")
        paragraphs = {" ".join(part.split()): None for text in texts for part in re.split(r"\n\s*\n", text)}
        split = [words for words in map(str.split, paragraphs) if _SHORTEST <= len(words) <= _LONGEST]
        if not split:
            raise ValueError(f"no paragraph of {_SHORTEST} to {_LONGEST} words")
        self._words = [word for words in split for word in words]
        self._lengths = [len(words) for words in split]
        self._unused = split
        self._draw.shuffle(self._unused)

    def paragraph(self) -> list[str]:
        """Return the words of a new paragraph."""
        return self._unused.pop() if self._unused else self.words(self._draw.choice(self._lengths))

    def words(self, count: int) -> list[str]:
        """Return woven words."""
        woven: list[str] = []
        while len(woven) < count:
            start = self._draw.randrange(len(self._words) - _FRAGMENT)
            woven += self._words[start : start + self._draw.randint(2, _FRAGMENT)]
        return woven[:count]

    def paragraphs(self, words: int) -> list[list[str]]:
        """Return new paragraphs of at least that many words together."""
        found: list[list[str]] = []
        while sum(map(len, found)) < words:
            found.append(self.paragraph())
        return found


def joined(paragraphs: Iterable[Sequence[str]]) -> str:
    """Join words to paragraphs, and paragraphs to a text."""
    return "\n\n".join(" ".join(words) for words in paragraphs)


def options_and_sources(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> tuple[argparse.Namespace, list[str]]:
    """Parse options and read the texts of the corpus that they name, and exit with 2 if it is unreadable."""
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="directory with docs.jsonl.gz, default: the examples"
    )
    options = parser.parse_args(arguments)
    try:
        return options, sources(options.corpus)
    except CorpusError as error:
        parser.exit(2, f"{error}\n")


def sources(corpus: Path | None) -> list[str]:
    """Return the texts of a corpus, by default those of the examples, of each history only one state.

    Raises:
        CorpusError: A file of the corpus is missing or invalid.
    """
    if corpus is None:
        return originals()
    by_history = {text.id.partition("@")[0]: text.text for text in read_texts(corpus).values()}
    return list(by_history.values())
