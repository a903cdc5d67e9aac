"""A broker that answers with errors: retried in place, or an end without acknowledgement."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.record import Outgoing
from schemas.topics import ALL, DOCUMENTS, SIGNATURES
from tests.fault.mock_broker import MockBroker, Request, mock_broker
from tests.fault.reading import origins
from tests.integration.deployment import Deployment, until
from workers import kafka_offsets
from workers.exits import Exit
from workers.settings import load

DOCUMENT_COUNT = 40
PROGRAM = ("tests.fault.entry", "without_topic_check")


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as broker:
        yield broker


@pytest.fixture
def deployment(broker: MockBroker, tmp_path: Path) -> Deployment:
    """Signing alone: no index, and the topics made by hand."""
    given = {"NEARSTREAM_KAFKA": broker.address, "NEARSTREAM_STATUS": "off"}
    for topic in ALL:
        broker.create(topic.name, 2)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    return Deployment(load(given), inherited | given, tmp_path)


@pytest.mark.parametrize("error", [6, 7, 19, 20, 56])
async def test_f29_a_produce_error_that_passes_is_retried_in_place(
    broker: MockBroker, deployment: Deployment, error: int
) -> None:
    await _send(deployment)
    broker.answer(Request.PRODUCE, [error] * 3)
    with deployment.worker("sign", PROGRAM) as worker:
        await until(lambda: _all_acknowledged(deployment), 60)
        assert worker.poll() is None
    assert await _signed(deployment) == DOCUMENT_COUNT


@pytest.mark.parametrize(
    ("error", "code"), [*((error, Exit.NO) for error in (10, 45, 47, -1)), (29, Exit.MISCONFIGURED)]
)
async def test_f29_a_produce_error_that_stays_ends_the_worker_and_acknowledges_nothing(
    broker: MockBroker, deployment: Deployment, error: int, code: Exit
) -> None:
    await _send(deployment)
    broker.answer(Request.PRODUCE, [error] * 50)
    with deployment.worker("sign", PROGRAM) as worker:
        assert await asyncio.to_thread(worker.wait, 60) == code
    signed, acknowledged = await _signed(deployment), await _acknowledged(deployment)
    assert acknowledged <= signed < DOCUMENT_COUNT
    broker.answer_well(Request.PRODUCE)
    with deployment.worker("sign", PROGRAM):
        await until(lambda: _all_acknowledged(deployment), 60)
    assert await _signed(deployment) == DOCUMENT_COUNT


@pytest.mark.parametrize("error", [14, 16, 22, 25, 27])
async def test_f30_a_refused_commit_is_made_good(broker: MockBroker, deployment: Deployment, error: int) -> None:
    """Faust books a refused commit as done; the broker knows better, and what it knows counts."""
    await _send(deployment)
    broker.answer(Request.OFFSET_COMMIT, [error] * 3)
    with deployment.worker("sign", PROGRAM):
        await until(lambda: _all_signed(deployment), 60)
        await _send(deployment)
        await until(lambda: _all_acknowledged(deployment), 60)
    assert await _signed(deployment) == 2 * DOCUMENT_COUNT


async def _send(deployment: Deployment) -> None:
    values = [json.dumps({"id": str(number), "text": f"text {number}"}).encode() for number in range(DOCUMENT_COUNT)]
    await deployment.send([Outgoing(DOCUMENTS.name, None, value, []) for value in values])


async def _signed(deployment: Deployment) -> int:
    """Documents that have a signature."""
    return len({place for place, _ in origins(await deployment.read(SIGNATURES.name))})


async def _all_signed(deployment: Deployment) -> bool:
    return await _signed(deployment) == DOCUMENT_COUNT


async def _acknowledged(deployment: Deployment) -> int:
    ends = await kafka_offsets.end_offsets(deployment.settings, DOCUMENTS.name, 10.0)
    known = await kafka_offsets.committed(deployment.settings, DOCUMENTS.name, ends)
    return sum(max(offset, 0) for offset in known.values())


async def _all_acknowledged(deployment: Deployment) -> bool:
    ends = await kafka_offsets.end_offsets(deployment.settings, DOCUMENTS.name, 10.0)
    return await _acknowledged(deployment) == sum(ends.values())
