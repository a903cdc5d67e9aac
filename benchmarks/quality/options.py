"""Compare ways to make index keys and sketches, most of them of the sources, with those of the default scheme.

    python -m benchmarks.quality.options --corpus DIR [--seed N]

Prints one JSON object. `keys`: what each way of making keys finds of the labelled pairs, alone and beside the default
scheme, and what it costs. `bits`: how well sketches of so many bits a slot tell near-duplicates. `frames`: resemblance
by 5-word shingles and by shingles that begin with a stop word, of pages that share an article or a frame. The exit code
is 2 when an input cannot be read. Uses no network, no service and no lineage.
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.corpus import (
    DUPLICATES,
    RELATED,
    CorpusError,
    Pair,
    Text,
    document,
    read_pairs,
    read_texts,
    share,
    words,
)
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.reference.stop_words import ENGLISH, stop_word_shingles
from benchmarks.reference.supershingles import groups
from benchmarks.reference.text_profile import profile_digest
from benchmarks.stream.prose import Prose
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.minhash import sketch
from nearstream.streams.fingerprints.parameters import SketchRules
from nearstream.streams.signing.scheme import DEFAULT_LABEL, band_values, preset
from nearstream.streams.signing.signer import Signer

SLOT_BYTES, NEAR = 4, 0.7  # bytes of a whole slot; resemblance of a near-duplicate
_KEY = HashKey.public()
_SCHEME = preset(DEFAULT_LABEL, _KEY)
_SIGNER = Signer(_SCHEME, _KEY)

Keys = frozenset[bytes]
Way = Callable[[Text, Signature], Iterable[bytes]]


def default(_: Text, signature: Signature) -> Iterable[bytes]:
    """Return the keys of the default scheme."""
    keys = _SCHEME.keys(signature, _KEY)
    return keys.digest, *keys.bands, *keys.anchors


def raw_digest(_: Text, signature: Signature) -> Iterable[bytes]:
    """Return the digest of the text as it came (LingPipe, its first tier)."""
    return (signature.raw_digest,)


def profile(text: Text, _: Signature) -> Iterable[bytes]:
    """Return the text profile of Nutch. A text without frequent words has none."""
    found = profile_digest(text.text)
    return (found.encode(),) if found else ()


def bands(count: int, rows: int) -> Way:
    """Return a way that makes these bands the keys."""

    def keys(_: Text, signature: Signature) -> Iterable[bytes]:
        return _numbered(band_values(signature.sketch, SLOT_BYTES, count, rows)) if signature.shingles else ()

    return keys


def megashingles(needed: int, run: int) -> Way:
    """Return a way whose keys are equal if and only if `needed` of 6 runs of so many minima are (Manasse)."""

    def keys(_: Text, signature: Signature) -> Iterable[bytes]:
        runs = band_values(signature.sketch, SLOT_BYTES, 6, run) if signature.shingles else []
        return [bytes(places) + b"".join(group) for places, group in groups(runs, needed)] if runs else ()

    return keys


def stop_words(text: Text, _: Signature) -> Iterable[bytes]:
    """Return 25 bands of the sketch of the shingles that begin with a stop word (book, 3.8.6)."""
    features = np.unique(_features(stop_word_shingles(text.text, ENGLISH)))
    return _numbered(band_values(sketch(features, SketchRules()), SLOT_BYTES, 25, 5)) if features.size else ()


def hyperplanes(features_of: Callable[[str], Iterable[str]]) -> Way:
    """Return a way whose keys are 12 runs of 32 bits: on which side of random hyperplanes a text is.

    A text is the vector of the counts of its features. 384 bits of which at most 12 differ are those of Henzinger
    (Finding near-duplicate web pages, 2006, section 2.2), after Charikar (2002). If fewer differ, a run is equal.
    """

    def keys(text: Text, _: Signature) -> Iterable[bytes]:
        counts = Counter(features_of(text.text))
        if not counts:
            return ()
        hashes = b"".join(blake2b(each.encode(), digest_size=48).digest() for each in counts)
        sides = np.unpackbits(np.frombuffer(hashes, np.uint8).reshape(-1, 48), axis=1)
        weights = np.fromiter(counts.values(), np.float32, len(counts))
        above = (2 * (weights @ sides) >= weights.sum()).astype(np.uint8)
        return _numbered([bytes(run) for run in np.packbits(above).reshape(12, 4)])

    return keys


WAYS: Mapping[str, Way] = {
    "default": default,
    "raw digest": raw_digest,
    "text profile": profile,
    "megashingles, 2 of 6 runs of 14": megashingles(2, 14),
    "megashingles, 4 of 6 runs of 5": megashingles(4, 5),
    "bands 9 x 14": bands(9, 14),
    "bands 15 x 8": bands(15, 8),
    "bands 25 x 5": bands(25, 5),
    "stop-word shingles, bands 25 x 5": stop_words,
    "hyperplanes of words, 12 x 32": hyperplanes(words),
    "hyperplanes of 5-word shingles, 12 x 32": hyperplanes(lambda text: map(" ".join, _runs(text))),
}


def compare_keys(pairs: Sequence[Pair], texts: Mapping[str, Text], signed: Mapping[str, Signature]) -> list[Figures]:
    """Return what each way finds of the labelled pairs, and what it costs."""
    whole: dict[str, Keys] = {}
    rows = []
    for name, way in WAYS.items():
        began = time.process_time()
        keys = {each: frozenset(way(texts[each], signature)) for each, signature in signed.items()}
        seconds = time.process_time() - began
        whole = whole or keys
        both = {each: whole[each] | keys[each] for each in keys}
        rows.append(
            {
                "way": name,
                "keys": round(fmean(map(len, keys.values())), 2),
                "us_per_document": round(1e6 * seconds / len(keys), 1),
                "others_per_document": round(_meetings(keys) / len(keys), 2),
                "found": _found(pairs, keys),
                "found_beside_the_default": _found(pairs, both),
                "duplicates_among_labelled_that_meet": _duplicates(pairs, keys),
            }
        )
    return rows


def compare_bits(pairs: Sequence[Pair], signed: Mapping[str, Signature]) -> list[Figures]:
    """Return how well sketches of so many bits a slot give the resemblance (Manasse; Li and König, 2010)."""
    slots = {name: np.frombuffer(each.sketch, f"<u{SLOT_BYTES}") for name, each in signed.items()}
    alike = [pair for pair in pairs if pair.details.J >= 0.1]
    rows = []
    for bits in (1, 2, 4, 8, 32):
        mask, chance = np.uint32((1 << bits) - 1), 2.0**-bits
        found = [_by_slots(slots[pair.a], slots[pair.b], mask, chance) for pair in alike]
        both = [(value, pair.details.J) for value, pair in zip(found, alike, strict=True)]
        wrong = sum((value >= NEAR) != (exact >= NEAR) for value, exact in both)
        rows.append(
            {
                "bits": bits,
                "bytes": 128 * bits // 8,
                "mean_error": round(fmean(abs(value - exact) for value, exact in both), 4),
                "on_the_wrong_side": share(wrong, len(alike)),
            }
        )
    return rows


def compare_frames(texts: Mapping[str, Text], seed: int) -> list[Figures]:
    """Return the resemblance of pages with one article, and of pages with one frame, by both kinds of shingles.

    An article has 150 words. Frames have 300 words, those of one kind without stop words, as the book assumes.
    """
    prose = Prose([text.text for text in texts.values()], seed)
    return [_framed(prose, kind) for kind in ("of prose", "without stop words")]


def _framed(prose: Prose, kind: str) -> Figures:
    by_shingles, by_stop_words = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _ in range(200):
        one, other = prose.words(600), prose.words(600)
        if kind == "without stop words":
            one, other = ([word for word in each if word.lower() not in ENGLISH] for each in (one, other))
        frames = [each[:300] for each in (one, other)]
        articles = prose.words(150), prose.words(150)
        page = [frames[0], articles[0]], [frames[1], articles[0]], [frames[0], articles[1]]
        first, article, frame = (" ".join([*each[0][:200], *each[1], *each[0][200:]]) for each in page)
        for group, against in (("one article", article), ("one frame", frame)):
            by_shingles[group].append(_jaccard(_runs(first), _runs(against)))
            by_stop_words[group].append(_jaccard(*(set(stop_word_shingles(t, ENGLISH)) for t in (first, against))))
    return {
        "frames": kind,
        "shingles": {group: round(fmean(values), 3) for group, values in by_shingles.items()},
        "stop_word_shingles": {group: round(fmean(values), 3) for group, values in by_stop_words.items()},
    }


def _found(pairs: Sequence[Pair], keys: Mapping[str, Keys]) -> dict[str, float | None]:
    """Return the share of the pairs of each relation that have a common key. For unrelated ones, it is an error."""
    met: dict[str, list[bool]] = defaultdict(list)
    for pair in pairs:
        is_met = not keys[pair.a].isdisjoint(keys[pair.b])
        for group in (pair.relation, *(["related"] if pair.relation in RELATED else [])):
            met[group].append(is_met)
    return {group: share(sum(each), len(each)) for group, each in sorted(met.items())}


def _duplicates(pairs: Sequence[Pair], keys: Mapping[str, Keys]) -> float | None:
    met = [pair.relation in DUPLICATES for pair in pairs if not keys[pair.a].isdisjoint(keys[pair.b])]
    return share(sum(met), len(met))


def _meetings(keys: Mapping[str, Keys]) -> int:
    """Return how many pairs of documents have a common key, labelled or not, each counted for its later document."""
    having: dict[bytes, list[str]] = defaultdict(list)
    total = 0
    for name, own in keys.items():
        total += len({other for key in own for other in having[key]})
        for key in own:
            having[key].append(name)
    return total


def _by_slots(one: NDArray[np.uint32], other: NDArray[np.uint32], mask: np.uint32, chance: float) -> float:
    equal = float(((one ^ other) & mask == 0).mean())
    return max(0.0, (equal - chance) / (1 - chance))


def _numbered(values: Sequence[bytes]) -> list[bytes]:
    return [bytes((number,)) + value for number, value in enumerate(values)]


def _features(shingles: Iterable[str]) -> NDArray[np.uint64]:
    hashes = (blake2b(each.encode(), digest_size=8).digest() for each in shingles)
    return np.frombuffer(b"".join(hashes), np.uint64)


def _runs(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return set(zip(*(found[start:] for start in range(5)), strict=False))


def _jaccard(one: set[tuple[str, ...]] | set[str], other: set[tuple[str, ...]] | set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the framed pages (default 1)")
    options = parser.parse_args(arguments)
    try:
        labelled, texts = read_pairs(options.corpus), read_texts(options.corpus)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signed = {
        name: signature
        for name, text in texts.items()
        if len(text.text) <= 100_000 and (signature := _SIGNER.sign(document(text, BEGIN))).n_bytes
    }
    pairs = [pair for pair in labelled if pair.a in signed and pair.b in signed]
    figures = {
        "documents": len(signed),
        "pairs": len(pairs),
        "keys": compare_keys(pairs, texts, signed),
        "bits": compare_bits(pairs, signed),
        "frames": compare_frames(texts, options.seed),
    }
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
