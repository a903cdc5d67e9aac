"""Measure how often the relation of short texts is right.

    python -m benchmarks.quality.short_texts --corpus DIR [--words N ...] [--scheme S]

Labelled pairs are cut to their first N words and labelled again. Texts of fewer words are left out. Two texts meet if
they share a key of the index. Prints one JSON object. The exit code is 2 when an input cannot be read.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from benchmarks.quality.accuracy import sign
from benchmarks.quality.corpus import (
    DUPLICATES,
    RELATED,
    CorpusError,
    Pair,
    Text,
    check,
    read_pairs,
    read_texts,
    share,
    words,
)
from benchmarks.quality.labels import Measured, label
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, Scheme, preset

WORDS = (12, 20, 30, 40, 60, 100)


@dataclass(frozen=True)
class Said:
    """The label and the verdict of two short texts."""

    label: str  # the relation by exact measurement
    relation: str  # the relation of the verdict
    error: float  # error of the estimated distance over the longer length
    meet: bool  # whether the texts share a key of the index


def cut(
    pairs: Sequence[Pair], texts: Mapping[str, Sequence[str]], count: int
) -> dict[tuple[str, str], tuple[str, str]]:
    """Cut both texts of each pair to their first `count` words.

    Returns:
        The ids of each pair by its two cut texts, so that equal pairs of texts count once.
    """
    found = {}
    for pair in pairs:
        one, other = texts[pair.a], texts[pair.b]
        if min(len(one), len(other)) >= count:
            found[" ".join(one[:count]), " ".join(other[:count])] = pair.a, pair.b
    return found


def judge(short: Mapping[tuple[str, str], tuple[str, str]], scheme: Scheme, key: HashKey) -> list[Said]:
    """Return the verdict and the label of each pair of cut texts."""
    texts = {name: text for both, names in short.items() for name, text in zip(names, both, strict=True)}
    signed = sign((Text(name, text) for name, text in texts.items()), scheme, key)
    measured = {name: Measured.of(text) for name, text in texts.items()}
    rows = []
    for (one, other), (a, b) in short.items():
        numbers = estimate(signed[a], signed[b])
        error = abs(numbers.distance - Levenshtein.distance(one, other)) / max(len(one), len(other))
        relation = relate(signed[a], signed[b], numbers).relation
        meet = not _keys(signed[a], scheme, key).isdisjoint(_keys(signed[b], scheme, key))
        rows.append(Said(label(measured[a], measured[b]), relation, error, meet))
    return rows


def row(said: Sequence[Said]) -> Figures:
    """Return the figures for texts of one length.

    They are the share of right verdicts, precision and recall of related pairs, the recall of duplicates, the mean
    error of the distance, and the shares of related pairs and of duplicates that meet.
    """
    related = [each for each in said if each.label in RELATED]
    predicted = [each for each in said if each.relation in RELATED]
    alike = [each for each in said if each.label in DUPLICATES]
    apart = [each.error for each in related if each.label != "exact_duplicate"]
    both = sum(each.relation in RELATED for each in related)
    return {
        "pairs": len(said),
        "labels": dict(Counter(each.label for each in said).most_common()),
        "right": share(sum(each.label == each.relation for each in said), len(said)),
        "related_precision": share(both, len(predicted)),
        "related_recall": share(both, len(related)),
        "duplicates_recall": share(sum(each.relation in DUPLICATES for each in alike), len(alike)),
        "distance_error": round(fmean(apart), 4) if apart else None,
        "related_meet": share(sum(each.meet for each in related), len(related)),
        "duplicates_meet": share(sum(each.meet for each in alike), len(alike)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument(
        "--words", type=positive, nargs="+", default=WORDS, metavar="N", help="words that are kept of each text"
    )
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    options = parser.parse_args(arguments)
    try:
        pairs, texts = read_pairs(options.corpus), read_texts(options.corpus)
        check(pairs, texts)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    key = HashKey.public()
    scheme = preset(options.scheme, key)
    named = {name: words(texts[name].text) for pair in pairs for name in (pair.a, pair.b)}
    found = {str(count): row(judge(cut(pairs, named, count), scheme, key)) for count in options.words}
    print(json.dumps({"scheme": scheme.name, "by_words": found}, indent=1))
    return 0


def _keys(signature: Signature, scheme: Scheme, key: HashKey) -> set[bytes]:
    keys = scheme.keys(signature, key)
    return {keys.digest, *keys.bands, *keys.anchors}


if __name__ == "__main__":
    sys.exit(main())
