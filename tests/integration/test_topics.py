"""The topics of a deployment on a real broker are created, compared and limited."""

import time
from pathlib import Path

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import ALL, DOCUMENTS, SIGNATURES
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka import client as kafka_client
from tests.support.deployment import LocalDeployment, deployed, until

YEAR_9999_MS = 253_370_764_800_000
HOUR_MS = 3_600_000


async def test_topics_create_is_idempotent(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        await deployment.delete_topics(ALL)
        refused = deployment.run("topics", "create", "--replication", "3")
        assert (refused.returncode, b"cannot be created" in refused.stderr) == (78, True)
        for slots, partitions in (("7", ()), ("9", ("--partitions", "8"))):
            refused = deployment.changed(index_slots=slots).run("topics", "create", *partitions)
            assert (refused.returncode, b"NEARSTREAM_INDEX_SLOTS: expected at most" in refused.stderr) == (78, True)
        planned = deployment.run("topics", "check")
        assert (planned.returncode, planned.stdout.count(b" missing\n")) == (1, len(ALL))
        assert deployment.run("topics", "list").stdout == planned.stdout
        made = deployment.run("topics", "create")
        assert (made.returncode, made.stderr.count(b"created "), made.stdout.count(b" OK\n")) == (0, len(ALL), len(ALL))
        again = deployment.run("topics", "create")
        assert (again.returncode, again.stderr, again.stdout) == (0, b"", made.stdout)
        examined = deployment.changed(index_slots="7").run("doctor")
        assert (examined.returncode, b"NEARSTREAM_INDEX_SLOTS: expected at most 6" in examined.stdout) == (1, True)


async def test_topics_check_names_the_difference(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        wrong = {"max.message.bytes": "1000", "cleanup.policy": "delete"}
        await _set(deployment, SIGNATURES.name, {**SIGNATURES.config(deployment.settings.retention_seconds), **wrong})
        for action in ("check", "create"):
            told = deployment.run("topics", action)
            assert told.returncode == 1
            assert b"max.message.bytes: expected at least 131072, found 1000" in told.stdout
            assert b"cleanup.policy: expected compact,delete, found delete" in told.stdout
        stopped = deployment.run("worker")
        assert stopped.returncode == 78
        assert b"max.message.bytes" in stopped.stderr


async def test_b58_a_record_from_the_future_is_refused_by_the_broker_and_many_at_once_are_taken(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """A broker refuses a whole batch of records that is larger than the topic allows for one."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic, now_ms = deployment.topic(DOCUMENTS), round(1000 * time.time())
        for made_ms in (YEAR_9999_MS, now_ms + HOUR_MS + 60_000):
            with pytest.raises(SettingsError, match=f"topic {topic}: .* set the clock of this machine"):
                await deployment.send([ProducerRecord(topic, b"key", b"{}", [], made_ms)])
        await deployment.send([ProducerRecord(topic, b"key", b"{}", [], now_ms + HOUR_MS - 60_000)])
        assert len(await deployment.read(DOCUMENTS.name)) == 1
        for each in map(deployment.topic, ALL):
            await deployment.send([ProducerRecord(each, b"one key", b"x" * 8_192, [])] * 100)
        assert len(await deployment.read(*(each.name for each in ALL))) == 100 * len(ALL) + 1


async def _set(deployment: LocalDeployment, name: str, configs: dict[str, str]) -> None:
    async with kafka_client.admin(deployment.settings, 10.0) as client:
        await client.alter_configs([_resource(deployment, name, configs)])

    async def are_told() -> bool:
        return configs.items() <= (await _get(deployment, name)).items()

    await until(are_told)


async def _get(deployment: LocalDeployment, name: str) -> dict[str, str]:
    async with kafka_client.admin(deployment.settings, 10.0) as client:
        (response,) = await client.describe_configs([_resource(deployment, name, None)])
    ((_, _, _, _, entries),) = response.resources
    return {entry[0]: entry[1] for entry in entries}


def _resource(deployment: LocalDeployment, name: str, configs: dict[str, str] | None) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, deployment.settings.topic_prefix + name, configs)
