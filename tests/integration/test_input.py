"""A worker reads through what Kafka may put between records, and through any compression."""

import asyncio
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.partitioning import partition_of
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until

CODECS = ("gzip", "snappy", "lz4", "zstd")
TRANSACTIONS = ("first", "aborted", "second")
IDS = ("a", "b", "c")


async def test_b56_b59_b60_a_worker_reads_through_compression_transactions_and_gaps(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """Markers of transactions and gaps of a compacted topic are crossed, and what was aborted is processed."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        for codec in CODECS:
            async with AIOKafkaProducer(bootstrap_servers=kafka, compression_type=codec) as producer:
                document = deployment.document(codec, TEXTS[0])
                await producer.send_and_wait(document.topic, document.value, document.key)
        async with AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=deployment.settings.group) as producer:
            for name in TRANSACTIONS:
                document = deployment.document(name, TEXTS[0])
                await producer.begin_transaction()
                await producer.send_and_wait(document.topic, document.value, partition=0)
                await (producer.abort_transaction() if name == "aborted" else producer.commit_transaction())
        await _compact_soon(deployment)
        with deployment.worker("sign"):
            for text in (*TEXTS[1:4], TEXTS[0]):
                await deployment.send([deployment.document(name, text) for name in IDS])
                await until(lambda: _signed(deployment))
        await until(lambda: _has_gaps(deployment))
        with deployment.worker() as worker:
            await until(lambda: _are_named(deployment, {*CODECS, *TRANSACTIONS, *IDS}))
            await deployment.send([deployment.document("last", TEXTS[0])])
            await until(lambda: _are_named(deployment, {"last"}))
            assert worker.poll() is None


async def _are_named(deployment: LocalDeployment, names: set[str]) -> bool:
    return names <= await deployment.named()


async def _compact_soon(deployment: LocalDeployment) -> None:
    """Set segments of a tenth of a second, which the broker compacts in its next round."""
    configs = {
        **SIGNATURES.config(deployment.settings.retention_seconds),
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
    }
    name = deployment.topic(SIGNATURES)
    async with kafka_client.admin(deployment.settings, 10.0) as client:
        await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs)])


async def _signed(deployment: LocalDeployment) -> bool:
    """Return whether every document sent so far has a signature and its segment is over."""
    await asyncio.sleep(0.1)
    documents = await deployment.read(DOCUMENTS.name)
    ends = await kafka_offsets.end_offsets(deployment.settings, deployment.topic(SIGNATURES), 10.0)
    return sum(ends.values()) == len(documents)


async def _has_gaps(deployment: LocalDeployment) -> bool:
    """Return whether compaction has left gaps in every partition of a document that had several states."""
    ends = await kafka_offsets.end_offsets(deployment.settings, deployment.topic(SIGNATURES), 10.0)
    left = [record.partition for record in await deployment.read(SIGNATURES.name)]
    several = {partition_of(f"default/{name}".encode(), SIGNATURES.partitions) for name in IDS}
    return all(left.count(partition) < ends[partition] for partition in several)
