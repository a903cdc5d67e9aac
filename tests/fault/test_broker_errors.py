"""A broker that answers with errors: a worker retries, or ends without acknowledging."""

import asyncio
import json
import os
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import ALL, DEAD_LETTERS, DOCUMENTS, SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import load
from nearstream.workers.kafka import offsets as kafka_offsets
from tests.fault.mock_broker import MockBroker, Request, mock_broker
from tests.fault.reading import origins
from tests.fault.runner import Worker
from tests.support.deployment import LocalDeployment, until

DOCUMENT_COUNT = 40


@dataclass(frozen=True)
class Case:
    """A broker and a deployment that only signs, without index, with topics made by hand."""

    broker: MockBroker
    deployment: LocalDeployment

    def worker(self) -> AbstractContextManager[Worker]:
        return self.deployment.worker("sign", ("tests.fault.entry", "unchecked_broker"))


@contextmanager
def case(folder: Path, redis_url: str) -> Iterator[Case]:
    folder.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    with mock_broker() as broker:
        for topic in ALL:
            broker.create(topic.name, 2)
        given = {
            "NEARSTREAM_KAFKA": broker.address,
            "NEARSTREAM_REDIS": redis_url,
            "NEARSTREAM_NAMESPACE": uuid.uuid4().hex[:12],
            "NEARSTREAM_STATUS": "off",
        }
        yield Case(broker, LocalDeployment(load(given), inherited | given, folder))


def test_f29_f30_a_produce_error_that_passes_is_retried_and_a_refused_commit_made_good(
    redis_url: str, tmp_path: Path
) -> None:
    """Faust considers a refused commit as done, so the broker's committed offset counts."""

    async def meet(produce_error: int, commit_error: int) -> None:
        with case(tmp_path / str(produce_error), redis_url) as one:
            await _send(one.deployment)
            one.broker.answer(Request.PRODUCE, [produce_error] * 3)
            with one.worker() as worker:
                await until(lambda: _all_acknowledged(one.deployment))
                one.broker.answer(Request.OFFSET_COMMIT, [commit_error])
                await _send(one.deployment)
                await until(lambda: _all_acknowledged(one.deployment))
                assert worker.poll() is None
            assert await _signed(one.deployment) == 2 * DOCUMENT_COUNT

    _at_once(meet(6, 16), meet(20, 22), meet(56, 27))


def test_f29_a_produce_error_that_stays_ends_the_worker_and_acknowledges_nothing(
    redis_url: str, tmp_path: Path
) -> None:
    async def meet(error: int, code: Exit) -> None:
        with case(tmp_path / str(error), redis_url) as one:
            await _send(one.deployment)
            one.broker.answer(Request.PRODUCE, [error] * 50)
            with one.worker() as worker:
                assert await asyncio.to_thread(worker.wait, 90) == code
            assert await _signed(one.deployment) == await _acknowledged(one.deployment) == 0
            one.broker.answer_well(Request.PRODUCE)
            with one.worker():
                await until(lambda: _all_acknowledged(one.deployment))
            assert await _signed(one.deployment) == DOCUMENT_COUNT

    _at_once(*(meet(error, Exit.NO) for error in (10, 47)), meet(29, Exit.MISCONFIGURED))


@pytest.mark.long
async def test_f24_dead_letters_that_may_not_be_written_end_the_worker(redis_url: str, tmp_path: Path) -> None:
    with case(tmp_path / "29", redis_url) as one:
        await one.deployment.send([ProducerRecord(DOCUMENTS.name, None, b"bad", [])])
        one.broker.refuse(DEAD_LETTERS.name, 29)
        with one.worker() as worker:
            assert await asyncio.to_thread(worker.wait, 60) == Exit.MISCONFIGURED
        assert await _acknowledged(one.deployment) == 0
        (log,) = one.deployment.logs.glob("*.log")
        assert DEAD_LETTERS.name in log.read_text()


def _at_once(*cases: Coroutine[Any, Any, None]) -> None:
    """Run these cases at once, and wait for all of them.

    Each has an event loop of its own, because it blocks its loop: a topic of the mock broker takes up to a second, and
    a worker takes seconds to stop. In one loop for all, the connections of the other cases would miss their deadlines.
    """
    with ThreadPoolExecutor(len(cases)) as threads:
        running = [threads.submit(asyncio.run, each) for each in cases]
    for each in running:
        each.result()


async def _send(deployment: LocalDeployment) -> None:
    values = [json.dumps({"id": str(number), "text": f"text {number}"}).encode() for number in range(DOCUMENT_COUNT)]
    await deployment.send([ProducerRecord(DOCUMENTS.name, None, value, []) for value in values])


async def _signed(deployment: LocalDeployment) -> int:
    """Return the number of documents that have a signature."""
    return len({place for place, _ in origins(await deployment.read(SIGNATURES.name))})


async def _acknowledged(deployment: LocalDeployment) -> int:
    ends = await kafka_offsets.end_offsets(deployment.settings, DOCUMENTS.name, 10.0)
    known = await kafka_offsets.committed(deployment.settings, DOCUMENTS.name, ends)
    return sum(max(offset, 0) for offset in known.values())


async def _all_acknowledged(deployment: LocalDeployment) -> bool:
    ends = await kafka_offsets.end_offsets(deployment.settings, DOCUMENTS.name, 10.0)
    return await _acknowledged(deployment) == sum(ends.values())
