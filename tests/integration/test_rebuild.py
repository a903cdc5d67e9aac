"""A lost index is rebuilt from the signatures without repeating an event."""

import json
import time
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
from tests.support.matching import prose

BAD = "A text on which the rebuild of this test fails, and of which no other document has any word."
READ = rebuild.arrival_of


async def test_f05_a_rebuild_that_lost_its_newest_writes_is_taken_up_and_says_nothing_again(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It skips what was refused and what cannot be matched.

    Families keep their ids and ordinals, also if their founder is gone.
    """
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path, index_slots="3") as deployment:
            with deployment.worker():
                await deployment.send([*deployment.examples(LINES[:100]), *_mails(deployment, 0, 1)])
                await deployment.drained()
                # They come before their founder in a rebuild, which goes by the time of records.
                hour_ago_ms = time.time_ns() // 1_000_000 - 3_600_000
                await deployment.send([each._replace(timestamp_ms=hour_ago_ms) for each in _mails(deployment, 1, 20)])
                await deployment.drained()
                family, founder = await _founder_of_mails(deployment)
                await deployment.send([ProducerRecord(deployment.topic(DOCUMENTS), founder.encode(), None, [])])
                await deployment.send([deployment.document("bad", BAD), _of_another_day(deployment)])
                await deployment.drained()
            events, before = await deployment.events(), await _size_and_time(deployment, family)
            ordinals = await _ordinals(deployment, family)
            assert before[0] == 19
            async with Redis.from_url(url) as client:
                await client.flushall()
            refused = deployment.run("worker")
            assert (refused.returncode, b"nearstream rebuild" in refused.stderr) == (78, True)

            made = Deployment.of(deployment.settings)
            monkeypatch.setattr(rebuild, "cooperative_yield", _losing(url, made.index_address()))
            with pytest.raises(IndexUnavailableError, match="run `nearstream rebuild` again"):
                await rebuild.rebuild(made, made.index_address(), 30.0, quiet=True)
            monkeypatch.setattr(rebuild, "arrival_of", _failing)
            done = await rebuild.rebuild(made, made.index_address(), 30.0, quiet=True)
            assert (0 < done["admitted"] < 100, done["removed"], done["skipped"]) == (True, 1, 2)
            again = deployment.run("rebuild")
            assert (again.returncode, b"holds documents" in again.stderr) == (1, True)
            assert await _size_and_time(deployment, family) == before
            assert len(await deployment.events()) == len(events)

            with deployment.worker():
                await deployment.send([*deployment.examples(LINES[100:]), *_mails(deployment, 20, 25)])
                await deployment.send(_mails(deployment, 1, 9, "Dear client"))  # their next states
                await deployment.drained()
            said = {each.id: each.family.id for each in await deployment.verdicts()}
            assert {said[f"m{number}"] for number in range(20, 25)} == {family}
            later = await _ordinals(deployment, family)
            assert (later | ordinals, sorted(later.values())) == (later, list(range(1, 26)))
            reasons = [header(letter.headers, REASON_HEADER) for letter in await deployment.letters()]
            assert sorted(filter(None, reasons)) == [b"invalid_signature", b"unprocessable"]
            assert await disagreement(deployment) == {}


async def test_an_index_moves_to_many_slots_while_documents_arrive(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as former:
        new = former.changed(namespace=f"{former.settings.namespace}-2", index_slots="6")
        with former.worker():
            await former.send(former.examples(LINES[:80]))
            await former.drained()
            done = new.run("rebuild", "--quiet")
            assert (done.returncode, done.stdout) == (0, b"admitted 80, removed 0, skipped 0\n")
            await former.send(former.examples(LINES[80:110]))
            await former.drained()
        refused = former.changed(index_slots="6").run("worker")
        assert refused.returncode == 78
        assert b"spread over 1 slots, not 6" in refused.stderr
        with new.worker():
            await new.send(new.examples(LINES[110:140]))
            await new.drained()
        assert (await disagreement(new)).keys() <= {"differing values"}  # of what both have matched


def _mails(deployment: LocalDeployment, first: int, end: int, opening: str = "Dear customer") -> list[ProducerRecord]:
    """Return mails of one family."""
    texts = {f"m{number}": f"{opening} {number}, {prose(3)}" for number in range(first, end)}
    return deployment.examples([json.dumps({"id": name, "text": text}).encode() for name, text in texts.items()])


def _of_another_day(deployment: LocalDeployment) -> ProducerRecord:
    """Return a signature of a document from the future, which workers refuse."""
    ahead = Document(id="ahead", text=TEXTS[0], observed_at=datetime.now(UTC) + timedelta(days=3))
    signature = Deployment.of(deployment.settings).signer().sign(ahead)
    key = signature.document_key.encode()
    return ProducerRecord(deployment.topic(SIGNATURES), key, encode_signature(signature), [])


async def _founder_of_mails(deployment: LocalDeployment) -> tuple[str, str]:
    """Return the id of the family of the mails, and that of its founder."""
    families = [each.family for each in await deployment.verdicts() if each.id.startswith("m") and each.family.founder]
    ((family, founder),) = {(each.id, each.founder.id) for each in families if each.founder}
    return family, founder


async def _ordinals(deployment: LocalDeployment, family: str) -> dict[str, int]:
    """Return the ordinals of a family, as the last verdict about each document names them."""
    return {each.id: each.family.ordinal for each in await deployment.verdicts() if each.family.id == family}


async def _size_and_time(deployment: LocalDeployment, family: str) -> tuple[int, int]:
    (found,) = [each for each in await deployment.families() if each.family_id == family]
    return found.size, found.first_seen_ms


def _failing(record: ConsumerRecord, *rest: Any) -> Arrival:  # noqa: ANN401 - the arguments of the function
    """Read a record as a rebuild does, but fail on one of them."""
    if record.key == b"default/bad":
        raise OverflowError
    return READ(record, *rest)


def _losing(url: str, address: IndexAddress) -> Callable[[], Callable[[], Awaitable[None]]]:
    """Return what a rebuild calls for each batch. At the third one, Redis loses the calls of the running lane."""
    batches = count()

    def losing() -> Callable[[], Awaitable[None]]:
        batch, pause = next(batches), cooperative_yield()

        async def pausing() -> None:
            if batch == 2:
                await _forget_calls(url, address)
            await pause()

        return pausing

    return losing


async def _forget_calls(url: str, address: IndexAddress) -> None:
    """Let all slots seem to have lost the calls of the running lane."""
    async with Redis.from_url(url) as client:
        for slot in range(address.slots):
            lanes = (address.tag(slot) + KeyKind.LANE).decode()
            for key in [key async for key in client.scan_iter(match=f"{lanes}*", count=10_000)]:
                await client.delete(key)
