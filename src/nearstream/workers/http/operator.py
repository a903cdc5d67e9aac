"""Show and change what needs a token for all collections: dead letters and silences of alerts."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from nearstream.schemas.alerts.alert import Silence, silence_key
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.live.state import LiveReplay, LiveReplayRequest, LiveSilenceRequest
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.learning import OutboxFullError, Sends
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.requests import RefusedError, asked_for_all, json_response, require_all, unconfirmed
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.operations.replay import SENT, plan_replay, replay_dead_letters
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment

Replay = Callable[[str, bool], Awaitable[Counter[str]]]  # takes a reason, and whether nothing is to be sent

log = logging.getLogger(__name__)

_REQUEST_BYTES = 4096
_WAIT_SECONDS = 10.0  # for Kafka, before a replay begins
_SAY_SECONDS = 5.0


def add_operator_routes(app: web.Application, feed: Feed, outbox: Sends, topic: str, replay: Replay | None) -> None:
    """Let an operator see dead letters, and silence alerts.

    The outbox takes records of the topic of silences. `replay` sends the records of a reason again, if that is offered.
    """
    handlers: dict[str, Handler] = {
        "dead_letters": partial(_list, feed),
        "dead_letter": partial(_show, feed),
        "silence": partial(_silence, feed, outbox, topic),
    }
    if replay is not None:
        handlers["replay"] = partial(_replay, replay, asyncio.Lock())
    add_handlers(app, handlers)


async def replay_reason(deployment: Deployment, reason: str, is_dry_run: bool) -> Counter[str]:
    """Send the records of a reason again, or count what would be sent."""
    run = plan_replay if is_dry_run else replay_dead_letters
    return await run(deployment, reason, _WAIT_SECONDS, Progress("dead letters", quiet=True))


async def _list(feed: Feed, request: web.Request) -> web.Response:
    require_all(request)
    return json_response(feed.letters.shown(feed.now_ms()))


async def _show(feed: Feed, request: web.Request) -> web.Response:
    require_all(request)
    detail = feed.letters.detail(request.match_info["id"])
    if detail is None:
        raise RefusedError(404, "unknown_dead_letter", "expected one of the newest: `nearstream dlq show` shows all")
    return json_response(detail)


async def _replay(replay: Replay, replaying: asyncio.Lock, request: web.Request) -> web.Response:
    expected = 'expected {"reason": "...", "dry_run": true}'
    asked = await asked_for_all(request, LiveReplayRequest, _REQUEST_BYTES, expected)
    if replaying.locked():
        raise RefusedError(429, "busy", "expected one replay at a time", again=True)
    async with replaying:
        return await _replayed(replay, asked)


async def _replayed(replay: Replay, asked: LiveReplayRequest) -> web.Response:
    try:
        outcome = await replay(asked.reason, asked.dry_run)
    except (KafkaUnreachableError, KafkaError, SettingsError, IndexUnavailableError) as error:
        log.warning("dead letters were not replayed: %s", error)
        told = f"{type(error).__name__}: the log of the server says more"
        raise RefusedError(503, "replay_failed", told) from None
    sent = outcome.pop(SENT, 0)
    if not asked.dry_run:
        log.info("replayed dead letters of the reason %r: %d sent", asked.reason, sent)
    return json_response(LiveReplay(sent=sent, skipped=dict(outcome)))


async def _silence(feed: Feed, outbox: Sends, topic: str, request: web.Request) -> web.Response:
    expected = "expected collection, name and subject of an alert, and hours from 0 to 168"
    asked = await asked_for_all(request, LiveSilenceRequest, _REQUEST_BYTES, expected)
    said = None
    if asked.hours != 0:
        now = from_milliseconds(feed.now_ms())
        until = None if asked.hours is None else now + timedelta(hours=asked.hours)
        said = Silence(collection=asked.collection, name=asked.name, subject=asked.subject, since=now, until=until)
    key = silence_key(asked.collection, asked.name, asked.subject)
    try:
        value = None if said is None else msgspec.json.encode(said)
        await outbox.send(ProducerRecord(topic, key, value, []), _SAY_SECONDS)
    except (KafkaUnreachableError, OutboxFullError, SettingsError) as error:
        log.warning("an alert was not silenced: %s", error)
        raise unconfirmed("kafka_unavailable") from None
    feed.alarms.said.say(key, said)
    return json_response(feed.state(""))
