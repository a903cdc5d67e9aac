"""Documents from files onto the `documents` topic, events from their topics to the terminal."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from schemas.codec import InvalidMessageError, decode_event
from schemas.events import Event, Retraction
from schemas.record import Outgoing, Record
from schemas.topics import DOCUMENTS, EVENT_TOPICS
from streams.completion import Bounds
from streams.receive import Received, Removal, receive
from workers import assembly, kafka_offsets, kafka_records, kafka_tools
from workers.settings import Settings
from workers.show import Progress
from workers.sources import count_lines, read

SEND_AT_ONCE = 500


@dataclass
class Produced:
    """How many documents went out, with place and reason of those that did not."""

    sent: int = 0
    refused: list[str] = field(default_factory=list)


async def produce(settings: Settings, paths: Sequence[str], wait_seconds: float, *, quiet: bool) -> Produced:
    """Sends every readable document of the paths; an unreadable one is told on stderr and left out.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
        OSError: A path cannot be read.
    """
    topic = settings.topic_prefix + DOCUMENTS.name
    bounds = assembly.bounds(settings)
    progress = Progress("sent", count_lines(paths), quiet)
    produced = Produced()
    await kafka_offsets.partitions(settings, [topic], wait_seconds)
    try:
        async with kafka_records.sender(settings, wait_seconds) as send_all:
            for batch in kafka_records.shares(_readable(topic, paths, bounds, produced), SEND_AT_ONCE):
                await send_all(batch)
                progress.step(len(batch))
    except (asyncio.CancelledError, KeyboardInterrupt):
        sys.stderr.write(f"interrupted: {progress.done} were confirmed\n")
        raise
    progress.end()
    produced.sent = progress.done
    return produced


def _readable(topic: str, paths: Sequence[str], bounds: Bounds, produced: Produced) -> Iterator[Outgoing]:
    """The documents of the paths; what is unreadable is noted and told."""
    for place, record in read(paths):
        try:
            key = _key(receive(record, bounds))
        except InvalidMessageError as error:
            produced.refused.append(place)
            sys.stderr.write(f"refused {place}: {error}\n")
        else:
            yield Outgoing(topic, key, record.value, record.headers)


async def follow_events(
    settings: Settings, wait_seconds: float, *, from_start: bool, until_end: bool
) -> AsyncGenerator[Event | Record]:
    """Events of all topics as they arrive; a record that is no event of this release comes as it is.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist.
    """
    topics = [settings.topic_prefix + topic.name for topic in EVENT_TOPICS]
    places = await kafka_offsets.partitions(settings, topics, wait_seconds)
    async with (
        kafka_tools.consumer(settings, wait_seconds) as client,
        aclosing(kafka_records.follow(client, places, from_start=from_start, until_end=until_end)) as records,
    ):
        async for record in records:
            try:
                event = decode_event(record.value or b"")
            except InvalidMessageError:
                yield record
            else:
                # A retraction stands on every topic; one of them tells it.
                if not isinstance(event, Retraction) or record.topic == topics[0]:
                    yield event


def _key(received: Received | Removal) -> bytes | None:
    """Lineage, else id: states of one thing stay in order, and a removal comes after its document."""
    if isinstance(received, Removal):
        return received.id.encode()
    return (received.document.lineage or received.document.id or "").encode()
