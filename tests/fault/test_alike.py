"""Documents that are all alike, or made to collide."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.collisions import colliding_blocks, thue_morse
from tests.support.made_up import words

KEY = HashKey.public()
SCHEME = preset("fine", KEY)
SIGNER = Signer(SCHEME, KEY)
SEEN = datetime(2026, 3, 2, tzinfo=UTC)
SHINGLE_WORDS = 5
VOCABULARY = sorted(set(words(1, 20_000)))


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("alike", ["equal", "one band"])
async def test_f18_what_is_alike_without_end_costs_no_more(tmp_path: Path, count: int, alike: str) -> None:
    """Compare the slowest hundredth of 200 documents between two indexes.

    They alternate between an index of `count` documents and one of 100. The least of up to three tries counts.
    """
    with running(redis_server(tmp_path)) as server:
        (few, few_index), (many, many_index) = await _matcher(server, "few"), await _matcher(server, "many")
        for matcher in (few, many):
            await _match(
                matcher, _alike(alike, 0, 1)
            )  # equal texts of one batch enter all buckets before one is decided
        await _match(few, _alike(alike, 1, 99))
        for first in range(1, count, 500):
            await _match(many, _alike(alike, first, 500))
        early = late = math.inf
        for turn in range(3):
            seconds = await _dear_seconds((few, many), _alike(alike, count + 200 * turn, 200))
            early, late = min(early, seconds[0]), min(late, seconds[1])
            if late <= 2 * early:
                break
        await few_index.close()
        await many_index.close()
    assert (many.counts.full_buckets > 0) == (alike != "equal")  # one text stands for all
    assert late <= 2 * early


async def _matcher(server: LocalServer, namespace: str) -> tuple[Matcher, RedisIndex]:
    given = {"NEARSTREAM_REDIS": f"redis://{server.address}/0", "NEARSTREAM_NAMESPACE": namespace}
    deployment = Deployment.of(replace(load(given | {"NEARSTREAM_SCHEME": "fine"}), retention_seconds=0))
    index = await RedisIndex.open(deployment.index_address(), partitions=1, may_create=True)
    return deployment.matcher(index.store()), index


def _alike(kind: str, first: int, count: int) -> list[Arrival]:
    """Return documents that are equal, or of which only the first band of their sketches is."""
    shared, width = _signed("shared", " ".join(words(0, 60))), SCHEME.bands.rows * SCHEME.sketch.bits // 8
    found = []
    for number in range(first, first + count):
        one = shared
        if kind != "equal":
            own = _signed(str(number), " ".join(Random(number).choices(VOCABULARY, k=60)))
            one = with_fields(own, sketch=shared.sketch[:width] + own.sketch[width:])
        found.append(Arrival(f"default/{number}", with_fields(one, id=str(number))))
    return found


async def _match(matcher: Matcher, batch: Sequence[Arrival]) -> None:
    for start in range(0, len(batch), 32):
        await matcher.match_all(batch[start : start + 32])


async def _dear_seconds(matchers: Sequence[Matcher], batch: Sequence[Arrival]) -> list[float]:
    """Return the 99th percentile of single documents for each matcher.

    They alternate, so that other load on the machine affects all alike.
    """
    seconds: list[list[float]] = [[] for _ in matchers]
    for one in batch:
        for matcher, spent in zip(matchers, seconds, strict=True):
            began = time.perf_counter()
            await matcher.match_all([one])
            spent.append(time.perf_counter() - began)
    return [sorted(spent)[len(spent) * 99 // 100] for spent in seconds]


@pytest.mark.parametrize("colliding", ["mmh3", "Thue-Morse"])
def test_f19_texts_made_to_collide_are_told_apart(colliding: str) -> None:
    """No two of 512 texts get equal digests, and their estimates are sound.

    The intervals contain the true resemblance as often as they claim.
    """
    draw = Random(19)
    one, other = _colliding_words() if colliding == "mmh3" else _thue_morse_words()
    texts = [_mixed(one, other, draw.uniform(0.03, 0.2), draw) for _ in range(512)]
    signed = [_signed(str(number), text) for number, text in enumerate(texts)]
    assert len({signature.digest for signature in signed}) == len(set(texts)) == 512
    matcher = Matcher(local_store(), SCHEME, KEY)
    assert matcher.compare(_signed("a", " ".join(one)), _signed("b", " ".join(other))).verdict.relation == "unrelated"
    within = 0
    for a, b in (draw.sample(range(512), 2) for _ in range(250)):
        estimate = matcher.compare(signed[a], signed[b]).estimate.resemblance
        within += estimate.low <= _resemblance(texts[a], texts[b]) <= estimate.high
    assert within >= 0.93 * 250


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
