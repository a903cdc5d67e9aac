"""Measure how many index keys a document needs for related documents to share one.

    python -m benchmarks.quality.front --corpus DIR [--seed N]

Takes the keys of the default scheme as they are with all bands, and leaves out some: all bands but the first in every
text, or only in texts with enough anchors. Prints one JSON object: for each choice the keys a document, the share of
labelled related pairs that have a common key, and that share for excerpts of labelled texts against copies of them in
which words are replaced. The exit code is 2 when an input cannot be read. Uses no network, no service and no lineage.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.corpus import RELATED, CorpusError, Text, document, read_pairs, read_texts, share
from benchmarks.quality.retrieval import BEGIN
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import DEFAULT_LABEL, Keys, preset
from nearstream.streams.signing.signer import Signer

WORDS = (20, 40, 80, 150, 300, 600)
REPLACED = (0.02, 0.05, 0.1, 0.2)
TRIALS = 200
BANDS = 25
_KEY = HashKey.public()
_SCHEME = preset(DEFAULT_LABEL, _KEY, bands=BANDS)
_SIGNER = Signer(_SCHEME, _KEY)

Two = tuple[Keys, Keys]


@dataclass(frozen=True)
class Choice:
    """A text with at least `enough` anchors has only its first `beside` bands as keys."""

    beside: int
    enough: int

    def of(self, keys: Keys) -> frozenset[bytes]:
        """Return the keys of a text under this choice."""
        bands = keys.bands[: self.beside] if len(keys.anchors) >= self.enough else keys.bands
        return frozenset((keys.digest, *bands, *keys.anchors))


CHOICES = [
    *(Choice(beside, 0) for beside in (25, 15, 10, 6, 4, 2, 1, 0)),
    *(Choice(beside, enough) for enough in (8, 16, 32) for beside in (4, 0)),
]


def keys_of(text: Text) -> Keys | None:
    """Return the index keys of a text. None if it has no words."""
    signature = _SIGNER.sign(document(text, BEGIN))
    return _SCHEME.keys(signature, _KEY) if signature.n_bytes else None


def edited(texts: Sequence[list[str]], words: int, replaced: float, draw: random.Random) -> Iterator[Two]:
    """Yield the keys of excerpts, and of copies with this share of the words replaced by words of other texts."""
    long_enough = [text for text in texts if len(text) >= words]
    for _ in range(TRIALS):
        text = draw.choice(long_enough)
        start = draw.randrange(len(text) - words + 1)
        one = text[start : start + words]
        other = [draw.choice(draw.choice(texts)) if draw.random() < replaced else word for word in one]
        found = [keys_of(Text(name, " ".join(each))) for name, each in (("one", one), ("other", other))]
        if found[0] is not None and found[1] is not None:
            yield found[0], found[1]


def met(pairs: Sequence[Two], choice: Choice) -> float | None:
    """Return the share of pairs with a common key."""
    return share(sum(not choice.of(one).isdisjoint(choice.of(other)) for one, other in pairs), len(pairs))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the edits (default 1)")
    options = parser.parse_args(arguments)
    try:
        labelled, texts = read_pairs(options.corpus), read_texts(options.corpus)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    keys = {name: found for name, text in texts.items() if (found := keys_of(text)) is not None}
    related = [pair for pair in labelled if pair.relation in RELATED and pair.a in keys and pair.b in keys]
    groups = {"all": related} | {name: [pair for pair in related if pair.relation == name] for name in sorted(RELATED)}
    draw = random.Random(options.seed)
    words = [text.text.split() for text in texts.values()]
    words = [each for each in words if each]
    copies = {(size, part): list(edited(words, size, part, draw)) for size in WORDS for part in REPLACED}
    rows: list[dict[str, Any]] = []
    for choice in CHOICES:
        pairs = {name: [(keys[pair.a], keys[pair.b]) for pair in group] for name, group in groups.items()}
        rows.append(
            {
                "bands": choice.beside,
                "from_anchors": choice.enough,
                "keys": round(sum(len(choice.of(each)) for each in keys.values()) / len(keys), 1),
                "related": {name: met(group, choice) for name, group in pairs.items()},
                "copies": {f"{size} words, {part:.0%}": met(both, choice) for (size, part), both in copies.items()},
            }
        )
    print(json.dumps({"documents": len(keys), "choices": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
