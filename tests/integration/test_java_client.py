"""Java's producer, which Kafka Connect uses too, puts a document key into the partition that ours does."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.kafka.partitioning import partition_of
from tests.devstack.kafka import tool
from tests.support.deployment import LocalDeployment, deployed

pytestmark = pytest.mark.foreign

IDS = [f"p-{number}" for number in range(40)] + [
    "https://a.example/flood?b=1&a=2",
    "Wasserstände 日本語",
    "<77@d.example>",
    "x",
]
END_SECONDS = 120


def _send_from_java(deployment: LocalDeployment, topic: str, keys: list[str]) -> None:
    """Send a record under each key with the console producer of Kafka."""
    producer = tool("org.apache.kafka.tools.ConsoleProducer")
    options = ["--bootstrap-server", deployment.settings.kafka, "--topic", topic]
    reader = ["--property", "parse.key=true", "--property", "key.separator=\t"]
    done = subprocess.run(
        [*producer, *options, *reader],
        input="".join(f"{key}\tfrom Java\n" for key in keys),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=END_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_java_and_python_put_document_keys_into_equal_partitions(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    keys = [document_key("news", each) for each in IDS]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(SIGNATURES)
        await asyncio.to_thread(_send_from_java, deployment, topic, keys)
        await deployment.send([ProducerRecord(topic, key.encode(), b"from Python", []) for key in keys])
        found: dict[bytes, list[tuple[bytes, int]]] = {}
        for record in await deployment.read(SIGNATURES.name):
            found.setdefault(record.key or b"", []).append((record.value or b"", record.partition))
        assert found.keys() == {key.encode() for key in keys}
        for key, sent in found.items():
            expected = partition_of(key, SIGNATURES.partitions)
            assert sorted(sent) == [(b"from Java", expected), (b"from Python", expected)], key
        assert len({partition for sent in found.values() for _, partition in sent}) == SIGNATURES.partitions
