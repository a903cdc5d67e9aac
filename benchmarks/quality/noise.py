"""Measure how well copies with replaced characters are found and judged.

    python -m benchmarks.quality.noise --corpus DIR [--scheme S] [--copies N]

Indexes all documents, then looks up noisy copies of some of them. Licence texts are not copied. Prints one JSON object.
The exit code is 2 when an input cannot be read. Uses no network and no service.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import mean, median

from rapidfuzz.distance import Levenshtein

from benchmarks.entering import enter
from benchmarks.quality.corpus import CorpusError, Text, document, read_texts, share
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.quality.strata import FAMILIES, LONG_CHARACTERS
from benchmarks.speed.measure import positive
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.matching.counterpart import Newcomer
from nearstream.streams.matching.looking_up import look_up
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import LABELS, Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store

SHARES = (0.05, 0.10, 0.15, 0.20, 0.30)
SIZES = ((300, 1_000), (1_000, 2_000), (2_000, 5_000), (5_000, 20_000))  # characters
_LETTERS = "abcdefghijklmnopqrstuvwxyz "


@dataclass(frozen=True)
class Copy:
    """The result for one noisy copy.

    Attributes:
        met: Whether its original is among those that are compared.
        related: Whether it met its original, and both are judged as related.
        error: Error of the estimated distance over the longer length.
        strangers: Number of other documents that are compared.
    """

    met: bool
    related: bool
    error: float
    strangers: int


def noisy(text: str, part: float, seed: int) -> str:
    """Replace about this share of the characters by random letters or spaces."""
    draw = random.Random(seed)
    return "".join(draw.choice(_LETTERS) if draw.random() < part else character for character in text)


class Originals:
    """An index of documents with their signatures in stored form."""

    def __init__(self, texts: Sequence[Text], scheme: Scheme, key: HashKey) -> None:
        """Sign and enter the texts in this order."""
        self.key, self.scheme, self.signer = key, scheme, Signer(scheme, key)
        self.store = local_store(IndexLimits(retention_seconds=0))
        began = time.process_time()
        signed = [self.signer.sign(document(text, BEGIN + timedelta(seconds=at))) for at, text in enumerate(texts)]
        self.seconds = time.process_time() - began
        self.whole = {each.id: each for each in signed if each.n_bytes}
        self.kept = {name: scheme.kept(each) for name, each in self.whole.items()}
        self.keys = {name: scheme.keys(each, key) for name, each in self.whole.items()}
        asyncio.run(enter(self.store, scheme, key, list(self.whole.values())))

    def judge(self, original: Text, text: str) -> Copy:
        """Look up a copy and compare it with its original."""
        signature = self.signer.sign(Document(id=f"{original.id} noisy", text=text, observed_at=BEGIN))
        kept = self.scheme.kept(signature)
        newcomer = Newcomer(
            kept, self.scheme.keys(signature, self.key), self.scheme, DEFAULT_THRESHOLDS, (False, False)
        )
        found = asyncio.run(look_up(self.store, newcomer)).candidates
        numbers = estimate(kept, self.kept[original.id])
        verdict = relate(kept, self.kept[original.id], numbers, DEFAULT_THRESHOLDS)
        one, other = (normalize(each, self.scheme.text).data.tobytes().decode() for each in (original.text, text))
        true = Levenshtein.distance(one, other)
        met = any(each.earlier.id == original.id for each in found)
        return Copy(
            met,
            met and verdict.relation != "unrelated",
            abs(numbers.distance - true) / max(len(one), len(other), 1),
            len(found) - met,
        )


def drawn(texts: Sequence[Text], kept: dict[str, Signature], copies: int) -> Iterator[tuple[str, list[Text]]]:
    """Draw up to `copies` texts of each size.

    Licence texts are left out. Yields the name of each size with its texts.
    """
    for low, high in SIZES:
        fit = [each for each in texts if low <= len(each.text) < high and each.source not in FAMILIES]
        known = [each for each in fit if each.id in kept]
        yield f"{low}-{high}", random.Random(low).sample(known, min(copies, len(known)))


def figures(originals: Originals, texts: Sequence[Text], copies: int) -> Figures:
    """Return all figures that the command prints."""
    levels: dict[str, Figures] = {}
    sizes = dict(drawn(texts, originals.kept, copies))
    for part in SHARES:
        levels[f"{part:.2f}"] = {
            size: _summary([originals.judge(each, noisy(each.text, part, at)) for at, each in enumerate(chosen)])
            for size, chosen in sizes.items()
        }
    n = max(len(originals.keys), 1)
    return {
        "scheme": originals.scheme.name,
        "documents": len(originals.keys),
        "keys": round(sum(1 + len(keys.bands) + len(keys.anchors) for keys in originals.keys.values()) / n, 1),
        "sign_us": round(1e6 * originals.seconds / n),
        "replaced": levels,
    }


def _summary(copies: Sequence[Copy]) -> Figures:
    errors = [each.error for each in copies if each.related]
    return {
        "n": len(copies),
        "met": share(sum(each.met for each in copies), len(copies)),
        "related": share(sum(each.related for each in copies), len(copies)),
        "error": {"mean": round(mean(errors), 4), "median": round(median(errors), 4)} if errors else None,
        "strangers": round(mean(each.strangers for each in copies), 2) if copies else None,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz")
    parser.add_argument("--scheme", choices=LABELS, default="noise")
    parser.add_argument(
        "--copies", type=positive, default=60, metavar="N", help="documents copied for each size and share"
    )
    options = parser.parse_args(arguments)
    try:
        texts = [each for each in read_texts(options.corpus).values() if len(each.text) <= LONG_CHARACTERS]
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    random.Random(1).shuffle(texts)
    key = HashKey.public()
    print(json.dumps(figures(Originals(texts, preset(options.scheme, key), key), texts, options.copies), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
