"""Send a batch of records whose header names may be any bytes.

aiokafka's fast batch builder cannot write such names, so the slow one is used.
"""

from collections.abc import Sequence
from unittest.mock import patch

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from nearstream.schemas.documents.record import ConsumerRecord

CAFE = "café"


class LatinName(str):
    """A header name that is sent as Latin-1, though headers are UTF-8."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        return super().encode("latin-1")


async def send_batch(kafka: str, records: Sequence[ConsumerRecord], compression: str | None = None) -> None:
    """Send these records of one partition as one batch, with header names as Latin-1."""
    slow = patch("aiokafka.producer.message_accumulator.DefaultRecordBatchBuilder", _DefaultRecordBatchBuilderPy)
    async with AIOKafkaProducer(
        bootstrap_servers=kafka, compression_type=compression, max_batch_size=2**20
    ) as producer:
        with slow:
            batch = producer.create_batch()
            for record in records:
                headers = [(LatinName(name), value) for name, value in record.headers]
                assert batch.append(timestamp=record.timestamp_ms, key=record.key, value=record.value, headers=headers)
            await (await producer.send_batch(batch, records[0].topic, partition=records[0].partition))
