"""Records with header names that are not UTF-8, in a batch with other records."""

import json
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords

from nearstream.schemas.documents.record import ConsumerRecord, Headers, header
from nearstream.schemas.topics.dead_letter import REASON_HEADER, Reason
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import records as kafka_records
from tests.support.deployment import TEXTS, LocalDeployment, deployed
from tests.support.foreign_headers import CAFE, send_batch

TOLD = "caf\\xe9"


@pytest.mark.parametrize("compression", [None, "zstd"])
async def test_b54_a_foreign_header_name_is_read_with_its_bytes_told(
    kafka: str, redis_url: str, tmp_path: Path, compression: str | None
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        sent = _batch(deployment, 3)
        await send_batch(kafka, sent, compression)
        await send_batch(kafka, sent[:2], compression)
        records = await deployment.read(DOCUMENTS.name)
    expected = [_told(record) for record in (*sent, *sent[:2])]
    assert records == [record._replace(offset=offset) for offset, record in enumerate(expected)]


async def test_a_range_begins_and_ends_inside_such_a_batch(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        sent = _batch(deployment, 0)
        await send_batch(kafka, sent)
        found = kafka_records.read_range(deployment.settings, sent[0].topic, 0, 2, 5)
        assert [record async for record in found] == [_told(record) for record in sent[2:5]]


async def test_aiokafka_alone_refuses_the_whole_batch(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """If this test fails one day, that part of `workers/kafka/batches.py` is no longer needed."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        sent = _batch(deployment, 3)
        await send_batch(kafka, sent)
        place = TopicPartition(sent[0].topic, 0)
        async with kafka_client.consumer(deployment.settings, 10.0) as client:
            with patch.object(fetcher, "MemoryRecords", MemoryRecords):
                client.assign([place])
                with pytest.raises(UnicodeDecodeError):
                    await client.getmany(place, timeout_ms=10_000)


async def test_b54_a_worker_takes_such_a_document_and_writes_letters_about_others(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic, now_ms = deployment.topic(DOCUMENTS), 1000 * int(time.time())
        foreign: Headers = [(CAFE, b"x")]
        values = {name: json.dumps({"id": name, "text": TEXTS[0]}).encode() for name in ("before", "foreign", "behind")}
        sent = [
            ConsumerRecord(topic, 0, offset, now_ms, None, value, foreign if name == "foreign" else [])
            for offset, (name, value) in enumerate(values.items())
        ]
        sent.append(ConsumerRecord(topic, 0, 3, now_ms, None, b"not json", foreign))
        with deployment.worker() as worker:
            await send_batch(kafka, sent)
            await deployment.drained()
            assert worker.poll() is None
        assert await deployment.named() == set(values)
        (letter,) = await deployment.letters()
        assert letter.value == b"not json"
        assert letter.headers[0] == (TOLD, b"x")
        assert header(letter.headers, REASON_HEADER) == Reason.NOT_JSON.encode()


def _batch(deployment: LocalDeployment, bad: int) -> list[ConsumerRecord]:
    topic, now_ms = deployment.topic(DOCUMENTS), 1000 * int(time.time())
    headers: Headers = [("a", None), ("b", b"\xff"), ("a", b"")]
    records = [
        ConsumerRecord(
            topic, 0, offset, now_ms - 7 * offset, b"key" if offset % 2 else None, b"%d" % offset * 50, headers
        )
        for offset in range(6)
    ]
    records[bad] = records[bad]._replace(key=b"\xff", value=None, headers=[*headers, (CAFE, b"x"), (CAFE, None)])
    return records


def _told(record: ConsumerRecord) -> ConsumerRecord:
    return record._replace(headers=[(TOLD if name == CAFE else name, value) for name, value in record.headers])
