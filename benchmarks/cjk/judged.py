"""Judge pairs of texts with known edits by their signatures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from benchmarks.cjk.texts import TextPair
from benchmarks.quality.corpus import share
from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import LdRules
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.describe import Related
from nearstream.streams.signing.numpy_backend import NumpySigning
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.local import local_store

KEY = HashKey.public()
STANDARD = preset("standard", KEY)

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Row = dict[str, object]


@dataclass(frozen=True)
class Judged:
    """A pair of texts with the result of comparing their signatures.

    `true` is the true edit distance over the longer length.
    """

    pair: TextPair
    said: Related
    true: float

    @property
    def error(self) -> float:
        """Return the estimated minus the true distance, over the longer length."""
        return self.said.estimate.distance_ratio - self.true


def judge(pairs: Iterable[TextPair], scheme: Scheme = STANDARD) -> list[Judged]:
    """Judge each pair by its signatures under a scheme."""
    computing = None if scheme.ld == LdRules() else NumpySigning(scheme, KEY)
    signer, matcher = Signer(scheme, KEY, computing=computing), Matcher(local_store(), scheme, KEY)
    return [
        Judged(
            pair,
            matcher.compare(*(signer.sign(document(id_, text)) for id_, text in (("b", pair.other), ("a", pair.one)))),
            true_distance(pair),
        )
        for pair in pairs
    ]


@cache
def true_distance(pair: TextPair) -> float:
    """Return the edit distance of the normal forms over the longer length."""
    forms = [normalize(text).data.tobytes().decode() for text in (pair.one, pair.other)]
    return Levenshtein.distance(*forms) / max(map(len, forms))


def row(judged: Sequence[Judged]) -> Row:
    """Summarise judged pairs.

    The shares are of pairs that share a band, share an anchor, meet at all, and get a right relation. Distances are
    over the longer length.
    """
    n, keys = len(judged), [each.said.keys for each in judged]
    said = Counter(each.said.verdict.relation for each in judged)
    return {
        "n": n,
        "bands": share(sum(each.bands > 0 for each in keys), n),
        "anchors": share(sum(each.anchors > 0 for each in keys), n),
        "meet": share(sum(each.bands + each.anchors > 0 for each in keys), n),
        "right": share(sum(each.said.verdict.relation in each.pair.relations for each in judged), n),
        "resemblance": round(fmean(each.said.estimate.resemblance.value for each in judged), 3),
        "distance": round(fmean(each.true for each in judged), 3),
        "error": round(fmean(abs(each.error) for each in judged), 4),
        "bias": round(fmean(each.error for each in judged), 4),
        "said": ", ".join(f"{name} {count}" for name, count in said.most_common()),
    }


def met(judged: Sequence[Judged]) -> float | None:
    """Return the share of pairs that meet."""
    return share(sum(each.said.keys.bands + each.said.keys.anchors > 0 for each in judged), len(judged))


def document(number: str, text: str) -> Document:
    """Return a text as the document that a producer would send."""
    return Document(id=number, text=text, observed_at=_BEGIN)
