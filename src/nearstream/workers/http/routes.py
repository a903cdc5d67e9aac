"""The paths of the HTTP API and what answers them."""

import asyncio
from functools import cache, partial
from time import perf_counter

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import BareAnswer, CheckAnswer, Health, Readiness, Removal
from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http import openapi
from nearstream.workers.http.access import ForbiddenError
from nearstream.workers.http.cdx import CdxServer
from nearstream.workers.http.check import AT_ONCE, BusyError, Checker
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.reading import SIGNATURE_TYPE
from nearstream.workers.http.refusals import forbidden, from_another_site, named, unconfirmed
from nearstream.workers.http.requests import (
    ACCESS,
    IN_USE,
    SECURITY_HEADERS,
    any_id,
    ask_again,
    is_from_another_site,
    json_response,
    read_record,
    refusal,
    refused_unread,
    status_of,
    type_of_body,
)
from nearstream.workers.http.skipping import SkipChecker
from nearstream.workers.monitoring.metrics import CHECK_SECONDS, CHECKS, EXPOSITION_TYPE, SKIPS, exposition
from nearstream.workers.operations.standing import public_sentence, standing_still
from nearstream.workers.redis.kept.worker_states import WorkerState, worker_states

_CHECKER = web.AppKey("checker", Checker)
_LEARNER = web.AppKey("learner", Learner)
_SKIP_CHECKER = web.AppKey("skip_checker", SkipChecker)
_CDX_SERVER = web.AppKey("cdx_server", CdxServer)
_CDX_PARAMETERS = frozenset({"fl", "filter", "header", "limit"})
_READY_SECONDS = 1.0


def add_routes(
    app: web.Application, checker: Checker, learner: Learner, skip_checker: SkipChecker, cdx_server: CdxServer
) -> None:
    """Add the paths of questions, removals and probes to an application."""
    app[_CHECKER], app[_LEARNER], app[_SKIP_CHECKER] = checker, learner, skip_checker
    app[_CDX_SERVER] = cdx_server
    app.router.add_post(openapi.CHECK_PATH, _check, expect_handler=_before_body)
    app.router.add_delete(any_id(openapi.DOCUMENT_PATH), _remove)
    for path, handler in (
        (openapi.SKIP_PATH, _skip),
        (openapi.CDX_PATH, _cdx),
        (openapi.READY_PATH, _ready),
        (openapi.HEALTHY_PATH, _healthy),
        (openapi.METRICS_PATH, _metrics),
        (openapi.DESCRIPTION_PATH, _description),
    ):
        app.router.add_get(path, handler)


def add_waiting_routes(app: web.Application, why: str) -> None:
    """Add the paths of an API without an index, which answers no question.

    Args:
        app: The application.
        why: What it waits for.
    """

    async def not_ready(_: web.Request) -> web.Response:
        return json_response(Readiness(ready=False, why=why, halted=(), workers=()), 503)

    async def no_answer(_: web.Request) -> web.Response:
        return refusal(503, "no_index", "expected an index, which a worker makes when it starts for the first time")

    app.router.add_get(openapi.READY_PATH, not_ready)
    app.router.add_get(openapi.HEALTHY_PATH, _healthy)
    app.router.add_get(openapi.METRICS_PATH, _metrics)
    app.router.add_route("*", "/{path:.*}", no_answer)


async def _check(request: web.Request) -> web.Response:
    checker = request.app[_CHECKER]
    refused = _refused_unread(request)  # before the body takes memory
    if refused is not None:
        return refused
    learns = request.query.get("learn") == "1"
    try:
        record = await read_record(request, checker.deployment.document_limits.value_bytes)
        began = perf_counter()
        learner = request.app[_LEARNER] if learns else None
        answer = await checker.check(record, request[ACCESS], learner, partial(request.__setitem__, IN_USE))
    except InvalidMessageError as error:
        CHECKS.labels("refused").inc()
        return refusal(status_of(error.reason), error.reason, error.detail)
    except ForbiddenError:
        return forbidden()
    except BusyError:
        return _busy()
    CHECKS.labels(answer.verdict).inc()
    CHECK_SECONDS.observe(perf_counter() - began)
    return _bare(answer) if request.query.get("bare") == "1" else json_response(answer)


def _bare(answer: CheckAnswer) -> web.Response:
    """Return yes or no, or that there is no answer."""
    if not answer.degraded:
        return json_response(BareAnswer(related=answer.match is not None or bool(answer.references)))
    return ask_again(503, answer.reason, "expected Redis to answer in time, ask again")


async def _before_body(request: web.Request) -> web.Response | None:
    """Answer a client that waits for `100 Continue` before it sends its body."""
    refused = _refused_unread(request)
    if refused is None and request.transport is not None and request.headers["Expect"].lower() == "100-continue":
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return refused


def _refused_unread(request: web.Request) -> web.Response | None:
    checker = request.app[_CHECKER]
    if len(checker.running) >= AT_ONCE:
        return _busy()
    for name in ("learn", "bare"):
        if request.query.get(name, "0") not in ("0", "1"):
            return refusal(400, "bad_request", f"expected {name}=0 or {name}=1")
    if request.query.get("learn") == "1" and type_of_body(request) == SIGNATURE_TYPE:
        return refusal(400, "bad_request", "expected a document to learn, send a signature with `nearstream produce`")
    if "learn" in request.query and is_from_another_site(request):
        return from_another_site()
    refused = refused_unread(request, checker.deployment.document_limits.value_bytes)
    if refused is not None:
        CHECKS.labels("refused").inc()
    return refused


def _busy() -> web.Response:
    CHECKS.labels("busy").inc()
    return ask_again(429, "busy", f"expected at most {AT_ONCE} requests at a time")


async def _skip(request: web.Request) -> web.Response:
    asked = _page_asked(request, frozenset())
    if isinstance(asked, web.Response):
        return asked
    answer = await request.app[_SKIP_CHECKER].check(asked.url or "", asked.collection)
    SKIPS.labels("degraded" if answer.degraded else "skip" if answer.skip else "fetch").inc()
    return json_response(answer)


async def _cdx(request: web.Request) -> web.Response:
    asked = _page_asked(request, _CDX_PARAMETERS)
    if isinstance(asked, web.Response):
        return asked
    try:
        answer = await request.app[_CDX_SERVER].answer(asked.url or "", asked.collection, request.query)
    except ValueError as error:
        return refusal(400, "bad_request", str(error))
    SKIPS.labels("degraded" if answer.is_degraded else "cdx").inc()
    return web.Response(text=answer.text, headers={**SECURITY_HEADERS, **answer.headers})


def _page_asked(request: web.Request, others: frozenset[str]) -> Document | web.Response:
    """Return the URL and the collection of a question, or the refusal of it."""
    given = request.query
    if "url" not in given or given.keys() - {"url", "collection"} - others:
        return refusal(400, "bad_request", "expected url=, and perhaps collection=, each percent-encoded")
    try:
        asked = decode_document(
            msgspec.json.encode({name: given[name] for name in ("url", "collection") if name in given})
        )
        request[ACCESS].require(asked.collection)
    except ForbiddenError:
        return forbidden()
    except InvalidMessageError as error:
        return refusal(400, error.reason, error.detail)
    return asked


async def _remove(request: web.Request) -> web.Response:
    collection = named(request)
    if isinstance(collection, web.Response):
        return collection
    reason = await request.app[_LEARNER].remove(request.match_info["id"], collection)
    return unconfirmed(reason) if reason else json_response(Removal(removed=True), 202)


async def _ready(request: web.Request) -> web.Response:
    checker = request.app[_CHECKER]
    seconds = max(_READY_SECONDS, checker.deployment.settings.api_seconds)
    why = await checker.ready(seconds)
    states: list[WorkerState] = []
    if not why:
        try:
            async with asyncio.timeout(seconds):
                states = await worker_states(checker.index.asking, checker.deployment.settings.namespace)
        except (IndexUnavailableError, SettingsError, TimeoutError) as error:
            why = f"how the workers do is not known: {str(error) or 'Redis did not answer in time'}"
    # Without their hosts, because this path is open to all.
    workers = tuple(map(public_sentence, states))
    halted = tuple(map(public_sentence, standing_still(states)))
    return json_response(Readiness(ready=not why, why=why, halted=halted, workers=workers), 503 if why else 200)


async def _healthy(_: web.Request) -> web.Response:
    return json_response(Health(healthy=True))


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=exposition(), headers={**SECURITY_HEADERS, "Content-Type": EXPOSITION_TYPE})


async def _description(_: web.Request) -> web.Response:
    return web.Response(body=_described(), content_type="application/json", headers=SECURITY_HEADERS)


@cache
def _described() -> bytes:
    return msgspec.json.encode(openapi.description())
