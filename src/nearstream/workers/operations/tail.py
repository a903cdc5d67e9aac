"""Follow the verdicts and events of all topics."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event
from nearstream.schemas.topics.table import EVENT_TOPICS
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records


async def follow_events(
    settings: Settings, wait_seconds: float, *, since_ms: int | None, until_end: bool
) -> AsyncGenerator[tuple[ConsumerRecord, Event | None]]:
    """Yield the records of all event topics as they arrive, each with its verdict or event.

    They begin with those sent at a time or later, 0 for the oldest, None for the next, and may end with the last one
    that exists now.
    """
    topics = [settings.topic_prefix + topic.name for topic in EVENT_TOPICS]
    tps = await kafka_offsets.partitions(settings, topics, wait_seconds)
    async with (
        kafka_client.consumer(settings, wait_seconds, fetch_wait_ms=1 if until_end else 500) as client,
        aclosing(kafka_records.follow(client, tps, since_ms=since_ms, until_end=until_end)) as records,
    ):
        async for record in records:
            event = event_of(record)
            # A retraction is sent to every topic, but yielded once.
            if not isinstance(event, Retraction) or record.topic == topics[0]:
                yield record, event


def event_of(record: ConsumerRecord) -> Event | None:
    """Return the event of a record, None if it holds none in a form of this release."""
    try:
        return decode_event(record.value or b"")
    except InvalidMessageError:
        return None
