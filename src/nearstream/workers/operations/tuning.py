"""Choose bands and rows, and check them on a sample of documents."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.estimates.intervals import wilson
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.shingles import Hashes
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.scheme import Scheme, band_values, choose, hit_probability
from nearstream.streams.signing.shingle_sets import exact_resemblance, shingle_set
from nearstream.workers.files.source import Item, Refused
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded

SAMPLE_MAX = 2_000  # documents that are compared with each other
SAMPLED_BYTES = 131_072  # of the largest document of a sample
_NEAR = 0.2  # pairs whose sketches say less than this below the asked resemblance are not measured exactly
_EXACT_MAX = 25  # later documents with which one document is measured exactly
_STEP = 0.05  # width of the range of resemblances in which the promise is checked
_SEED = 2011
# Bytes of Redis for a document in one bucket of words, and up to this factor until expired ones are swept.
ENTRY_BYTES, SWEEPING = 8, 1.4
# Anchors of a document of 5 KB, and bytes of all but its buckets of words, by preset: what
# `benchmarks.index --stream unique` measures (docs/measurements/redis-index.md).
_OTHERS = {"compact": (24, 533), "bands-only": (0, 187), "noise": (83, 890)}
_USUAL = (48, 955)


@dataclass(frozen=True)
class Sampled:
    """What a sample of documents says about bands and rows.

    Attributes:
        documents: Documents with words that were compared, each with each.
        similar: Pairs with the asked resemblance or more, by their whole sets of shingles.
        met: Those that share a band.
        barely: Pairs with at most .05 more than the asked resemblance.
        barely_met: Those that share a band.
        barely_expected: How many of them should, by the curve.
        interval: 95 % interval of the share of all similar pairs that met.
        false_candidates: Expected documents below the asked resemblance that share a band with a new one, for each
            million of documents in the index.
    """

    documents: int
    similar: int
    met: int
    barely: int
    barely_met: int
    barely_expected: float
    interval: tuple[float, float]
    false_candidates: float


@dataclass(frozen=True)
class Tuned:
    """The most selective bands that keep a promise.

    Attributes:
        resemblance: Resemblance of the pairs to be found.
        recall: Least probability of finding them.
        slots: Slots of the sketch.
        bands: Number of bands.
        rows: Slots of each band.
        passage_words: A common passage of this many words always shares an anchor. 0: the scheme has no anchors.
        document_bytes: Bytes of Redis for a document of 5 KB.
        sampled: What a sample says. None: there was none.
    """

    resemblance: float
    recall: float
    slots: int
    bands: int
    rows: int
    passage_words: int
    document_bytes: int
    sampled: Sampled | None = None

    def chance(self, resemblance: float) -> float:
        """Return the probability that two texts of this resemblance share a band."""
        return hit_probability(resemblance, self.bands, self.rows)


def tune(scheme: Scheme, resemblance: float, recall: float) -> Tuned:
    """Return the bands and rows that find pairs of a resemblance with at least this probability.

    Raises:
        ValueError: A number is out of range, or the slots of the sketch cannot reach the recall.
    """
    slots = scheme.sketch.slots
    bands, rows = choose(resemblance, recall, slots)
    words = scheme.anchors.run + scheme.anchors.words - 1 if scheme.anchors else 0
    return Tuned(resemblance, recall, slots, bands, rows, words, document_bytes(scheme.label, bands, SWEEPING))


def document_bytes(label: str, bands: int, sweeping: float = 1.0) -> int:
    """Return the bytes of Redis for a document of 5 KB.

    Args:
        label: The preset of its scheme.
        bands: Number of its bands.
        sweeping: Entries in buckets of words, over those of documents that have not expired.
    """
    anchors, others = _OTHERS.get(label, _USUAL)
    return round(sweeping * ENTRY_BYTES * (bands + anchors) + others)


def sample(deployment: Deployment, tuned: Tuned, items: Iterable[Item | Refused], *, quiet: bool) -> Sampled:
    """Compare a sample of documents with each other, by bands and exactly.

    Documents that cannot be read, those without words and those of more than `SAMPLED_BYTES` are left out.

    Args:
        deployment: The deployment whose scheme and key apply.
        tuned: The bands and rows to check.
        items: The documents, of which `SAMPLE_MAX` are drawn with equal chances.
        quiet: Show no progress.
    """
    job, progress = embedded(deployment), Progress("compared", SAMPLE_MAX, quiet)
    drawn = _drawn(items)
    signed = [found for item in drawn if (found := _signed(job, item, deployment.scheme, deployment.key)) is not None]
    sketches = np.array([np.frombuffer(each.sketch, f"<u{deployment.scheme.sketch.bits // 8}") for each in signed])
    similar, below, expected = list[tuple[float, bool]](), 0, 0.0
    progress.total = len(signed)
    chance = 2.0**-deployment.scheme.sketch.bits
    for at, one in enumerate(signed[:-1]):
        equal = (sketches[at + 1 :] == sketches[at]).mean(axis=1)
        estimates = np.clip((equal - chance) / (1 - chance), 0, 1)
        others = estimates[estimates < tuned.resemblance]
        below, expected = below + others.size, expected + float(_chances(others, tuned).sum())
        for near in np.flatnonzero(estimates >= tuned.resemblance - _NEAR)[:_EXACT_MAX]:
            other = signed[at + 1 + int(near)]
            resemblance = exact_resemblance(one.shingles, other.shingles)
            if resemblance >= tuned.resemblance:
                similar.append((resemblance, _share_band(one.sketch, other.sketch, tuned)))
        progress.step()
    progress.end()
    return _summed(tuned, len(signed), similar, 1_000_000 * expected / max(1, below))


def _summed(tuned: Tuned, documents: int, found: Sequence[tuple[float, bool]], false_candidates: float) -> Sampled:
    met = sum(is_met for _, is_met in found)
    barely = [pair for pair in found if pair[0] <= tuned.resemblance + _STEP]
    return Sampled(
        documents,
        len(found),
        met,
        len(barely),
        sum(is_met for _, is_met in barely),
        round(sum(tuned.chance(resemblance) for resemblance, _ in barely), 1),
        wilson(met / max(1, len(found)), len(found)),
        false_candidates,
    )


@dataclass(frozen=True)
class _Signed:
    """The sketch of a document and all its shingles."""

    sketch: bytes
    shingles: Hashes


def _drawn(items: Iterable[Item | Refused]) -> Iterator[Item]:
    """Yield a random sample of the readable items (reservoir sampling, Vitter 1985)."""
    random, kept = Random(_SEED), list[Item]()  # noqa: S311 - a sample is no secret
    small = (each for each in items if isinstance(each, Item) and len(each.record.value or b"") <= SAMPLED_BYTES)
    for number, item in enumerate(small):
        if number < SAMPLE_MAX:
            kept.append(item)
        elif (place := random.randrange(number + 1)) < SAMPLE_MAX:
            kept[place] = item
    yield from kept


def _signed(job: Embedded, item: Item, scheme: Scheme, key: HashKey) -> _Signed | None:
    try:
        unsigned = job.read(item.record)
        if isinstance(unsigned, Removal):
            return None
        signature = job.signer.sign(*unsigned)
    except InvalidMessageError:
        return None
    if not signature.shingles:
        return None
    return _Signed(signature.sketch, shingle_set(unsigned.document.text or "", scheme, key))


def _share_band(one: bytes, other: bytes, tuned: Tuned) -> bool:
    width = len(one) // tuned.slots
    pairs = zip(
        band_values(one, width, tuned.bands, tuned.rows),
        band_values(other, width, tuned.bands, tuned.rows),
        strict=True,
    )
    return any(ours == theirs for ours, theirs in pairs)


def _chances(resemblances: NDArray[np.float64], tuned: Tuned) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 1.0 - (1.0 - resemblances**tuned.rows) ** tuned.bands
    return found
