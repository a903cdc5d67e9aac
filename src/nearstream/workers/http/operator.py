"""Show what needs a token for all collections: dead letters, their replay, and the settings."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from nearstream.schemas.live.state import LiveReplay, LiveReplayRequest
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http import openapi_live
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.topology import deployment_of
from nearstream.workers.http.refusals import asked_for_all, for_all_only
from nearstream.workers.http.requests import (
    any_name,
    ask_again,
    json_response,
    refusal,
)
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.operations.replay import ReplayOutcome, Selection, plan_replay, replay_dead_letters
from nearstream.workers.operations.replay_log import TooManySpansError
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment

Replay = Callable[[str, bool], Awaitable[ReplayOutcome]]  # takes a reason, and whether nothing is to be sent

log = logging.getLogger(__name__)

_FEED = web.AppKey("feed_with_dead_letters", Feed)
_DEPLOYMENT = web.AppKey("deployment", Deployment)
_REPLAY: web.AppKey[Replay] = web.AppKey("replay")
_REPLAYING = web.AppKey("replaying", asyncio.Lock)
_REQUEST_BYTES = 1024
_WAIT_SECONDS = 10.0  # for Kafka, before a replay begins


def add_operator_routes(app: web.Application, feed: Feed, deployment: Deployment, replay: Replay | None) -> None:
    """Add the paths of dead letters and settings to an application.

    Args:
        app: The application.
        feed: Where the dead letters are.
        deployment: The deployment of the server.
        replay: Sends the records of a reason again. None: this is not offered.
    """
    app[_FEED], app[_DEPLOYMENT] = feed, deployment
    app.router.add_get(openapi_live.SETTINGS_PATH, _settings)
    app.router.add_get(openapi_live.LETTERS_PATH, _list)
    app.router.add_get(any_name(openapi_live.LETTER_PATH), _show)
    if replay is not None:
        app[_REPLAY], app[_REPLAYING] = replay, asyncio.Lock()
        app.router.add_post(openapi_live.REPLAY_PATH, _replay)


async def replay_reason(deployment: Deployment, reason: str, is_dry_run: bool) -> ReplayOutcome:
    """Send the records of a reason again, or count what would be sent.

    Raises:
        KafkaUnreachableError: No broker answered.
        KafkaError: A permission is missing.
        SettingsError: A topic does not exist, or documents would be signed with another scheme than the workers'.
        IndexUnavailableError: Redis did not answer what the scheme of the workers is.
        TooManySpansError: The replay log is full. Nothing more is sent.
    """
    run = plan_replay if is_dry_run else replay_dead_letters
    return await run(deployment, Selection(reason, 0), _WAIT_SECONDS, Progress("dead letters", quiet=True))


async def _list(request: web.Request) -> web.Response:
    return for_all_only(request) or json_response(request.app[_FEED].dead_letters())


async def _settings(request: web.Request) -> web.Response:
    return for_all_only(request) or json_response(deployment_of(request.app[_DEPLOYMENT], request.app[_FEED].lags))


async def _show(request: web.Request) -> web.Response:
    refused = for_all_only(request)
    if refused is not None:
        return refused
    detail = request.app[_FEED].letters.detail(request.match_info["id"])
    if detail is None:
        return refusal(404, "unknown_dead_letter", "expected one of the newest: `nearstream dlq show ID` shows all")
    return json_response(detail)


async def _replay(request: web.Request) -> web.Response:
    expected = 'expected {"reason": "...", "dry_run": true}'
    asked = await asked_for_all(request, LiveReplayRequest, _REQUEST_BYTES, expected)
    if isinstance(asked, web.Response):
        return asked
    if request.app[_REPLAYING].locked():
        return ask_again(429, "busy", "expected one replay at a time")
    async with request.app[_REPLAYING]:
        return await _replayed(request.app[_REPLAY], asked)


async def _replayed(replay: Replay, asked: LiveReplayRequest) -> web.Response:
    try:
        outcome = await replay(asked.reason, asked.dry_run)
    except TooManySpansError as error:
        return refusal(409, "replay_log_full", f"{error}: `nearstream dlq replay` without a reason joins its spans")
    except (KafkaUnreachableError, KafkaError, SettingsError, IndexUnavailableError) as error:
        log.warning("dead letters were not replayed: %s", error)
        return refusal(503, "replay_failed", f"{type(error).__name__}: the log of the server says more")
    if not asked.dry_run:
        log.info("replayed dead letters of the reason %r: %d sent", asked.reason, outcome.sent)
    return json_response(LiveReplay(sent=outcome.sent, skipped=dict(outcome.skipped)))
