"""What the benchmark of frames counts."""

import random

from benchmarks.quality.frames import measure, newsletters, syndicated
from benchmarks.stream.prose import Prose, sources


async def test_a_frame_is_hardly_told_with_families() -> None:
    stream = newsletters(Prose(sources(None), 1), random.Random(1))
    few, all_pairs = [await measure(stream, events_per_family) for events_per_family in (1, 0)]
    assert few["other_pairs_told_per_document"] < 1 < 10 < all_pairs["other_pairs_told_per_document"]
    assert few["comparisons_per_document"] < 10
    assert few["same"] == 0


async def test_an_article_is_found_in_two_frames() -> None:
    figures = await measure(syndicated(Prose(sources(None), 1), random.Random(1)), 1)
    assert figures["same"] == 50
    assert figures["same_found"] == 1
    assert figures["other_pairs_told_per_document"] < 1
