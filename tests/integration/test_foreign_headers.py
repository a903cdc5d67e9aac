"""Records with header names that are not UTF-8, in a batch with other records."""

import time
from pathlib import Path
from unittest.mock import patch

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords

from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import records as kafka_records
from tests.support.deployment import LocalDeployment, deployed
from tests.support.foreign_headers import CAFE, send_batch

TOLD = "caf\\xe9"


async def test_b54_a_foreign_header_name_is_read_with_its_bytes_told(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        sent = _batch(deployment)
        await send_batch(kafka, sent)
        # If this fails one day, that part of `workers/kafka/batches.py` is no longer needed.
        async with kafka_client.consumer(deployment.settings, 10.0) as client:
            with patch.object(fetcher, "MemoryRecords", MemoryRecords):
                client.assign([TopicPartition(sent[0].topic, 0)])
                with pytest.raises(UnicodeDecodeError):
                    await client.getmany(timeout_ms=10_000)
        await send_batch(kafka, sent[:4], "zstd")
        expected = [_told(record)._replace(offset=offset) for offset, record in enumerate((*sent, *sent[:4]))]
        assert await deployment.read(DOCUMENTS.name) == expected
        inside = kafka_records.read_range(deployment.settings, sent[0].topic, 0, 2, 5)
        assert [record async for record in inside] == expected[2:5]


def _batch(deployment: LocalDeployment) -> list[ConsumerRecord]:
    topic, now_ms = deployment.topic(DOCUMENTS), 1000 * int(time.time())
    headers: Headers = [("a", None), ("b", b"\xff"), ("a", b"")]
    records = [
        ConsumerRecord(
            topic, 0, offset, now_ms - 7 * offset, b"key" if offset % 2 else None, b"%d" % offset * 50, headers
        )
        for offset in range(6)
    ]
    records[3] = records[3]._replace(key=b"\xff", value=None, headers=[*headers, (CAFE, b"x"), (CAFE, None)])
    return records


def _told(record: ConsumerRecord) -> ConsumerRecord:
    return record._replace(headers=[(TOLD if name == CAFE else name, value) for name, value in record.headers])
