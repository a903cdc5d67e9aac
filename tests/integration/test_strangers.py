"""What a site or a sender sends halts nobody, and what an operator lets pass halts a worker once."""

import asyncio
import random
from collections import Counter
from email.message import EmailMessage
from functools import partial
from pathlib import Path

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ProducerRecord, header
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import ALERTS, DOCUMENTS
from nearstream.workers.config.exit_codes import Exit
from tests.support.api import served
from tests.support.deployment import TEXTS, LocalDeployment, deployed, stop, until

KEY, LIMIT_BYTES = "k" * 32, 40_000
MAIL = {"Content-Type": "message/rfc822"}


def _binaries(deployment: LocalDeployment, name: str, value: str, count: int) -> list[ProducerRecord]:
    """Return contents that are no text, each under its own key, with a header that says where they come from."""
    draw, headers = random.Random(name), [("content-type", b"text/plain")]
    return [
        ProducerRecord(
            deployment.topic(DOCUMENTS),
            f"{value}-{number}".encode(),
            draw.randbytes(3_000),
            [*headers, (name, value.encode())],
        )
        for number in range(count)
    ]


def _mail(number: int, body: str) -> bytes:
    message = EmailMessage()
    message["From"], message["Message-ID"] = "a@a.example", f"<{number}@a.example>"
    message.set_content(f"<p>{'&#1;' * 25}</p><p>{body}</p>", subtype="html")
    return message.as_bytes()


async def _alerts(deployment: LocalDeployment) -> set[str]:
    return {decode_json(Alert, each.value or b"").subject for each in await deployment.read(ALERTS.name)}


async def test_n22_a_hostile_site_and_a_hostile_sender_halt_nobody_and_are_named(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    limits = {"hash_key": KEY, "max_text_bytes": str(LIMIT_BYTES)}
    async with (
        deployed(kafka, redis_url, tmp_path, **limits) as deployment,
        served(redis_url, **deployment.given()) as api,
    ):
        junk = [
            *_binaries(deployment, "nearstream-url", "https://files.evil.example/a", 200),
            *_binaries(deployment, "nearstream-label-sender-domain", "0a1b2c3d", 150),
        ]
        with deployment.worker() as worker, deployment.worker("alert"):
            await deployment.send([*junk, *(deployment.document(f"honest-{n}", TEXTS[n]) for n in range(8))])
            for number in range(3):
                status, answer = await api.send("POST", "/v1/check?learn=1", _mail(number, TEXTS[8]), **MAIL)
                assert (status, answer["learned"]) == (200, True)
            # A worker would refuse it, so it is not said to be learned.
            status, answer = await api.send("POST", "/v1/check?learn=1", _mail(3, "many words " * LIMIT_BYTES), **MAIL)
            assert (status, answer["error"]) == (413, "too_large")
            await deployment.drained()
            told = {"site evil.example", "sender-domain 0a1b2c3d"}
            await until(partial(_are_told, deployment, told))
            assert worker.poll() is None
        assert not await deployment.logged(" halted: ")
        honest = {*(f"honest-{n}" for n in range(8)), *(f"<{n}@a.example>" for n in range(3))}
        assert {verdict.id for verdict in await deployment.verdicts()} == honest
        assert Counter(letter.key for letter in await deployment.letters()) == Counter(each.key for each in junk)


async def _are_told(deployment: LocalDeployment, subjects: set[str]) -> bool:
    return await _alerts(deployment) == subjects


async def test_a_worker_that_is_to_drain_passes_once_what_halts_it(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        bad = [ProducerRecord(topic, b"%d" % number, b"{bad", []) for number in range(800)]
        await deployment.send([*bad[:400], deployment.document("behind", TEXTS[0])])
        for halts in (1, 2):
            with deployment.worker() as worker:
                await until(partial(_halts, deployment, halts))
                assert await asyncio.to_thread(stop, worker) == Exit.UNREADABLE
        with deployment.worker(program=("nearstream", "worker", "--drain")):
            await deployment.drained()
            assert [verdict.id for verdict in await deployment.verdicts()] == ["behind"]
            letters = {header(each.headers, "nearstream-dead-id") for each in await deployment.letters()}
            assert len(letters) == 400
            await deployment.send(bad[400:])  # which are newer than what may pass
            await until(partial(_halts, deployment, 3))


async def _halts(deployment: LocalDeployment, count: int) -> bool:
    return sum(" halted: " in log for log in await asyncio.to_thread(deployment.log_texts)) == count
