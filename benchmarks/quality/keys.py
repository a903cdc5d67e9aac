"""Measure how often the hash key decides whether two short texts are copies.

    python -m benchmarks.quality.keys [--scheme S ...] [--keys N]

Prints one JSON object for each scheme: the share of decisions that are not those of most keys, the mean distance over
the longer text, and the bytes of a signature. Uses no network and no service.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import mean

from rapidfuzz.distance import Levenshtein

from benchmarks.quality.corpus import share
from benchmarks.speed.measure import positive
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.relations.verdict import is_copy, rule_of_texts
from nearstream.streams.signing.scheme import LABELS, preset
from nearstream.streams.signing.signer import Signer

_SEED = 1
_SEEN = datetime(2026, 1, 1, tzinfo=UTC)
_TOWNS = ("Springfield", "Riverside", "Oakdale", "Fairview", "Lakewood", "Ashland", "Georgetown", "Bristol", "Salem")
_WARNING = (
    "Severe thunderstorm warning for {} County until {}:{:02d} pm. Gusts up to {} km/h and hail of {} cm "
    "are possible. Stay indoors and keep away from trees. Move cars into garages and bring animals "
    "inside. Do not use open fires or drive through water on roads. Listen to local radio for further "
    "news and help neighbours who live alone."
)
_LETTERS = "abcdefghijklmnoprstuvwy"

Pair = tuple[str, str, str]


def _pairs(draw: random.Random) -> Iterator[Pair]:
    """Yield the kind of each pair, and both texts."""
    for _ in range(100):
        words = draw.randint(24, 54)
        yield "template", _warning(draw, words), _warning(draw, words)
    vocabulary = ["".join(draw.choices(_LETTERS, k=draw.randint(3, 9))) for _ in range(900)]
    for _ in range(200):
        older = draw.choices(vocabulary, k=draw.randint(20, 60))
        newer = list(older)
        for _ in range(draw.randint(1, max(1, len(older) // 8))):
            newer[draw.randrange(len(newer))] = draw.choice(vocabulary)
        yield "replaced words", " ".join(newer), " ".join(older)


def _warning(draw: random.Random, words: int) -> str:
    numbers = draw.randrange(1, 12), draw.randrange(60), draw.randrange(60, 130), draw.randrange(1, 9)
    return " ".join(_WARNING.format(draw.choice(_TOWNS), *numbers).split()[:words])


def measure(label: str, pairs: Sequence[Pair], keys: Sequence[HashKey]) -> dict[str, object]:
    """Return the figures of one scheme."""
    signers = [Signer(preset(label, key), key) for key in keys]
    others, ratios, sizes = defaultdict[str, int](int), defaultdict[str, list[float]](list), []
    for kind, newer, older in pairs:
        both = [tuple(_signed(signer, text) for text in (newer, older)) for signer in signers]
        numbers = [estimate(*pair) for pair in both]
        copies = sum(is_copy(rule_of_texts(each)) for each in numbers)
        others[kind] += min(copies, len(numbers) - copies)
        ratios[kind] += [each.distance_ratio for each in numbers]
        sizes += [len(one.sketch) + len(one.ld) + len(one.gaps) + len(one.anchors) for pair in both for one in pair]
    return {
        "scheme": label,
        "not as most keys": {kind: share(count, len(ratios[kind])) for kind, count in others.items()},
        "distance over the longer text": {kind: round(mean(found), 3) for kind, found in ratios.items()},
        "bytes": round(mean(sizes)),
    }


def _signed(signer: Signer, text: str) -> Signature:
    return signer.sign(Document(id=text[:64], text=text, observed_at=_SEEN))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheme", nargs="+", choices=LABELS, default=["letters", "fine", "mail"])
    parser.add_argument("--keys", type=positive, default=10)
    options = parser.parse_args(arguments)
    keys = [HashKey.from_secret(bytes([number])) for number in range(options.keys)]
    pairs = list(_pairs(random.Random(_SEED)))
    true = defaultdict[str, list[float]](list)
    for kind, newer, older in pairs:
        true[kind].append(Levenshtein.distance(newer, older) / max(len(newer), len(older)))
    print(
        json.dumps({"true distance over the longer text": {kind: round(mean(each), 3) for kind, each in true.items()}})
    )
    for label in options.scheme:
        print(json.dumps(measure(label, pairs, keys)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
