"""Measure how well the `new_spans` of events cover the new text.

    python -m benchmarks.quality.new_spans --corpus DIR [--pairs N]

A word of the newer document, with the space after it, counts as new if none of its runs of four words occurs anywhere
in the older document. Prints one JSON object. The exit code is 2 when an input cannot be read.
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

from benchmarks.quality.accuracy import sign
from benchmarks.quality.corpus import CorpusError, check, read_pairs, read_texts, share
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from nearstream.schemas.verdicts.events import ChangeEvent
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.describe import describe
from nearstream.streams.signing.scheme import preset
from nearstream.streams.store.local import local_store

_CHANGED = frozenset({"near_duplicate", "version", "containment"})
_RUN_WORDS = 4


@dataclass(frozen=True)
class Found:
    """Counts of characters of one document.

    Attributes:
        new: Characters of new words.
        told: Characters in the `new_spans` of the event.
        both: Characters of new words that are also in `new_spans`.
    """

    new: int
    told: int
    both: int


def found(newer: str, older: str, spans: Iterable[tuple[int, int]]) -> Found:
    """Compare spans of the newer normal form with its new words."""
    new, reported = is_new(newer, older), np.zeros(len(newer), np.bool_)
    for start, end in spans:
        reported[start:end] = True
    return Found(int(new.sum()), int(reported.sum()), int((new & reported).sum()))


def is_new(newer: str, older: str) -> NDArray[np.bool_]:
    """Return for each character whether its word is new."""
    words = newer.split(" ")
    known = set(_runs(older.split(" ")))
    old = np.zeros(len(words), np.bool_)
    for position, run in enumerate(_runs(words)):
        if run in known:
            old[position : position + _RUN_WORDS] = True
    new: NDArray[np.bool_] = np.repeat(~old, [len(word) + 1 for word in words])[: len(newer)]
    return new


def summary(rows: Sequence[Found]) -> Figures:
    """Return the recall and the precision of `new_spans` over all documents.

    `new_that_is_told` is the share of new characters that are in spans, `told_that_is_new` the share of characters in
    spans that are new.
    """
    new, reported, both = (sum(getattr(row, name) for row in rows) for name in ("new", "told", "both"))
    return {"pairs": len(rows), "new_that_is_told": share(both, new), "told_that_is_new": share(both, reported)}


def measure(corpus: Path, most: int) -> Figures:
    """Return the summary over up to `most` labelled pairs.

    The pairs are drawn with a fixed seed.

    Raises:
        CorpusError: The corpus cannot be read.
    """
    pairs, texts = read_pairs(corpus), read_texts(corpus)
    check(pairs, texts)
    changed = [pair for pair in pairs if pair.relation in _CHANGED]
    drawn = random.Random(1).sample(changed, min(most, len(changed)))
    key = HashKey.public()
    scheme = preset("standard", key)
    signed = sign((texts[name] for name in sorted({name for pair in drawn for name in (pair.a, pair.b)})), scheme, key)
    forms = {name: normalize(texts[name].text, scheme.text).data.tobytes().decode() for name in signed}
    matcher, rows = Matcher(local_store(), scheme, key), []
    for pair in drawn:
        related = matcher.compare(signed[pair.a], signed[pair.b])
        event = None if related.verdict.relation == "unrelated" else describe(related)
        if isinstance(event, ChangeEvent) and not isinstance(event.new_spans, msgspec.UnsetType):
            rows.append(found(forms[event.newer.id], forms[event.older.id], event.new_spans))
    return summary(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument(
        "--pairs", type=positive, default=500, metavar="N", help="number of near-duplicates, versions and containments"
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
