"""Case 13: excerpts of long texts."""

from functools import partial

from benchmarks.judgement.cases import Case, Expected, Material, Stream, couple, each, in_turn, related
from benchmarks.judgement.judges import lies_in_older


def excerpts(material: Material, words: int, of: int) -> Stream:
    """Return long texts, woven of real ones, and an excerpt of each."""

    def pair(number: int) -> Expected:
        whole, start = material.prose.words(of), material.draw.randrange(of - words)
        return couple(number, " ".join(whole), " ".join(whole[start : start + words]))

    return in_turn(map(pair, range(min(material.pairs, 48))), material.draw)


_SIZES = ((50, 10_000), (100, 30_000), (200, 100_000))

CASES = tuple(
    Case(
        13,
        f"{words} words of {of:,}",
        "the excerpt",
        partial(excerpts, words=words, of=of),
        (each("found", 0.95, related()), each("containment", 0.95, lies_in_older)),
    )
    for words, of in _SIZES
)
