"""The benchmark of a growing index gives both indexes the same documents."""

import pytest
from redis import Redis

from benchmarks.index import growth
from benchmarks.index.growth import arrivals
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer


async def test_the_same_documents_are_measured_in_a_small_and_in_a_large_index(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "FEWER", 32)
    monkeypatch.setattr(growth, "_TURNS", 2)
    with Redis.from_url(redis_url) as server:
        found = await growth.growth(server, redis_url, "unique", 64)
    assert [found[name]["documents"] for name in ("small", "large")] == [32, 64]
    for name in ("small", "large"):
        us = found[name]["us"]
        assert us["server"] > 0
        assert us["matcher"] > 0
        assert us["both"] == pytest.approx(us["server"] + us["matcher"], abs=0.2)
        assert found[name]["command_us"]["fcall"] > 0
    (gate,) = found["gates"].values()
    assert gate["value"] == pytest.approx(found["large"]["us"]["both"] / found["small"]["us"]["both"], abs=0.001)


def test_documents_of_the_next_part_have_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "FEWER", 32)
    key = HashKey.public()
    batches = arrivals("crawl", Signer(preset("standard", key), key))
    parts = [[each.document_key for _ in range(2) for each in next(batches)] for _ in range(2)]
    assert [len(part) for part in parts] == [32, 32]
    assert not set(parts[0]) & set(parts[1])
