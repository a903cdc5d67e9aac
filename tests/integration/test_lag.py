"""The lag that nearstream reports equals that of Kafka's own tool."""

import asyncio
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.workers.config.settings import own_group
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka.lag import lag_reader
from tests.devstack.kafka import tool
from tests.support.deployment import DOCUMENT_PARTITIONS, LocalDeployment, deployed

AGE_SECONDS = 600


async def test_lag_equals_the_brokers_and_the_command_says_no_above_the_limit(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        made_ms = 1000 * (int(time.time()) - AGE_SECONDS)
        await deployment.send([ProducerRecord(topic, b"one key", b"{}", [], made_ms)] * 40)
        told = deployment.run("lag", "--json", "--max", "40")
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        assert (told.returncode, len(rows)) == (0, DOCUMENT_PARTITIONS + SIGNATURES.partitions)
        (behind,) = [row for row in rows if row["records"]]
        assert AGE_SECONDS <= behind.pop("seconds") < AGE_SECONDS + 60
        expected = {"group": deployment.settings.group, "topic": topic, "committed": None, "end": 40, "records": 40}
        assert {name: behind[name] for name in expected} == expected
        above = deployment.run("lag", "--max", "39")
        assert (above.returncode, len(above.stdout.splitlines())) == (1, 1 + len(rows))
        missing = replace(deployment, environment={**deployment.environment, "NEARSTREAM_TOPIC_PREFIX": "missing."})
        assert missing.run("lag").returncode == 78

        place = TopicPartition(topic, behind["partition"])
        other = TopicPartition(topic, (place.partition + 1) % DOCUMENT_PARTITIONS)
        await _send_in_a_transaction(kafka, other)
        await _commit(deployment, {place: 15, other: 1})
        async with lag_reader(deployment.settings, 10.0) as read_lag:
            found = {row.partition: row for row in await read_lag() if row.topic == topic}
        row, marked = found[place.partition], found[other.partition]
        ours = (row.committed, row.end, row.records)
        assert ours == (await asyncio.to_thread(_broker_says, deployment, topic))[place.partition] == (15, 40, 25)
        assert row.seconds is not None
        assert AGE_SECONDS <= row.seconds < AGE_SECONDS + 60
        # Nothing waits behind the marker of a transaction.
        assert (marked.committed, marked.end, marked.records, marked.seconds) == (1, 2, 0, None)


async def _send_in_a_transaction(kafka: str, place: TopicPartition) -> None:
    async with (
        AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=place.topic) as producer,
        producer.transaction(),
    ):
        await producer.send_and_wait(place.topic, b"{}", partition=place.partition)


async def test_the_group_of_alerts_is_told_once_it_reads(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        made_ms = 1000 * (int(time.time()) - AGE_SECONDS)
        topic = deployment.topic(VERDICTS)
        records = [ProducerRecord(topic, b"one key", b"{}", [], made_ms)] * 3
        await deployment.send(records)
        assert _groups(deployment) == {deployment.settings.group}
        assert "no worker `alert` has run" in _doctor_on_alerts(deployment)
        alert = own_group(deployment.settings, "alert")
        async with kafka_client.consumer(deployment.settings, 10.0) as client:
            places = [TopicPartition(topic, number) for number in range(VERDICTS.partitions)]
            ends = {tp: end for tp, end in (await client.end_offsets(places)).items() if end}
        await _commit(replace(deployment, settings=alert), {tp: end - 2 for tp, end in ends.items()})
        assert _groups(deployment) == {deployment.settings.group, alert.group}
        (behind,) = [row for row in _rows(deployment) if row["records"]]
        assert (behind["group"], behind["topic"], behind["records"]) == (alert.group, topic, 2)
        await _commit(replace(deployment, settings=alert), ends)
        assert "FAIL" in _doctor_on_alerts(deployment)
        assert "runs: start `nearstream worker alert`" in _doctor_on_alerts(deployment)


def _rows(deployment: LocalDeployment) -> list[dict[str, object]]:
    return [json.loads(line) for line in deployment.run("lag", "--json").stdout.splitlines()]


def _groups(deployment: LocalDeployment) -> set[object]:
    return {row["group"] for row in _rows(deployment)}


def _doctor_on_alerts(deployment: LocalDeployment) -> str:
    """Return the line of `doctor` about alerts."""
    (line,) = [
        line
        for line in deployment.run("doctor").stdout.decode().splitlines()
        if "alerts " in line and "topic" not in line
    ]
    return line


async def _commit(deployment: LocalDeployment, offsets: Mapping[TopicPartition, int]) -> None:
    settings = deployment.settings
    async with AIOKafkaConsumer(
        bootstrap_servers=settings.kafka, group_id=settings.group, enable_auto_commit=False
    ) as client:
        client.assign(list(offsets))
        await client.commit(dict(offsets))


def _broker_says(deployment: LocalDeployment, topic: str) -> dict[int, tuple[int, int, int]]:
    """Return committed offset, end and lag per partition, as Kafka's own tool prints them."""
    program = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    asked = ["--bootstrap-server", deployment.settings.kafka, "--describe", "--group", deployment.settings.group]
    told = subprocess.run([*tool(program), *asked], capture_output=True, text=True, timeout=60, check=True).stdout
    rows = [line.split() for line in told.splitlines() if topic in line]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows}
