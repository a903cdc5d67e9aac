"""The benchmark of the index measures what a document costs on a server."""

import secrets
from itertools import islice

import pytest
from redis import Redis

from benchmarks.index.__main__ import KEY, measured
from benchmarks.index.growth import documents_of
from benchmarks.index.texts import documents
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset


@pytest.mark.parametrize("slots", [1, 3])
async def test_each_document_of_a_stream_costs_the_server_and_the_worker_something(redis_url: str, slots: int) -> None:
    arriving = [document for batch in islice(documents_of("crawl"), 5) for document in batch][:150]
    scheme = preset(DEFAULT_LABEL, KEY)
    with Redis.from_url(redis_url) as server:
        found = await measured(server, redis_url, scheme, arriving, slots, f"bench-{secrets.token_hex(4)}")
    assert found["documents"] == 150
    assert min(found[name] for name in ("server_us", "worker_us", "per_second", "comparisons", "bytes")) > 0


def test_some_documents_beside_the_peer_are_copies() -> None:
    texts = [document.text for document in documents(100)]
    assert 90 <= len(set(texts)) < 100
