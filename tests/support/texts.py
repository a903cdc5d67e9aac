"""Hypothesis strategies for texts in all scripts."""

from random import Random

from hypothesis import strategies as st

RANGES = [
    (0x00, 0x7F), (0x80, 0x24F), (0x370, 0x3FF), (0x900, 0xDFF), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1D00, 0x2200),
    (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7FF), (0xD800, 0xDFFF), (0xF900, 0xFFFF), (0x10000, 0x11000),
    (0x1D400, 0x1D7FF), (0x1F000, 0x1FFFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01FF),
]  # fmt: skip


MARKS = ["\u0301", "\u0323", "\u3099", "\uff9e", "\u0345", "\u05b8", "\u0e48"]


any_character = st.one_of([st.integers(first, last).map(chr) for first, last in RANGES])


run_of_marks = st.lists(st.sampled_from(MARKS), min_size=25, max_size=40).map("".join)


any_text = st.lists(st.one_of(st.text(any_character, max_size=12), run_of_marks, st.just(" "))).map("".join)


short_words = st.lists(st.text(st.sampled_from("abé語z0"), max_size=5), max_size=60).map(" ".join)


repeated = st.builds(lambda text, times: text * times, st.text(any_character, max_size=8), st.integers(1, 60))


signed_text = st.one_of(any_text, short_words, repeated)


def mixed_text(seed: int, ranges: list[tuple[int, int]], size: int = 400) -> str:
    random = Random(seed)
    return "".join(" " if random.random() < 0.1 else chr(random.randint(*random.choice(ranges))) for _ in range(size))
