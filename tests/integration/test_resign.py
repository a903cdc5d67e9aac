"""A replay signs documents again that a worker with another scheme has signed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import encode_signature
from nearstream.schemas.topics.dead_letter import REASON_HEADER
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.ingest.parse import Removal
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.operations.claim import claim_deployment
from nearstream.workers.operations.replay import (
    DOCUMENT_GONE,
    DOCUMENT_REFUSED,
    NO_DOCUMENT,
    UNREADABLE,
    NotSentError,
    Resigner,
)
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.sign import parse_unsigned
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, deployed, until

NO_LIMIT = {"dead_letter_max_ratio": "0"}


async def test_f23_documents_that_a_wrong_worker_has_signed_get_their_events_by_a_replay(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path, **NO_LIMIT) as deployment:
        wrong = deployment.changed(scheme="compact", namespace=f"{deployment.settings.namespace}-x")
        await deployment.send(deployment.examples(LINES[:60]))
        with wrong.worker("sign"):
            await until(lambda: _signed(deployment, 60))
        with deployment.worker():
            await deployment.drained()
            reasons = [header(letter.headers, REASON_HEADER) for letter in await deployment.letters()]
            assert reasons == [b"other_scheme"] * 60
            assert await deployment.events() == []

            refused = deployment.changed(scheme="compact").run("dlq", "replay")
            assert refused.returncode == Exit.MISCONFIGURED
            assert b"nearstream: NEARSTREAM_SCHEME: the signatures on " in refused.stderr
            planned = deployment.run("dlq", "replay", "--reason", "other_scheme", "--dry-run")
            assert planned.stderr.endswith(b"would be sent 60, skipped 0\n")
            assert not await _signed(deployment, 61)

            done = deployment.run("dlq", "replay", "--reason", "other_scheme")
            assert (done.returncode, done.stderr.splitlines()[-1]) == (0, b"sent 60, skipped 0")
            await deployment.drained()
            await deployment.send(deployment.examples(LINES[60:100]))
            await deployment.drained()
        assert len(await deployment.letters()) == 60
        assert len(await deployment.events()) > 5
        assert await disagreement(deployment) == {}
        again = deployment.run("dlq", "replay", "--reason", "other_scheme")
        assert again.stderr.splitlines()[-1].startswith(b"sent 0, skipped 60: ")


async def test_only_the_document_of_a_signature_is_signed_in_its_place(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        await deployment.send(deployment.examples(LINES[:2]))
        first, second = await deployment.read(DOCUMENTS.name)
        ours = _signature(deployment, first)
        wrong = _signature(deployment.changed(scheme="compact"), first)
        origin = Origin(second.topic, second.partition, second.offset)
        async with _resigning(deployment) as resign:
            with pytest.raises(SettingsError, match=r"NEARSTREAM_NAMESPACE: .* does not know the scheme"):
                await resign(_record(deployment, wrong))
        await claim_deployment(Deployment.of(deployment.settings), "all", 10.0)
        async with _resigning(deployment) as resign:
            assert await resign(_record(deployment, wrong)) == _record(deployment, ours)
            assert await resign(_record(deployment, ours)) == _record(deployment, ours)
            for signature, reason in (
                (replace(wrong, origin=None), NO_DOCUMENT),
                (replace(wrong, origin=Origin("elsewhere", 0, 0)), NO_DOCUMENT),
                (replace(wrong, origin=Origin(first.topic, 99, 0)), DOCUMENT_GONE),
                (replace(wrong, origin=Origin(first.topic, first.partition, 99)), DOCUMENT_GONE),
                (replace(wrong, origin=origin), DOCUMENT_GONE),
            ):
                with pytest.raises(NotSentError, match=reason):
                    await resign(_record(deployment, signature))
            with pytest.raises(NotSentError, match=UNREADABLE):
                await resign(_record(deployment, wrong)._replace(value=b"\xff"))
        async with _resigning(deployment.changed(max_text_bytes="1000")) as resign:
            with pytest.raises(NotSentError, match=DOCUMENT_REFUSED):
                await resign(_record(deployment, wrong))


@asynccontextmanager
async def _resigning(
    deployment: LocalDeployment,
) -> AsyncIterator[Callable[[ConsumerRecord], Awaitable[ConsumerRecord]]]:
    """Yield a function that replaces a refused record."""
    topics = [deployment.topic(DOCUMENTS), deployment.topic(SIGNATURES)]
    partitions = await kafka_offsets.partitions(deployment.settings, topics, 10.0)
    async with kafka_client.consumer(deployment.settings, 10.0) as client:
        resigner = Resigner(Deployment.of(deployment.settings), client, 10.0)

        async def resign(refused: ConsumerRecord) -> ConsumerRecord:
            return await resigner.resign(refused, partitions)

        yield resign


def _signature(deployment: LocalDeployment, document: ConsumerRecord) -> Signature:
    """Return the signature that a worker of this deployment makes of a document."""
    made = Deployment.of(deployment.settings)
    parsed = parse_unsigned(document, made.document_limits)
    assert not isinstance(parsed, Removal)
    return made.signer().sign(*parsed)


def _record(deployment: LocalDeployment, signature: Signature) -> ConsumerRecord:
    topic, key = deployment.topic(SIGNATURES), signature.document_key.encode()
    return ConsumerRecord(topic, 0, 7, signature.observed_at_ms, key, encode_signature(signature), [])


async def _signed(deployment: LocalDeployment, records: int) -> bool:
    return len(await deployment.read(SIGNATURES.name)) >= records
