"""What answers checks, removals and probes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache, partial
from time import perf_counter

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from nearstream.schemas.checks.check import BareAnswer, CheckAnswer, Health, Readiness, Removal
from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.schemas.live.state import WorkerState
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.check import AT_ONCE, Checker, busy
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.openapi import description
from nearstream.workers.http.requests import (
    ACCESS,
    IN_USE,
    LINES_TYPE,
    SECURITY_HEADERS,
    SIGNATURE_TYPE,
    RefusedError,
    json_response,
    named,
    read_record,
    refusal_of,
    require_own_site,
    require_readable,
    type_of_body,
)
from nearstream.workers.http.status import answer_metrics
from nearstream.workers.monitoring.metrics import CHECK_SECONDS, CHECKS
from nearstream.workers.operations.checks import public_sentence, standing_still

_READY_SECONDS = 1.0

Workers = Callable[[], Awaitable[list[WorkerState]]]  # reads the states of workers

log = logging.getLogger(__name__)


def add_routes(app: web.Application, checker: Checker, learner: Learner, workers: Workers) -> None:
    """Let checks, removals and probes be answered."""
    add_handlers(app, {"check": partial(_check, checker, learner)}, partial(_before_body, checker))
    add_handlers(
        app,
        {
            "remove": partial(_remove, learner),
            "readiness": partial(_ready, checker, workers),
            "description": _description,
            **_PROBES,
        },
    )


def add_waiting_routes(app: web.Application, why: str) -> None:
    """Let an API without an index answer no question, and `/readyz` say what it waits for."""

    async def not_ready(_: web.Request) -> web.Response:
        return json_response(Readiness(ready=False, why=why, halted=(), workers=()), 503)

    async def no_answer(_: web.Request) -> web.Response:
        raise RefusedError(503, "no_index", "expected an index, which a worker makes when it starts for the first time")

    add_handlers(app, {"readiness": not_ready, **_PROBES})
    app.router.add_route("*", "/{path:.*}", no_answer)


async def _check(checker: Checker, learner: Learner, request: web.Request) -> web.Response:
    try:
        _require_unread(checker, request)  # before the body takes memory
        record = await read_record(request, checker.deployment.document_limits.value_bytes)
        began = perf_counter()
        if type_of_body(request) == LINES_TYPE:
            return await _check_lines(checker, record, request)
        learns = learner if request.query.get("learn") == "1" else None
        answer = await checker.check(record, request[ACCESS], learns, partial(request.__setitem__, IN_USE))
    except InvalidMessageError:
        CHECKS.labels("refused").inc()
        raise
    CHECKS.labels(answer.verdict).inc()
    CHECK_SECONDS.observe(perf_counter() - began)
    return _bare(answer) if request.query.get("bare") == "1" else json_response(answer)


async def _check_lines(checker: Checker, record: ConsumerRecord, request: web.Request) -> web.Response:
    """Answer a line for each line."""
    if header(record.headers, "content-encoding"):
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected lines without content-encoding")
    answers = await checker.check_lines(record.value or b"", request[ACCESS])
    for answer in answers:
        CHECKS.labels(answer.verdict if isinstance(answer, CheckAnswer) else "refused").inc()
    body = b"".join(msgspec.json.encode(answer) + b"\n" for answer in answers)
    return web.Response(body=body, content_type=LINES_TYPE, headers=SECURITY_HEADERS)


def _bare(answer: CheckAnswer) -> web.Response:
    if answer.degraded:
        raise RefusedError(503, answer.reason, "expected Redis to answer in time, ask again", again=True)
    return json_response(BareAnswer(related=answer.match is not None or bool(answer.references)))


async def _before_body(checker: Checker, request: web.Request) -> web.Response | None:
    """Answer a client that waits for `100 Continue` before it sends its body."""
    try:
        _require_unread(checker, request)
    except (RefusedError, InvalidMessageError) as error:
        if isinstance(error, InvalidMessageError):
            CHECKS.labels("refused").inc()
        return refusal_of(error).response()
    if request.transport is not None and request.headers["Expect"].lower() == "100-continue":
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return None


def _require_unread(checker: Checker, request: web.Request) -> None:
    """Refuse what can be refused before its body is read."""
    if len(checker.running) >= AT_ONCE:
        raise busy()
    for name in ("learn", "bare"):
        if request.query.get(name, "0") not in ("0", "1"):
            raise RefusedError(400, "bad_request", f"expected {name}=0 or {name}=1")
    if type_of_body(request) == LINES_TYPE and "1" in (request.query.get("learn"), request.query.get("bare")):
        raise RefusedError(400, "bad_request", "expected no learn=1 and bare=1 with JSON Lines")
    if request.query.get("learn") == "1" and type_of_body(request) == SIGNATURE_TYPE:
        raise RefusedError(
            400, "bad_request", "expected a document to learn, send a signature with `nearstream produce`"
        )
    if "learn" in request.query:
        require_own_site(request)
    require_readable(request, checker.deployment.document_limits.value_bytes)


async def _remove(learner: Learner, request: web.Request) -> web.Response:
    require_own_site(request)
    await learner.remove(request.match_info["id"], named(request))
    return json_response(Removal(removed=True), 202)


async def _ready(checker: Checker, asked: Workers, _: web.Request) -> web.Response:
    seconds = max(_READY_SECONDS, checker.deployment.settings.api_seconds)
    why = await checker.ready(seconds)
    states: list[WorkerState] = []
    if not why:
        try:
            async with asyncio.timeout(seconds):
                states = await asked()
        except (IndexUnavailableError, SettingsError, TimeoutError) as error:
            log.info("how the workers do is not known: %s", error)
            why = "how the workers do is not known: Redis gave no answer"
    # Without their hosts, because this path is open to all.
    workers = tuple(map(public_sentence, states))
    halted = tuple(map(public_sentence, standing_still(states)))
    return json_response(Readiness(ready=not why, why=why, halted=halted, workers=workers), 503 if why else 200)


async def _healthy(_: web.Request) -> web.Response:
    return json_response(Health(healthy=True))


async def _description(_: web.Request) -> web.Response:
    return web.Response(body=_described(), content_type="application/json", headers=SECURITY_HEADERS)


@cache
def _described() -> bytes:
    return msgspec.json.encode(description())


_PROBES: dict[str, Handler] = {"health": _healthy, "metrics": answer_metrics}
