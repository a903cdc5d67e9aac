"""The benchmark of a growing index measures the same documents in a small and in a large index."""

from itertools import islice

import pytest
from redis import Redis

from benchmarks.index import growth
from benchmarks.index.growth import Measured, documents_of


async def test_the_same_documents_are_measured_in_both_indexes(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "FEWER", 32)
    monkeypatch.setattr(growth, "_TURNS", 2)
    with Redis.from_url(redis_url) as server:
        small, large = [await Measured.open(server, redis_url, f"growth-{name}") for name in ("small", "large")]
        try:
            found = await growth.growth(small, large, "crawl", 96)
        finally:
            await small.index.close()
            await large.index.close()
    assert [found[name]["documents"] for name in ("small", "large")] == [32, 96]
    for name in ("small", "large"):
        us = found[name]["us"]
        assert min(us.values()) > 0
        assert us["all"] == pytest.approx(us["server"] + us["signing and matching"], abs=0.2)
        assert found[name]["command_us"]["fcall"] > 0
        assert found[name]["comparisons"] > 0
    (gate,) = found["gates"].values()
    assert gate["value"] == pytest.approx(found["large"]["us"]["all"] / found["small"]["us"]["all"], abs=0.001)


def test_documents_of_the_next_part_have_other_ids_and_later_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "FEWER", 40)
    documents = [document for batch in islice(documents_of("unique"), 3) for document in batch]
    assert len({document.id for document in documents}) == len(documents) == 96
    times = [document.observed_at for document in documents if document.observed_at is not None]
    assert times == sorted(set(times))
