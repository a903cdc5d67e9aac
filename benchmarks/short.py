"""How often the relation of short texts is told: labelled pairs, cut to their first words and labelled anew.

    python -m benchmarks.short --corpus DIR [--words N ...] [--scheme S]

Texts of fewer words are left out. To meet is to share a key of the index. Prints one JSON object; exit code 2 when an
input cannot be read.
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

from benchmarks.accuracy import sign
from benchmarks.corpus import DUPLICATES, RELATED, CorpusError, Pair, Text, check, read_pairs, read_texts, share, words
from benchmarks.labels import Measured, label
from benchmarks.measure import positive
from benchmarks.scoring import Figures
from schemas.signature import Signature
from streams.estimate import estimate
from streams.hashing import HashKey
from streams.relate import relate
from streams.scheme import DEFAULT_LABEL, LABELS, Scheme, preset

WORDS = (12, 20, 30, 40, 60, 100)


@dataclass(frozen=True)
class Said:
    """Label and verdict of two short texts, error of their distance over the longer length, whether they meet."""

    label: str
    relation: str
    error: float
    meet: bool


def cut(
    pairs: Sequence[Pair], texts: Mapping[str, Sequence[str]], count: int
) -> dict[tuple[str, str], tuple[str, str]]:
    """Ids of pairs by both their texts, cut to so many words; each two texts once."""
    found = {}
    for pair in pairs:
        one, other = texts[pair.a], texts[pair.b]
        if min(len(one), len(other)) >= count:
            found[" ".join(one[:count]), " ".join(other[:count])] = pair.a, pair.b
    return found


def judge(short: Mapping[tuple[str, str], tuple[str, str]], scheme: Scheme, key: HashKey) -> list[Said]:
    """What is said of each two texts, and what they are."""
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
    """Shares of right verdicts, of related pairs told and told rightly, of those that meet; error of the distance."""
    related = [each for each in said if each.label in RELATED]
    told = [each for each in said if each.relation in RELATED]
    alike = [each for each in said if each.label in DUPLICATES]
    apart = [each.error for each in related if each.label != "exact_duplicate"]
    both = sum(each.relation in RELATED for each in related)
    return {
        "pairs": len(said),
        "labels": dict(Counter(each.label for each in said).most_common()),
        "right": share(sum(each.label == each.relation for each in said), len(said)),
        "related_precision": share(both, len(told)),
        "related_recall": share(both, len(related)),
        "duplicates_recall": share(sum(each.relation in DUPLICATES for each in alike), len(alike)),
        "distance_error": round(fmean(apart), 4) if apart else None,
        "related_meet": share(sum(each.meet for each in related), len(related)),
        "duplicates_meet": share(sum(each.meet for each in alike), len(alike)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when measured, 2 when an input is unreadable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="holds docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--words", type=positive, nargs="+", default=WORDS, metavar="N", help="words of a text")
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
