"""Compare the times of an estimated and of the exact distance."""

from collections.abc import Iterable
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.quality.corpus import Text, document
from benchmarks.speed.measure import Effort, timed
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.signing.signer import Signer

CHARACTERS = 20_000
_BLOCK = 1_000
_KEPT = 4  # one block in 4 is replaced
_PAIRS = 80  # more texts than the caches of the estimates hold
_EFFORT = Effort(repeats=5, shortest_ns=20_000_000)


def speed(texts: Iterable[Text], signer: Signer) -> dict[str, Any] | None:
    """Return the times of estimated and exact distances, and their ratio.

    The exact distance is that of rapidfuzz, on two texts of 20,000 characters, which are joined from the first texts of
    the corpus. In the second text every fourth block is replaced. The estimates are timed over many pairs, which are
    rotations of these two texts. The result is None if the corpus has too little text.
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
        tuple(signer.sign(document(Text("ab"[side], _rotated(pair[side], by)))) for side in (0, 1)) for by in turns
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


def _rotated(text: str, by: int) -> str:
    return text[by:] + text[:by]
