"""The event loop stays responsive while texts of the largest size are processed."""

import asyncio
import gc
import gzip
import json
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from time import thread_time

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.store.store import local_store
from nearstream.workers.pipeline import step
from nearstream.workers.pipeline.match import Matching
from tests.support.holding import slowness
from tests.support.matching import matching
from tests.support.signing import record, signer

LONGEST_SECONDS = 0.15  # of processor time
TEXT_BYTES = DocumentLimits().text_bytes
COPIES = 6
TRIES = 3


async def test_the_largest_texts_and_their_replay_hold_the_loop_only_for_a_moment() -> None:
    sent = documents()
    assert await longest_turn(lambda: signer().decide(sent)) < LONGEST_SECONDS
    signed, job = signatures(await signer().decide(sent)), new_matching()
    told = await job.decide(signed)
    assert len(told) > 2 * COPIES  # verdicts, and events about who came before
    assert await longest_turn(lambda: new_matching().decide(signed)) < LONGEST_SECONDS
    assert await longest_turn(lambda: job.decide(signed)) < LONGEST_SECONDS
    assert [sent.value for sent in await job.decide(signed)] == [sent.value for sent in told]


def _packed() -> bytes:
    """Return the largest value that unpacks."""
    field = random.Random(3).randbytes(100_000).hex()
    return gzip.compress(json.dumps({"text": field, "other": [field] * 70}).encode(), 1)


async def test_a_strange_value_of_the_largest_size_is_no_exception() -> None:
    texts = ["v" * TEXT_BYTES, "a\u0301" * (TEXT_BYTES // 3), "日本" * (TEXT_BYTES // 6), "𐌀 " * (TEXT_BYTES // 5)]
    records = [record(json.dumps({"text": text}).encode()) for text in texts]
    for strange in (*records, record(_packed(), [("content-encoding", b"gzip")])):
        assert await longest_turn(lambda strange=strange: signer().decide([strange])) < LONGEST_SECONDS  # type: ignore[misc]


async def test_work_without_a_pause_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    signed = signatures(await signer().decide(documents()))
    paused = await longest_turn(lambda: new_matching().decide(signed))
    monkeypatch.setattr(step, "YIELD_SECONDS", 3600.0)
    unpaused = await longest_turn(lambda: new_matching().decide(signed))
    assert unpaused > 4 * paused


def new_matching() -> Matching:
    """Return a matching that says everything."""
    return matching(store=local_store(), verdicts=frozenset(VERDICT_KINDS))


@pytest.fixture(autouse=True)
def own_heap() -> None:
    """Leave objects of other tests out of garbage collections, which take longer than a step in a large process."""
    gc.collect()
    gc.freeze()


async def longest_turn(work: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds of a usual processor that the event loop's longest step takes during this work.

    It is the best of three tries, because the system may provide memory slowly.
    """
    best = math.inf
    for _ in range(TRIES):
        watching = asyncio.create_task(_watch(turned := [0.0]))
        await asyncio.sleep(0)
        await work()
        await asyncio.sleep(0)
        watching.cancel()
        best = min(best, max(turned) / slowness())
        if best < LONGEST_SECONDS:
            break
    return best


async def _watch(turned: list[float]) -> None:
    while True:
        before = thread_time()
        await asyncio.sleep(0)
        turned.append(thread_time() - before)


@cache
def documents() -> list[ConsumerRecord]:
    return [record(copy(number), offset=number) for number in range(COPIES)]


def signatures(sent: Sequence[ProducerRecord]) -> list[ConsumerRecord]:
    """Return the records that signing sent, as matching reads them."""
    return [
        ConsumerRecord(each.topic, 0, offset, each.timestamp_ms or 0, each.key, each.value, each.headers)
        for offset, each in enumerate(sent)
    ]


def copy(number: int) -> bytes:
    """Return a document of the largest size with changes.

    One word in a hundred is changed and a tenth of it is moved.
    """
    chance = random.Random(number)
    words = list(WORDS)
    for at in range(number % 7, len(words), 100):
        words[at] = chance.choice(WORDS)
    start = chance.randrange(len(words) // 2)
    end = start + len(words) // 10
    moved = [*words[:start], *words[end:], *words[start:end]]
    return json.dumps({"id": str(number), "text": " ".join(moved).encode()[:TEXT_BYTES].decode()}).encode()


def _words() -> list[str]:
    chance = random.Random(5)
    vocabulary = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(20_000)]
    return chance.choices(vocabulary, k=TEXT_BYTES // 6)


WORDS = _words()
