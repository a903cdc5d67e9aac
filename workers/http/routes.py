"""The paths of the HTTP API and what answers them."""

from time import perf_counter

import msgspec
from aiohttp import web

from nearstream.schemas.check import Health, Readiness
from nearstream.schemas.codec import InvalidMessageError
from nearstream.workers.http import openapi
from nearstream.workers.http.check import AT_ONCE, BusyError, Checker
from nearstream.workers.http.requests import (
    SECURITY_HEADERS,
    json_response,
    read_record,
    refusal,
    refused_unread,
    status_of,
)
from nearstream.workers.monitoring.metrics import CHECK_SECONDS, CHECKS, EXPOSITION_TYPE, exposition

_CHECKER = web.AppKey("checker", Checker)
_READY_SECONDS = 1.0


def add_routes(app: web.Application, checker: Checker) -> None:
    """Add all paths of the API to an application."""
    app[_CHECKER] = checker
    app.router.add_post(openapi.CHECK_PATH, _check, expect_handler=_before_body)
    for path, handler in (
        (openapi.READY_PATH, _ready),
        (openapi.HEALTHY_PATH, _healthy),
        (openapi.METRICS_PATH, _metrics),
        (openapi.DESCRIPTION_PATH, _description),
    ):
        app.router.add_get(path, handler)


async def _check(request: web.Request) -> web.Response:
    checker = request.app[_CHECKER]
    refused = _refused_unread(request)  # before the body takes memory
    if refused is not None:
        return refused
    try:
        record = await read_record(request, checker.deployment.settings.max_value_bytes)
        began = perf_counter()
        answer = await checker.check(record)
    except InvalidMessageError as error:
        CHECKS.labels("refused").inc()
        return refusal(status_of(error.reason), error.reason, error.detail)
    except BusyError:
        return _busy()
    CHECKS.labels(answer.verdict).inc()
    CHECK_SECONDS.observe(perf_counter() - began)
    return json_response(answer)


async def _before_body(request: web.Request) -> web.Response | None:
    """Answer a client that sends its body only when it is told to."""
    refused = _refused_unread(request)
    if refused is None and request.transport is not None and request.headers["Expect"].lower() == "100-continue":
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return refused


def _refused_unread(request: web.Request) -> web.Response | None:
    checker = request.app[_CHECKER]
    if len(checker.running) >= AT_ONCE:
        return _busy()
    refused = refused_unread(request, checker.deployment.settings.max_value_bytes)
    if refused is not None:
        CHECKS.labels("refused").inc()
    return refused


def _busy() -> web.Response:
    CHECKS.labels("busy").inc()
    response = refusal(429, "busy", f"expected at most {AT_ONCE} requests at a time")
    response.headers["Retry-After"] = "1"
    return response


async def _ready(request: web.Request) -> web.Response:
    why = await request.app[_CHECKER].ready(_READY_SECONDS)
    return json_response(Readiness(ready=not why, why=why), 503 if why else 200)


async def _healthy(_: web.Request) -> web.Response:
    return json_response(Health(healthy=True))


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=exposition(), headers={**SECURITY_HEADERS, "Content-Type": EXPOSITION_TYPE})


async def _description(_: web.Request) -> web.Response:
    body = msgspec.json.encode(openapi.description())
    return web.Response(body=body, content_type="application/json", headers=SECURITY_HEADERS)
