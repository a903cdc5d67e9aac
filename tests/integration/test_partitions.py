"""The number of partitions: chosen when topics are created, and fixed for `signatures` from then on."""

import asyncio
from pathlib import Path

from aiokafka.admin import NewPartitions

from nearstream.schemas.topics.table import ALL, DEAD_LETTERS, DOCUMENTS, NEAR_DUPLICATES, SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import topics as kafka_topics
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, deployed, until


async def test_f36_one_partition_suffices_and_documents_that_grew_are_read(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        await deployment.delete_topics(ALL)
        created = deployment.run("topics", "create", "--partitions", "1")
        assert (created.returncode, created.stdout.count(b" OK\n")) == (Exit.OK, len(ALL))
        assert await _partitions(deployment) == {
            topic.name: DEAD_LETTERS.partitions if topic is DEAD_LETTERS else 1 for topic in ALL
        }
        with deployment.worker():
            await deployment.send(deployment.examples(LINES[:60]))
            await deployment.drained()
        await _grow(deployment, DOCUMENTS.name, 3)
        with deployment.worker():
            await deployment.send(deployment.examples(LINES[60:80]))
            await deployment.drained()
            assert deployment.run("doctor").returncode == Exit.OK
        assert await disagreement(deployment) == {}


async def test_another_number_is_refused_for_signatures_and_reported_for_others(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        before = await _partitions(deployment)
        refused = deployment.run("topics", "create", "--partitions", "12")
        assert refused.returncode == Exit.MISCONFIGURED
        assert f"topic {deployment.topic(SIGNATURES)} has 6 partitions and cannot get 12: " in refused.stderr.decode()
        assert b"another NEARSTREAM_TOPIC_PREFIX" in refused.stderr
        await _grow(deployment, NEAR_DUPLICATES.name, 7)
        for options in ((), ("--dry-run",)):
            reported = deployment.run("topics", "create", "--partitions", "6", *options)
            assert reported.returncode == Exit.NO
            assert b"partitions: 6 asked for, found 7\n" in reported.stdout
            assert b"partitions: 6 asked for, found 4\n" in reported.stdout
        assert await _partitions(deployment) == before | {NEAR_DUPLICATES.name: 7}
        for wrong in (["check", "--partitions", "6"], ["create", "--partitions", "0"], ["create", "--partitions=1025"]):
            assert deployment.run("topics", *wrong).returncode == Exit.USAGE


async def test_f36_signatures_that_grew_end_the_worker_and_refuse_the_next_start(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(SIGNATURES)
        with deployment.worker() as worker:
            await until(lambda: deployment.logged(" assigned: "))
            await deployment.send(deployment.examples(LINES[:20]))
            await deployment.drained()
            await _grow(deployment, SIGNATURES.name, 8)
            assert await asyncio.to_thread(worker.wait, 60) == Exit.MISCONFIGURED
        assert await deployment.logged(f"topic {topic} grew from 6 to 8 partitions: ")
        for role in ("sign", "match", "all"):
            refused = deployment.run("worker", role)
            assert refused.returncode == Exit.MISCONFIGURED
            assert f"topic {topic} has 8 partitions, but had 6" in refused.stderr.decode()
            assert b"NEARSTREAM_TOPIC_PREFIX" in refused.stderr
        assert f"topic {topic} has 8 partitions, but had 6" in deployment.run("doctor").stdout.decode()
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
