"""Loops without work, which only carry records between topics."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.faust_runtime import serve
from nearstream.workers.worker.topology import create_app

RESULT = b"x" * 200
BARE_BATCH = 200


@dataclass(frozen=True)
class Carrying:
    """A decision that returns one result for each record, almost for free."""

    topic: str

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Decide on a batch, as the object behind an agent does."""
        return [ProducerRecord(self.topic, record.key, RESULT, []) for record in records]


def safe(settings: Settings) -> None:
    """Run our loop on Faust with the settings of a worker."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    health, carrying = Health(), Carrying(settings.topic_prefix + SIGNATURES.name)
    app = create_app(settings, health, carrying, None, None)  # type: ignore[arg-type] # it has the `decide` of signing
    serve(app, health, loop, settings.stop_seconds)


async def bare(settings: Settings, committed: Callable[[Sequence[Any]], None]) -> None:
    """Run a careful loop without Faust.

    It waits for the acknowledgement of all results before it commits the offsets, then calls `committed` with the
    records.
    """
    source, target = settings.topic_prefix + DOCUMENTS.name, settings.topic_prefix + SIGNATURES.name
    options: dict[str, Any] = {"bootstrap_servers": settings.kafka}
    consumer = AIOKafkaConsumer(
        source, group_id=settings.group, enable_auto_commit=False, auto_offset_reset="earliest", **options
    )
    async with AIOKafkaProducer(acks="all", enable_idempotence=True, **options) as producer, consumer:
        while True:
            found = await consumer.getmany(timeout_ms=200, max_records=BARE_BATCH)
            records = [record for part in found.values() for record in part]
            sent = [await producer.send(target, key=record.key, value=RESULT) for record in records]
            await asyncio.gather(*sent)
            if records:
                await consumer.commit()
                committed(records)
