"""A lost index is rebuilt from the signatures without repeating an event."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord, header
from nearstream.schemas.topics.codec import encode_signature
from nearstream.schemas.topics.dead_letter import REASON_HEADER
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.operations import rebuild
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.step import cooperative_yield
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.layout import KeyKind
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed


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
            assert await disagreement(deployment) == {}


async def test_an_index_moves_to_many_slots_while_documents_arrive(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as former:
        new = former.changed(namespace=f"{former.settings.namespace}-2", index_slots="6")
        with former.worker():
            await former.send(former.examples(LINES[:120]))
            await former.drained()
            done = new.run("rebuild", "--quiet")
            assert (done.returncode, done.stdout) == (0, b"admitted 120, removed 0, skipped 0\n")
            await former.send(former.examples(LINES[120:160]))
            await former.drained()
        refused = former.changed(index_slots="6").run("worker")
        assert refused.returncode == 78
        assert b"spread over 1 slots, not 6" in refused.stderr
        with new.worker():
            await new.send(new.examples(LINES[160:]))
            await new.drained()
        assert (await disagreement(new)).keys() <= {"differing values"}  # of what both have matched


async def test_families_keep_their_ids_in_a_rebuild(kafka: str, tmp_path: Path) -> None:
    """Also if the first founder was removed, and if copies come in another order than at first."""
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            with deployment.worker():
                await deployment.send([_mail(deployment, number) for number in range(60)])
                await deployment.drained()
                founders = {each.family.founder.id for each in await deployment.verdicts() if each.family.founder}
                assert len(founders) == 1
                (founder,) = founders
                await deployment.send([ProducerRecord(deployment.topic(DOCUMENTS), founder.encode(), None, [])])
                await deployment.drained()
            (before,) = await deployment.families()
            assert before.size == 59
            await _wipe(url)
            assert deployment.run("rebuild", "--quiet").returncode == 0
            (after,) = await deployment.families()
            assert (after.family_id, after.size, after.first_seen_ms) == (before.family_id, 59, before.first_seen_ms)
            with deployment.worker():
                await deployment.send([_mail(deployment, number) for number in range(60, 70)])
                await deployment.drained()
            said = {each.id: each.family for each in await deployment.verdicts()}
            assert {said[f"m{number}"].id for number in range(60, 70)} == {before.family_id}


def _mail(deployment: LocalDeployment, number: int) -> ProducerRecord:
    text = f"Dear customer {number}, {TEXTS[0]}"
    value = json.dumps({"id": f"m{number}", "text": text}).encode()
    return ProducerRecord(deployment.topic(DOCUMENTS), f"m{number}".encode(), value, [])


async def test_a_rebuild_admits_nothing_that_was_refused_or_cannot_be_matched(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = rebuild.arrival_of

    def failing(record: ConsumerRecord, *rest: Any) -> Arrival:  # noqa: ANN401 - the arguments of the function
        if record.key == b"default/bad":
            raise OverflowError
        return read(record, *rest)

    monkeypatch.setattr(rebuild, "arrival_of", failing)
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path) as deployment:
            made = Deployment.of(deployment.settings)
            ahead = Document(id="ahead", text=TEXTS[0], observed_at=datetime.now(UTC) + timedelta(days=3))
            signature = made.signer().sign(ahead)
            refused = ProducerRecord(
                deployment.topic(SIGNATURES), signature.document_key.encode(), encode_signature(signature), []
            )
            with deployment.worker():
                await deployment.send([refused])
                await deployment.send([deployment.document(name, TEXTS[0]) for name in ("one", "bad", "two")])
                await deployment.drained()
            await _wipe(url)
            rebuilt = await rebuild.rebuild(made, made.index_address(), 30.0, quiet=True)
            assert (rebuilt.admitted, rebuilt.skipped) == (2, 2)
            assert sorted(header(letter.headers, REASON_HEADER) or b"" for letter in await deployment.letters()) == [
                b"invalid_signature",
                b"unprocessable",
            ]


async def test_a_rebuild_whose_newest_writes_are_lost_is_taken_up_before_them(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path, index_slots="3") as deployment:
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[:120]))
                await deployment.drained()
            await _wipe(url)
            made, batches = Deployment.of(deployment.settings), count()

            def losing() -> Callable[[], Awaitable[None]]:
                batch, pause = next(batches), cooperative_yield()

                async def pausing() -> None:
                    if batch == 2:
                        await _forget_calls(url, made.index_address())
                    await pause()

                return pausing

            monkeypatch.setattr(rebuild, "cooperative_yield", losing)
            with pytest.raises(IndexUnavailableError, match="run `nearstream rebuild` again"):
                await rebuild.rebuild(made, made.index_address(), 30.0, quiet=True)
            assert next(batches) == 3
            done = deployment.run("rebuild", "--quiet")
            assert (done.returncode, done.stdout) == (0, b"admitted 56, removed 0, skipped 0\n")
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[120:]))
                await deployment.drained()
            assert await disagreement(deployment) == {}


async def _forget_calls(url: str, address: IndexAddress) -> None:
    """Let all slots seem to have lost the calls of the running lane."""
    async with Redis.from_url(url) as client:
        for slot in range(address.slots):
            lanes = (address.tag(slot) + KeyKind.LANE).decode()
            for key in [key async for key in client.scan_iter(match=f"{lanes}*", count=10_000)]:
                await client.delete(key)


async def _wipe(url: str) -> None:
    """Delete everything on a server that belongs to this test."""
    client: Redis = Redis.from_url(url)
    await client.flushall()
    await client.aclose()
