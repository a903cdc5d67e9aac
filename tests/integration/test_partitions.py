"""The number of partitions: chosen when topics are created, and fixed for `signatures` from then on."""

import asyncio
from pathlib import Path

from aiokafka.admin import NewPartitions

from nearstream.schemas.topics.table import ALL, DEAD_LETTERS, DOCUMENTS, SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import topics as kafka_topics
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, deployed, until


async def test_f36_one_partition_suffices_and_no_more_are_taken_but_of_topics_without_keys(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(SIGNATURES)
        await deployment.delete_topics(ALL)
        created = deployment.run("topics", "create", "--partitions", "1")
        assert (created.returncode, created.stdout.count(b" OK\n")) == (Exit.OK, len(ALL))
        before = {topic.name: DEAD_LETTERS.partitions if topic is DEAD_LETTERS else 1 for topic in ALL}
        assert await _partitions(deployment) == before

        refused = deployment.run("topics", "create", "--partitions", "12")
        assert refused.returncode == Exit.MISCONFIGURED
        assert f"topic {topic} has 1 partitions and cannot get 12: " in refused.stderr.decode()
        assert b"another NEARSTREAM_TOPIC_PREFIX" in refused.stderr
        await _grow(deployment, DOCUMENTS.name, 3)
        reported = deployment.run("topics", "create", "--partitions", "1")
        assert (reported.returncode, reported.stdout.count(b"partitions: ")) == (Exit.NO, 1)
        assert b"partitions: 1 asked for, found 3\n" in reported.stdout
        assert await _partitions(deployment) == before | {DOCUMENTS.name: 3}
        for wrong in (["check", "--partitions", "6"], ["create", "--partitions", "0"], ["create", "--partitions=1025"]):
            assert deployment.run("topics", *wrong).returncode == Exit.USAGE

        with deployment.worker() as worker:
            await deployment.send(deployment.examples(LINES[:60]))
            await deployment.drained()
            assert deployment.run("doctor").returncode == Exit.OK
            assert await disagreement(deployment) == {}
            await _grow(deployment, SIGNATURES.name, 2)
            assert await asyncio.to_thread(worker.wait, 60) == Exit.MISCONFIGURED
        assert await deployment.logged(f"topic {topic} grew from 1 to 2 partitions: ")
        for role in ("sign", "match", "all"):
            refused = deployment.run("worker", role)
            assert refused.returncode == Exit.MISCONFIGURED
            assert f"topic {topic} has 2 partitions, but had 1" in refused.stderr.decode()
            assert b"NEARSTREAM_TOPIC_PREFIX" in refused.stderr
        assert f"topic {topic} has 2 partitions, but had 1" in deployment.run("doctor").stdout.decode()
        assert deployment.run("rebuild").returncode == Exit.MISCONFIGURED


async def _partitions(deployment: LocalDeployment) -> dict[str, int]:
    states = await kafka_topics.topic_states(deployment.settings, 10.0)
    return {state.topic.name: state.partitions for state in states}


async def _grow(deployment: LocalDeployment, name: str, count: int) -> None:
    async with kafka_client.admin(deployment.settings, 10.0) as client:
        topic = deployment.settings.topic_prefix + name
        await client.create_partitions({topic: NewPartitions(total_count=count)})

        async def has_grown() -> bool:  # the broker shows this a moment later
            return len((await kafka_client.describe(client, [topic]))[topic]) == count

        await until(has_grown)
