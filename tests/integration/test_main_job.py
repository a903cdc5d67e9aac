"""The main job on a real Kafka and a real Redis against a single process fed one document at a time."""

import asyncio
import json
import random
from pathlib import Path

from schemas.codec import encode_event
from schemas.events import Event, Retraction
from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, SIGNATURES
from tests.integration.deployment import LINES, TEXTS, deployed, ids, until
from workers.local_redis import redis_server
from workers.local_server import running


def _assert_one_value_for_each_id(events: list[Event]) -> None:
    """Restated events are the same to the byte, but for what they say of the buckets of that moment."""
    values = {(event.event_id, encode_event(event)) for event in events}
    assert len(values) == len(ids(events))


async def test_two_workers_say_what_a_single_process_says(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(), deployment.worker():
            await deployment.send(deployment.examples(LINES))
            await deployment.drained()
        events, expected = await deployment.events(), await deployment.oracle()
        assert len(ids(expected)) > 100
        assert ids(events) == ids(expected)
        _assert_one_value_for_each_id(events)
        assert await deployment.letters() == []


async def test_a_removed_document_is_retracted_and_never_named_again(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        with deployment.worker():
            await deployment.send([deployment.document(name, TEXTS[0]) for name in ("a", "b")])
            await deployment.drained()
            await deployment.send([Outgoing(topic, b"a", None, []), Outgoing(topic, b"unknown", None, [])])
            await deployment.drained()
            await deployment.send([deployment.document("c", TEXTS[0])])
            await deployment.drained()
        events = await deployment.events()
        retractions = [event for event in events if isinstance(event, Retraction)]
        assert [event.document_id for event in retractions] == ["a"] * 4
        assert len(ids(list(retractions))) == 1
        pairs = {(event.newer.id, event.older.id) for event in events if not isinstance(event, Retraction)}
        assert pairs == {("b", "a"), ("c", "b")}


async def test_many_large_documents_at_once_are_delivered(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Their signatures fill batches, and a broker holds a batch to the limit of its topic."""
    draw = random.Random(7)
    words = [f"{draw.getrandbits(40):x}" for _ in range(5000)]
    lines = [
        json.dumps({"id": f"large-{number}", "text": " ".join(draw.choices(words, k=6000))}).encode()
        for number in range(120)
    ]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        await deployment.send(deployment.examples(lines))
        with deployment.worker() as worker:
            await deployment.drained()
            assert worker.poll() is None
        assert len(await deployment.read(SIGNATURES.name)) == len(lines)


async def test_a_stop_during_an_outage_is_prompt_and_loses_nothing(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            with deployment.worker() as worker:
                await deployment.send(deployment.examples(LINES[:40]))
                await deployment.drained()
                await asyncio.to_thread(redis.pause)
                await deployment.send(deployment.examples(LINES[40:60]))
                await until(lambda: deployment.logged("outage: "), 20)
                worker.terminate()
                assert await asyncio.to_thread(worker.wait, 10) == 1
            await asyncio.to_thread(redis.resume)
            with deployment.worker():
                await deployment.drained()
            assert ids(await deployment.events()) == ids(await deployment.oracle())


async def test_roles_share_one_group(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker("sign"), deployment.worker("match"):
            await deployment.send(deployment.examples(LINES[:60]))
            await deployment.drained()
        assert ids(await deployment.events()) == ids(await deployment.oracle())
