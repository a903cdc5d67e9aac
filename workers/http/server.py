"""Serve the HTTP API until a signal."""

import asyncio
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from nearstream.schemas.topics import DOCUMENTS
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.tokens import parse_tokens
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.http.access import Gate
from nearstream.workers.http.check import Checker
from nearstream.workers.http.connection import Connection
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.openapi import OPEN_PATHS
from nearstream.workers.http.outbox import Outbox, connected
from nearstream.workers.http.requests import ACCESS, HEADER_BYTES, HEADERS, refusal, too_many_requests
from nearstream.workers.http.routes import add_routes
from nearstream.workers.monitoring.metrics import CHECKS
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.index import RedisIndex

_HTML_SECONDS = 0.1  # for a process, and then for the text: an answer that waits for longer would come too late
_READERS = 8
_KEEPALIVE_SECONDS = 75.0
_LINGERING_SECONDS = 2.0  # in which the rest of a refused body is read, so that its sender gets the answer

# What a refusal says, where the name of the status does not say enough.
_EXPECTED = {
    404: "expected one of the paths that /v1/openapi.json lists",
    408: "expected the whole body within 10 s",
}

log = logging.getLogger(__name__)


async def serve(deployment: Deployment, wait_seconds: float) -> None:
    """Serve the HTTP API until SIGINT or SIGTERM.

    Raises:
        SettingsError: The address cannot be used, or the index has another scheme or key.
        IndexLostError: There is no index.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    opening = partial(RedisIndex.open_to_read, deployment.index_address())
    index = await until_answered(opening, wait_seconds)
    # What was loaded until here stays. To look through it again takes a full garbage collection 50 ms.
    gc.collect()
    gc.freeze()
    try:
        async with connected(deployment.settings) as outbox, serving(deployment, index, outbox) as address:
            log.info("API: http://%s/v1/check", address)
            await stopped.wait()
    finally:
        await index.close()
    log.info("stopped")


@asynccontextmanager
async def serving(deployment: Deployment, index: RedisIndex, outbox: Outbox) -> AsyncIterator[str]:
    """Serve the HTTP API in the block, and yield its address. Requests in work are answered at the end.

    Raises:
        SettingsError: The address cannot be used.
    """
    settings = deployment.settings
    with (
        HtmlProcesses(deadline_seconds=_HTML_SECONDS) as html,
        ThreadPoolExecutor(_READERS, "read") as readers,
        ThreadPoolExecutor(1, "sign") as cpu,
    ):
        if html.is_available():
            html.start()
        app = web.Application(middlewares=[_refusals, _authorization(Gate(parse_tokens(settings.api_token)))])
        checker = Checker(deployment, deployment.signer(), index, html, readers, cpu)
        learner = Learner(outbox, deployment.topic(DOCUMENTS), deployment.document_limits, cpu)
        add_routes(app, checker, learner)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            listener = await _listen(runner, settings.api)
            host, port = listener.sockets[0].getsockname()[:2]
            yield f"{host}:{port}"
            listener.close()
        finally:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, address: str) -> asyncio.Server:
    """Accept connections at an address."""
    loop, server = asyncio.get_running_loop(), runner.server
    if server is None:
        raise RuntimeError("the runner was not set up")
    connect = partial(
        Connection,
        server,
        loop=loop,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        max_headers=HEADERS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        lingering_time=_LINGERING_SECONDS,
        auto_decompress=False,  # `parse_record` does it, with a limit
    )
    host, port = address.rsplit(":", 1)
    try:
        return await loop.create_server(connect, host, int(port))
    except OSError as error:
        raise SettingsError(f"NEARSTREAM_API: cannot listen on {address}: {error.strerror or error}") from None


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in JSON where aiohttp would answer in text."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        status = HTTPStatus(error.status)
        response = refusal(status, status.name.lower(), _EXPECTED.get(error.status, status.phrase))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response


def _authorization(gate: Gate) -> Middleware:
    """Return the middleware that asks for a token, except on paths that are open to all."""

    @web.middleware
    async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in OPEN_PATHS:
            return await handler(request)
        access, is_early = gate.access(request.headers.get("Authorization", ""), time.monotonic())
        if access is None:
            response = refusal(401, "unauthorized", "expected the header Authorization: Bearer <token>")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if is_early:
            CHECKS.labels("rate_limited").inc()
            return too_many_requests("rate_limited", "expected fewer requests a second with this token")
        request[ACCESS] = access
        return await handler(request)

    return authorize
