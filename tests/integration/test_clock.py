"""A worker with a wrong clock sends the broker's time, or names the clock to set."""

import asyncio
import time
from pathlib import Path

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka import client as kafka_client
from tests.support.deployment import LINES, LocalDeployment, deployed
from tests.support.faketime import clock_ahead

HOURS = 2


@pytest.fixture
def two_hours_ahead() -> dict[str, str]:
    return clock_ahead(3600 * HOURS)


async def test_it_sends_the_time_of_the_broker_or_names_a_topic_that_takes_the_senders(
    kafka: str, redis_url: str, tmp_path: Path, two_hours_ahead: dict[str, str]
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        name = deployment.topic(DEAD_LETTERS)
        async with kafka_client.admin(deployment.settings, 10.0) as client:
            config = {**DEAD_LETTERS.config(0), "message.timestamp.type": "CreateTime"}
            await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, config)])
        with deployment.worker(**two_hours_ahead) as worker:
            await deployment.send(_with_a_bad_record(deployment))
            assert await asyncio.to_thread(worker.wait, 60) == Exit.MISCONFIGURED
        assert await deployment.logged(f"topic {name}: message.timestamp.type: expected LogAppendTime")
        assert await deployment.logged(f"topic {name}: the broker refuses a record's time, which is too far")
        assert deployment.run("topics", "create", "--apply-config").returncode == Exit.OK
        began_ms = 1000 * time.time()
        with deployment.worker(**two_hours_ahead) as worker:
            await deployment.drained()
            assert worker.poll() is None
        ended_ms = 1000 * time.time()
        events = await deployment.read(*(topic.name for topic in EVENT_TOPICS))
        letters = await deployment.letters()
        assert (len(events) > 0, len(letters)) == (True, 1)
        assert all(began_ms <= record.timestamp_ms <= ended_ms for record in letters)


def _with_a_bad_record(deployment: LocalDeployment) -> list[ProducerRecord]:
    return [*deployment.examples(LINES[:60]), ProducerRecord(deployment.topic(DOCUMENTS), b"bad", b"[]", [])]
