"""The main job on real services agrees with a single process.

That process reads one document at a time.
"""

import asyncio
import json
import random
from pathlib import Path

from nearstream.schemas.topics.table import SIGNATURES
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, TEXTS, deployed, ids, until


async def test_two_workers_say_what_a_single_process_says(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(), deployment.worker():
            await deployment.send(deployment.examples(LINES))
            await deployment.drained()
        verdicts, events = await deployment.verdicts(), await deployment.events()
        assert len(verdicts) == len(ids(verdicts)) == len(LINES)
        assert sum(verdict.events for verdict in verdicts) == len(events) > 100
        assert await disagreement(deployment) == {}
        assert await deployment.letters() == []


async def test_a_worker_that_is_asked_for_no_verdicts_sends_none(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path, verdicts="none") as deployment:
        with deployment.worker():
            await deployment.send([deployment.document(name, TEXTS[0]) for name in ("a", "b")])
            await deployment.drained()
        assert await deployment.verdicts() == []
        assert len(await deployment.events()) == 1


async def test_many_large_documents_at_once_are_delivered(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Their signatures fill batches, which must not exceed the broker's limit of the topic."""
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
                await until(lambda: deployment.logged("outage: "))
                worker.terminate()
                assert await asyncio.to_thread(worker.wait, 30) == 0
            await asyncio.to_thread(redis.resume)
            with deployment.worker():
                await deployment.drained()
            assert await disagreement(deployment) == {}


async def test_roles_share_one_group(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker("sign"), deployment.worker("match"):
            await deployment.send(deployment.examples(LINES[:60]))
            await deployment.drained()
        assert await disagreement(deployment) == {}
