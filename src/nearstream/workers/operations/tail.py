"""Follow the verdicts and events of all topics."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event
from nearstream.schemas.topics.table import EVENT_TOPICS
from nearstream.schemas.verdicts.events import Event, Retraction, kind_of
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records


@dataclass(frozen=True)
class EventFilter:
    """Which verdicts and events to show. A record that is neither passes the empty filter only."""

    types: frozenset[str] = frozenset()  # Types of events, as in their JSON: also `verdict`. Empty: all.
    collection: str = ""  # The collection of the documents. Empty: all.

    def passes(self, event: Event | None) -> bool:
        """Return whether an event is shown, or a record that is no event (None)."""
        if event is None:
            return not self.types and not self.collection
        return (not self.types or kind_of(event) in self.types) and self.collection in ("", event.collection)


@dataclass(frozen=True)
class Arrival:
    """A record of an event topic."""

    record: ConsumerRecord  # the record
    event: Event | None  # Its verdict or event. None: the record holds neither in a form of this release.

    @property
    def detected_at(self) -> datetime | None:
        """When the event was sent, by the header `ce_time`, or None if the header is missing or not a time."""
        try:
            time = datetime.fromisoformat((header(self.record.headers, "ce_time") or b"").decode("ascii"))
        except ValueError:
            return None
        return time if time.tzinfo else None


async def follow_events(
    settings: Settings, wait_seconds: float, wanted: EventFilter, *, since_ms: int | None, until_end: bool
) -> AsyncGenerator[Arrival]:
    """Yield the wanted verdicts and events of all topics as they arrive.

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
            if wanted.passes(event) and (not isinstance(event, Retraction) or record.topic == topics[0]):
                yield Arrival(record, event)


def event_of(record: ConsumerRecord) -> Event | None:
    """Return the event of a record, None if it holds none in a form of this release."""
    try:
        return decode_event(record.value or b"")
    except InvalidMessageError:
        return None
