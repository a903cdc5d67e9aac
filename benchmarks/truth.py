"""How much sooner two signatures tell a distance than both texts do."""

from collections.abc import Iterable
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.corpus import Text, document
from benchmarks.measure import Effort, timed
from streams.estimate import estimate
from streams.normalize import normalize
from streams.signer import Signer

CHARACTERS = 20_000
_BLOCK = 1_000
_KEPT = 4  # of so many blocks one is replaced
_PAIRS = 80  # more texts than estimates remember
_EFFORT = Effort(repeats=5, shortest_ns=20_000_000)


def speed(texts: Iterable[Text], signer: Signer) -> dict[str, Any] | None:
    """Times of an estimate and of the true distance (rapidfuzz) of two texts of 20,000 characters, and their ratio.

    They are put together from the first texts; in the second one every fourth block is another one. Estimates are of
    many pairs, both texts beginning elsewhere in each. None if there is not so much text.
    """
    found = ""
    for text in sorted(texts, key=lambda text: text.id):
        found += normalize(text.text).data.tobytes().decode() + " "
        if len(found) >= 2 * CHARACTERS:
            break
    else:
        return None
    one, others = found[:CHARACTERS], found[CHARACTERS : 2 * CHARACTERS]
    starts = range(0, CHARACTERS, _BLOCK)
    blocks = [(others if start % (_KEPT * _BLOCK) == 0 else one)[start : start + _BLOCK] for start in starts]
    pair = one, "".join(blocks)
    turns = range(0, CHARACTERS, CHARACTERS // _PAIRS)
    signed = [
        tuple(signer.sign(document(Text("ab"[side], _turned(pair[side], by)))) for side in (0, 1)) for by in turns
    ]
    ours = timed(lambda both: estimate(*both), signed, _EFFORT)
    true = timed(lambda both: Levenshtein.distance(*both), [pair], _EFFORT)
    return {
        "characters": CHARACTERS,
        "estimate_microseconds": round(ours.us, 1),
        "levenshtein_microseconds": round(true.us, 1),
        "levenshtein / estimate": round(true.us / ours.us, 1),
        "n": ours.n,
        "spread": round(max(ours.spread, true.spread), 4),
        "distance": Levenshtein.distance(*pair),
        "estimated": round(estimate(*signed[0]).distance),
    }


def _turned(text: str, by: int) -> str:
    return text[by:] + text[:by]
