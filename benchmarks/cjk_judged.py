"""What signatures say about pairs of texts whose edits are known."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from benchmarks.cjk_texts import TextPair
from benchmarks.corpus import share
from schemas.document import Document
from streams.content import NumpySigning
from streams.describe import Related
from streams.hashing import HashKey
from streams.matcher import Matcher
from streams.memory_index import MemoryIndex
from streams.normalize import normalize
from streams.rules import LdRules
from streams.scheme import Scheme, preset
from streams.signer import Signer

KEY = HashKey.public()
STANDARD = preset("standard", KEY)

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Row = dict[str, object]


@dataclass(frozen=True)
class Judged:
    """A pair with what the signatures say, and its true edit distance over the longer length."""

    pair: TextPair
    said: Related
    true: float

    @property
    def error(self) -> float:
        """Estimated less true distance, over the longer length."""
        return self.said.estimate.distance_ratio - self.true


def judge(pairs: Iterable[TextPair], scheme: Scheme = STANDARD) -> list[Judged]:
    """What is said about each pair under a scheme."""
    computing = None if scheme.ld == LdRules() else NumpySigning(scheme, KEY)
    signer, matcher = Signer(scheme, KEY, computing=computing), Matcher(MemoryIndex(), scheme, KEY)
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
    """Edit distance of the normal forms over the longer length."""
    forms = [normalize(text).data.tobytes().decode() for text in (pair.one, pair.other)]
    return Levenshtein.distance(*forms) / max(map(len, forms))


def row(judged: Sequence[Judged]) -> Row:
    """Shares of pairs that meet and that get a right relation; distances over the longer length."""
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
    """Share of the pairs that meet."""
    return share(sum(each.said.keys.bands + each.said.keys.anchors > 0 for each in judged), len(judged))


def document(number: str, text: str) -> Document:
    """A text as it would be sent."""
    return Document(id=number, text=text, observed_at=_BEGIN)
