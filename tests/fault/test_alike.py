"""Documents that are all alike, or made to collide."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from nearstream.schemas.document import Document
from nearstream.schemas.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import Admission
from nearstream.streams.store.local import local_store
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.index import RedisIndex
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.collisions import colliding_blocks, thue_morse
from tests.support.index_documents import admission

KEY = HashKey.public()
SCHEME = preset("standard", KEY)
SIGNER = Signer(SCHEME, KEY)
SEEN = datetime(2026, 3, 2, tzinfo=UTC)
SHINGLE_WORDS = 5


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("alike", ["equal", "one band"])
async def test_f18_what_is_alike_without_end_costs_no_more(tmp_path: Path, count: int, alike: str) -> None:
    """Compare the slowest hundredth of 300 calls between two indexes.

    The calls alternate between an index of `count` documents and one of 100. The least of three tries counts.
    """
    with running(redis_server(tmp_path)) as server:
        few, many = await _index(server, "few"), await _index(server, "many")
        await _admit(few, _alike(alike, 0, 100))
        for first in range(0, count, 500):
            await _admit(many, _alike(alike, first, 500))
        tries = [await _dear_seconds((few, many), _alike(alike, count + 300 * turn, 300)) for turn in range(3)]
        (last,) = await many.admit(_alike(alike, 2 * count, 1))
        await few.close()
        await many.close()
    early, late = map(min, zip(*tries, strict=True))
    assert (last.full_buckets > 0) == (alike != "equal")  # one text stands for all
    assert late <= 2 * early


async def _index(server: LocalServer, namespace: str) -> RedisIndex:
    settings = load({"NEARSTREAM_REDIS": f"redis://{server.address}/0", "NEARSTREAM_NAMESPACE": namespace})
    deployment = Deployment.of(replace(settings, retention_seconds=0))
    return await RedisIndex.open(deployment.index_address(), may_create=True)


def _alike(kind: str, first: int, count: int) -> list[Admission]:
    text = "one text" if kind == "equal" else None
    return [admission(str(number), bands=["shared"], text=text) for number in range(first, first + count)]


async def _admit(index: RedisIndex, batch: Sequence[Admission]) -> None:
    for start in range(0, len(batch), 32):
        await index.admit(batch[start : start + 32])


async def _dear_seconds(indexes: Sequence[RedisIndex], batch: Sequence[Admission]) -> list[float]:
    """Return the 99th percentile of single-document calls for each index.

    The calls alternate, so that other load on the machine affects all indexes alike.
    """
    seconds: list[list[float]] = [[] for _ in indexes]
    for one in batch:
        for index, spent in zip(indexes, seconds, strict=True):
            began = time.perf_counter()
            await index.admit([one])
            spent.append(time.perf_counter() - began)
    return [sorted(spent)[len(spent) * 99 // 100] for spent in seconds]


@pytest.mark.parametrize("words", ["mmh3", "Thue-Morse"])
def test_f19_texts_made_to_collide_are_told_apart(words: str) -> None:
    """No two of 1,024 texts get equal digests, and their estimates are sound.

    The intervals contain the true resemblance as often as they claim.
    """
    draw = Random(19)
    one, other = _colliding_words() if words == "mmh3" else _thue_morse_words()
    texts = [_mixed(one, other, draw.uniform(0.03, 0.2), draw) for _ in range(1_024)]
    signed = [_signed(str(number), text) for number, text in enumerate(texts)]
    assert len({signature.digest for signature in signed}) == len(set(texts)) == 1_024
    matcher = Matcher(local_store(), SCHEME, KEY)
    assert matcher.compare(_signed("a", " ".join(one)), _signed("b", " ".join(other))).verdict.relation == "unrelated"
    within = 0
    for a, b in (draw.sample(range(1_024), 2) for _ in range(400)):
        estimate = matcher.compare(signed[a], signed[b]).estimate.resemblance
        within += estimate.low <= _resemblance(texts[a], texts[b]) <= estimate.high
    assert within >= 0.93 * 400


def _mixed(one: Sequence[str], other: Sequence[str], share: float, draw: Random) -> str:
    return " ".join(pair[draw.random() < share] for pair in zip(one, other, strict=True))


def _colliding_words() -> tuple[list[str], list[str]]:
    """Return two lists of 300 numbered words, each from one of two colliding mmh3 blocks."""
    one, other = ("".join(filter(str.isalnum, block.decode())) for block in colliding_blocks())
    return [f"{one}{number}" for number in range(300)], [f"{other}{number}" for number in range(300)]


def _thue_morse_words() -> tuple[list[str], list[str]]:
    """Return two lists of 300 numbered words with 60 characters a or b.

    In the second list a and b are swapped.
    """
    word = thue_morse(60)
    swapped = word.translate(str.maketrans("ab", "ba"))
    return [f"{number}{word}" for number in range(300)], [f"{number}{swapped}" for number in range(300)]


def _signed(name: str, text: str) -> Signature:
    return SIGNER.sign(Document(id=name, text=text, observed_at=SEEN))


def _resemblance(one: str, other: str) -> float:
    a, b = _shingles(one), _shingles(other)
    return len(a & b) / len(a | b)


def _shingles(text: str) -> set[tuple[bytes, ...]]:
    words = bytes(normalize(text).data).split()
    return {tuple(words[start : start + SHINGLE_WORDS]) for start in range(len(words) - SHINGLE_WORDS + 1)}
