"""A worker with a wrong clock names a topic that does not take the broker's time."""

import asyncio
from pathlib import Path

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka import client as kafka_client
from tests.support.deployment import deployed
from tests.support.faketime import clock_ahead


async def test_a_topic_that_takes_the_time_of_senders_is_named(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        name = deployment.topic(DEAD_LETTERS)
        async with kafka_client.admin(deployment.settings, 10.0) as client:
            config = {**DEAD_LETTERS.config(0), "message.timestamp.type": "CreateTime"}
            await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, config)])
        with deployment.worker(**clock_ahead(2 * 3600)) as worker:
            await deployment.send([ProducerRecord(deployment.topic(DOCUMENTS), b"bad", b"[]", [])])
            assert await asyncio.to_thread(worker.wait, 60) == Exit.MISCONFIGURED
        assert await deployment.logged(f"topic {name}: message.timestamp.type: expected LogAppendTime")
        assert await deployment.logged(f"topic {name}: the broker refuses a record's time, which is too far")
