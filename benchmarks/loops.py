"""Two ways to carry a record from one topic to another, each as a process: `python -m benchmarks.loops safe|bare`."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from schemas.record import Outgoing, Record
from schemas.topics import DOCUMENTS, SIGNATURES
from workers.app import create_app, serve
from workers.health import Health
from workers.settings import Settings, load

RESULT = b"x" * 200
BARE_BATCH = 200


@dataclass(frozen=True)
class Carrying:
    """Decides one result for each record, at next to no cost."""

    topic: str

    async def decide(self, records: Sequence[Record]) -> list[Outgoing]:
        """As an agent's own object decides."""
        return [Outgoing(self.topic, record.key, RESULT, []) for record in records]


def safe(settings: Settings) -> None:
    """Our loop, on Faust, with the settings of a worker."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    health, carrying = Health(), Carrying(settings.topic_prefix + SIGNATURES.name)
    with tempfile.TemporaryDirectory() as datadir:
        app = create_app(settings, datadir, health, carrying, None)  # type: ignore[arg-type] # it decides as signing does
        serve(app, health, loop, settings.stop_seconds)


async def bare(settings: Settings) -> None:
    """What a careful loop costs without Faust: results confirmed, then the offsets."""
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


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.argv[1] == "safe":
        safe(load())
    else:
        try:
            asyncio.run(bare(load()))
        except KeyboardInterrupt:
            sys.exit(0)
