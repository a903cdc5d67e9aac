"""How much of what is new in a document lies in the `new_spans` of its events.

    python -m benchmarks.new_spans --corpus DIR [--pairs N]

New is a word of the newer document, with the space after it, that lies in no run of four words that the older one has
too, wherever. Prints one JSON object; exit code 2 when an input cannot be read.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import sign
from benchmarks.corpus import CorpusError, check, read_pairs, read_texts, share
from benchmarks.measure import positive
from benchmarks.scoring import Figures
from schemas.events import ChangeEvent
from streams.describe import describe
from streams.hashing import HashKey
from streams.matcher import Matcher
from streams.memory_index import MemoryIndex
from streams.normalize import normalize
from streams.scheme import preset

_CHANGED = frozenset({"near_duplicate", "version", "containment"})
_RUN_WORDS = 4


@dataclass(frozen=True)
class Found:
    """Characters of one document: new ones, those told, those that are both."""

    new: int
    told: int
    both: int


def found(newer: str, older: str, spans: Iterable[tuple[int, int]]) -> Found:
    """What spans of the newer normal form hold of what is new in it."""
    new, told = is_new(newer, older), np.zeros(len(newer), np.bool_)
    for start, end in spans:
        told[start:end] = True
    return Found(int(new.sum()), int(told.sum()), int((new & told).sum()))


def is_new(newer: str, older: str) -> NDArray[np.bool_]:
    """For each character of a normal form whether its word is new."""
    words = newer.split(" ")
    known = set(_runs(older.split(" ")))
    old = np.zeros(len(words), np.bool_)
    for place, run in enumerate(_runs(words)):
        if run in known:
            old[place : place + _RUN_WORDS] = True
    new: NDArray[np.bool_] = np.repeat(~old, [len(word) + 1 for word in words])[: len(newer)]
    return new


def summary(rows: Sequence[Found]) -> Figures:
    """Over all documents: the share of new characters that is told, and of told ones that is new."""
    new, told, both = (sum(getattr(row, name) for row in rows) for name in ("new", "told", "both"))
    return {"pairs": len(rows), "new_that_is_told": share(both, new), "told_that_is_new": share(both, told)}


def measure(corpus: Path, most: int) -> Figures:
    """The summary over so many labelled pairs, drawn with a fixed seed.

    Raises:
        CorpusError: The corpus is unreadable.
    """
    pairs, texts = read_pairs(corpus), read_texts(corpus)
    check(pairs, texts)
    changed = [pair for pair in pairs if pair.relation in _CHANGED]
    drawn = random.Random(1).sample(changed, min(most, len(changed)))
    key = HashKey.public()
    scheme = preset("standard", key)
    signed = sign((texts[name] for name in sorted({name for pair in drawn for name in (pair.a, pair.b)})), scheme, key)
    forms = {name: normalize(texts[name].text, scheme.text).data.tobytes().decode() for name in signed}
    matcher, rows = Matcher(MemoryIndex(), scheme, key), []
    for pair in drawn:
        related = matcher.compare(signed[pair.a], signed[pair.b])
        event = None if related.verdict.relation == "unrelated" else describe(related)
        if isinstance(event, ChangeEvent) and not isinstance(event.new_spans, msgspec.UnsetType):
            rows.append(found(forms[event.newer.id], forms[event.older.id], event.new_spans))
    return summary(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when measured, 2 when an input is unreadable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="holds docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument(
        "--pairs", type=positive, default=500, metavar="N", help="near-duplicates, versions, containments"
    )
    options = parser.parse_args(arguments)
    try:
        figures = measure(options.corpus, options.pairs)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps(figures, indent=1))
    return 0


def _runs(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False)


if __name__ == "__main__":
    sys.exit(main())
