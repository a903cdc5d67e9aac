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
_EFFORT = Effort(repeats=5, shortest_ns=20_000_000)


def speed(texts: Iterable[Text], signer: Signer) -> dict[str, Any] | None:
    """Times of an estimate and of the true distance (rapidfuzz) of two texts of 20,000 characters, and their ratio.

    They are put together from the first texts; in the second one every fourth block is another one. None if there is
    not so much text.
    """
    found = ""
    for text in sorted(texts, key=lambda text: text.id):
        found += normalize(text.text).data.tobytes().decode() + " "
        if len(found) >= 2 * CHARACTERS:
            break
    else:
        return None
    blocks = [found[start : start + _BLOCK] for start in range(0, 2 * CHARACTERS, _BLOCK)]
    one, others = blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]
    other = [new if place % _KEPT == 0 else kept for place, (kept, new) in enumerate(zip(one, others, strict=True))]
    pair = "".join(one), "".join(other)
    signed = [signer.sign(document(Text(id=name, text=text))) for name, text in zip("ab", pair, strict=True)]
    ours = timed(lambda both: estimate(*both), [signed], _EFFORT)
    true = timed(lambda both: Levenshtein.distance(*both), [pair], _EFFORT)
    return {
        "characters": CHARACTERS,
        "estimate_microseconds": round(ours.us, 1),
        "levenshtein_microseconds": round(true.us, 1),
        "levenshtein / estimate": round(true.us / ours.us, 1),
        "n": ours.n,
        "spread": round(max(ours.spread, true.spread), 4),
        "distance": Levenshtein.distance(*pair),
        "estimated": round(estimate(*signed).distance),
    }
