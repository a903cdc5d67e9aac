"""Let a person say that an alert was seen, or keep its subject silent."""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec
from aiohttp import web

from nearstream.schemas.alerts.silence import Silence, silence_key
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.live.state import LiveSilenceRequest
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http import openapi_live
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.outbox import Outbox, OutboxFullError
from nearstream.workers.http.refusals import asked_for_all, unconfirmed
from nearstream.workers.http.requests import (
    json_response,
)
from nearstream.workers.kafka.errors import KafkaUnreachableError

Say = Callable[[bytes, bytes | None], Awaitable[None]]  # takes the key and the value of a record of `silences`

_SECONDS = 5.0
_REQUEST_BYTES = 4096
_FEED = web.AppKey("feed_with_alerts", Feed)
_SAY: web.AppKey[Say] = web.AppKey("say_silence")

log = logging.getLogger(__name__)


def add_silence_route(app: web.Application, feed: Feed, say: Say) -> None:
    """Add the path of silences to an application.

    Args:
        app: The application.
        feed: Where the alerts are.
        say: Sends a record to the topic of silences.
    """
    app[_FEED], app[_SAY] = feed, say
    app.router.add_post(openapi_live.SILENCES_PATH, _silence)


async def say_in_kafka(outbox: Outbox, topic: str, key: bytes, value: bytes | None) -> None:
    """Send a record to the topic of silences.

    Raises:
        KafkaUnreachableError: Kafka has not confirmed it.
        OutboxFullError: Too many records are unconfirmed.
        SettingsError: The broker refuses it.
    """
    await outbox.send(ProducerRecord(topic, key, value, []), _SECONDS)


async def say_nowhere(_key: bytes, _value: bytes | None) -> None:
    """Keep a silence in the memory of this process alone, as in the demo."""


async def _silence(request: web.Request) -> web.Response:
    expected = "expected collection, name and subject of an alert, and hours from 0 to 168"
    asked = await asked_for_all(request, LiveSilenceRequest, _REQUEST_BYTES, expected)
    if isinstance(asked, web.Response):
        return asked
    feed, said = request.app[_FEED], None
    if asked.hours != 0:
        now = from_milliseconds(feed.now_ms())
        until = None if asked.hours is None else now + timedelta(hours=asked.hours)
        said = Silence(collection=asked.collection, name=asked.name, subject=asked.subject, since=now, until=until)
    key = silence_key(asked.collection, asked.name, asked.subject)
    try:
        await request.app[_SAY](key, None if said is None else msgspec.json.encode(said))
    except (KafkaUnreachableError, OutboxFullError, SettingsError) as error:
        log.warning("an alert was not silenced: %s", error)
        return unconfirmed("kafka_unavailable")
    feed.alarms.silence(key, said)
    return json_response(feed.state(""))
