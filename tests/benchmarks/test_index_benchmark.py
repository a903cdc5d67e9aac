"""The benchmark of the index measures what a document costs on a server."""

import re
import secrets
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest
from redis import Redis

from benchmarks.index.__main__ import KEY, measured
from benchmarks.index.growth import documents_of
from benchmarks.index.texts import documents
from nearstream.schemas.documents.document import Document
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.operations.tuning import ENTRY_BYTES, document_bytes

PAGE = (Path(__file__).parents[2] / "docs/measurements/redis-index.md").read_text()
BYTES = {
    label: int(size.replace(",", ""))
    for labels, size in re.findall(r"((?:`[a-z-]+`(?: and )?)+)\s([\d,]+)", PAGE.partition("Bytes of a document of")[2])
    for label in re.findall(r"`([a-z-]+)`", labels)
}


@cache
def unique() -> list[Document]:
    return [document for batch in islice(documents_of("unique"), 2) for document in batch]


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


@pytest.mark.parametrize("label", ["letters", "dense", "standard", "noise", "mail", "compact", "bands-only"])
def test_tune_expects_of_a_document_what_was_measured(label: str) -> None:
    scheme = preset(label, KEY)
    keys = [scheme.keys(Signer(scheme, KEY).sign(document), KEY) for document in unique()]
    expected = document_bytes(label, scheme.bands.bands)
    assert expected == pytest.approx(BYTES[label], rel=0.02)
    anchors = (document_bytes(label, 0, sweeping=2.0) - document_bytes(label, 0)) / ENTRY_BYTES
    assert anchors == pytest.approx(fmean(len(each.anchors) for each in keys), rel=0.05, abs=0.1)
