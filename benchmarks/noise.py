"""How many copies with replaced characters meet their original, and how well they are judged.

    python -m benchmarks.noise --corpus DIR [--scheme S] [--copies N]

Indexes all documents, then asks about noisy copies of some, licence texts excepted. Prints one JSON object; exit code 2
when an input cannot be read. No network, no service.
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

from benchmarks.corpus import CorpusError, Text, document, read_texts, share
from benchmarks.measure import positive
from benchmarks.retrieval import BEGIN
from benchmarks.scoring import Figures
from benchmarks.strata import FAMILIES, LONG_CHARACTERS
from schemas.document import Document
from schemas.signature import Signature
from streams.estimate import estimate
from streams.hashing import HashKey
from streams.index import Admission, IndexLimits
from streams.memory_index import MemoryIndex
from streams.normalize import normalize
from streams.relate import relate
from streams.scheme import LABELS, Scheme, preset
from streams.signer import Signer
from streams.thresholds import DEFAULT_THRESHOLDS

SHARES = (0.05, 0.10, 0.15, 0.20, 0.30)
SIZES = ((300, 1_000), (1_000, 2_000), (2_000, 5_000), (5_000, 20_000))  # characters
_LETTERS = "abcdefghijklmnopqrstuvwxyz "


@dataclass(frozen=True)
class Copy:
    """What came of one noisy copy: its original came back, was called related, with this error of the distance."""

    met: bool
    related: bool
    error: float
    strangers: int


def noisy(text: str, part: float, seed: int) -> str:
    """The text with about this share of its characters replaced by letters or spaces."""
    draw = random.Random(seed)
    return "".join(draw.choice(_LETTERS) if draw.random() < part else each for each in text)


class Originals:
    """An index of documents, and their signatures as it keeps them."""

    def __init__(self, texts: Sequence[Text], scheme: Scheme, key: HashKey) -> None:
        """Signs and admits the texts in this order."""
        self.key, self.scheme, self.signer = key, scheme, Signer(scheme, key)
        self.limits = IndexLimits(retention_seconds=0)
        self.index = MemoryIndex(self.limits)
        began = time.process_time()
        signed = [self.signer.sign(document(text, BEGIN + timedelta(seconds=at))) for at, text in enumerate(texts)]
        self.seconds = time.process_time() - began
        self.whole = {each.id: each for each in signed if each.n_bytes}
        self.kept = {name: scheme.kept(each) for name, each in self.whole.items()}
        self.keys = {name: scheme.keys(each, key) for name, each in self.whole.items()}
        admissions = [Admission(each.document_key, each, self.keys[name]) for name, each in self.kept.items()]
        asyncio.run(self.index.admit(admissions))

    def judge(self, original: Text, text: str) -> Copy:
        """What the index answers to a copy, and how it is judged beside its original."""
        signature = self.signer.sign(Document(id=f"{original.id} noisy", text=text, observed_at=BEGIN))
        keys = self.scheme.keys(signature, self.key)
        found = asyncio.run(self.index.look_up(keys, self.limits.candidates))
        numbers = estimate(self.scheme.kept(signature), self.kept[original.id])
        verdict = relate(self.scheme.kept(signature), self.kept[original.id], numbers, DEFAULT_THRESHOLDS)
        one, other = (normalize(each, self.scheme.text).data.tobytes().decode() for each in (original.text, text))
        true = Levenshtein.distance(one, other)
        met = any(each.signature.id == original.id for each in found)
        return Copy(
            met,
            met and verdict.relation != "unrelated",
            abs(numbers.distance - true) / max(len(one), len(other), 1),
            len(found) - met,
        )


def drawn(texts: Sequence[Text], kept: dict[str, Signature], copies: int) -> Iterator[tuple[str, list[Text]]]:
    """So many texts of each size that are no licences, with the name of the size."""
    for low, high in SIZES:
        fit = [each for each in texts if low <= len(each.text) < high and each.source not in FAMILIES]
        known = [each for each in fit if each.id in kept]
        yield f"{low}-{high}", random.Random(low).sample(known, min(copies, len(known)))


def figures(originals: Originals, texts: Sequence[Text], copies: int) -> Figures:
    """All that the command prints."""
    levels: dict[str, Figures] = {}
    sizes = dict(drawn(texts, originals.kept, copies))
    for part in SHARES:
        levels[f"{part:.2f}"] = {
            size: _told([originals.judge(each, noisy(each.text, part, at)) for at, each in enumerate(chosen)])
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


def _told(copies: Sequence[Copy]) -> Figures:
    errors = [each.error for each in copies if each.related]
    return {
        "n": len(copies),
        "met": share(sum(each.met for each in copies), len(copies)),
        "related": share(sum(each.related for each in copies), len(copies)),
        "error": {"mean": round(mean(errors), 4), "median": round(median(errors), 4)} if errors else None,
        "strangers": round(mean(each.strangers for each in copies), 2) if copies else None,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when measured, 2 when an input is unreadable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="holds docs.jsonl.gz")
    parser.add_argument("--scheme", choices=LABELS, default="noise")
    parser.add_argument("--copies", type=positive, default=60, metavar="N", help="documents of each size and share")
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
