"""An index that was lost comes back from the signatures, and nothing is said twice for it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from redis.asyncio import Redis

from schemas.codec import encode_signature
from schemas.dead_letter import REASON_HEADER
from schemas.document import Document
from schemas.record import Outgoing, header
from schemas.topics import SIGNATURES
from tests.integration.deployment import LINES, TEXTS, deployed, ids, until
from workers import assembly
from workers.local_redis import redis_server
from workers.local_server import running


async def test_f05_a_rebuild_emits_nothing_and_finds_everything(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[:120]))
                await deployment.drained()
            before = await deployment.events()
            await _wipe(url)
            refused = deployment.run("worker")
            assert refused.returncode == 78
            assert b"nearstream rebuild" in refused.stderr
            done = deployment.run("rebuild", "--quiet")
            assert (done.returncode, done.stdout) == (0, b"admitted 120, removed 0, skipped 0\n")
            assert len(await deployment.events()) == len(before)
            again = deployment.run("rebuild")
            assert again.returncode == 1
            assert b"holds documents" in again.stderr
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[120:]))
                await deployment.drained()
            assert ids(await deployment.events()) == ids(await deployment.oracle())


async def test_a_running_worker_waits_for_the_rebuild_and_goes_on(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            with deployment.worker() as worker:
                await deployment.send(deployment.examples(LINES[:60]))
                await deployment.drained()
                await _wipe(url)
                await deployment.send(deployment.examples(LINES[60:80]))
                await until(lambda: deployment.logged("nearstream rebuild"), 20)
                assert deployment.run("rebuild", "--quiet").returncode == 0
                await deployment.drained()
                assert worker.poll() is None
            assert ids(await deployment.events()) == ids(await deployment.oracle())


async def test_a_rebuild_admits_no_signature_that_was_refused(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            key = assembly.hash_key(deployment.settings)
            ahead = Document(id="ahead", text=TEXTS[0], observed_at=datetime.now(UTC) + timedelta(days=3))
            signature = assembly.signer(deployment.settings, key).sign(ahead)
            record = Outgoing(
                deployment.topic(SIGNATURES), signature.document_key.encode(), encode_signature(signature), []
            )
            with deployment.worker():
                await deployment.send([record])
                await deployment.drained()
            assert [header(letter.headers, REASON_HEADER) for letter in await deployment.letters()] == [
                b"invalid_signature"
            ]
            await _wipe(url)
            assert deployment.run("rebuild", "--quiet").stdout == b"admitted 0, removed 0, skipped 1\n"
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[:1]))
                await deployment.drained()
            assert await deployment.events() == []


async def _wipe(url: str) -> None:
    """Empties a server of our own."""
    client: Redis = Redis.from_url(url)
    await client.flushall()
    await client.aclose()
