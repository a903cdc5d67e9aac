"""An application that asks for tokens and answers errors in JSON."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.workers.config.hosts import FOREIGN_NAME, is_foreign_name
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.tokens import parse_tokens
from nearstream.workers.http.access import Access, ForbiddenError, Gate
from nearstream.workers.http.connection import Connection
from nearstream.workers.http.openapi import OPEN_PATHS, ROUTES
from nearstream.workers.http.requests import (
    ACCESS,
    ASKS_TOKEN,
    BODIES,
    HEADER_BYTES,
    HEADERS,
    RefusedError,
    give_back_body,
    is_bare_question,
    refusal_of,
)
from nearstream.workers.mail.memory import Memory
from nearstream.workers.monitoring.metrics import CHECKS

_KEEPALIVE_SECONDS = 75.0
_LINGERING_SECONDS = 2.0  # in which the rest of a refused body is read, so that its sender gets the answer
_PAGE_FILES = ROUTES["page_file"].path.partition("{")[0]

Expect = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

# What a refusal says, where the name of the status does not say enough.
_EXPECTED = {
    404: "expected one of the paths that /v1/openapi.json lists",
    408: "expected the whole body within 10 s",
    429: "expected fewer bytes in the bodies of all requests at a time, ask again",
}


def application(tokens: str) -> web.Application:
    """Return an application without paths, for which these tokens are needed."""
    known = parse_tokens(tokens)
    guard = _authorization(Gate(known)) if known else _own_names
    app = web.Application(middlewares=[_refusals, guard])
    app[ASKS_TOKEN] = bool(known)
    app[BODIES] = Memory()
    return app


def add_handlers(app: web.Application, handlers: Mapping[str, Handler], expect: Expect | None = None) -> None:
    """Let handlers answer for routes, which they name as the table does.

    Args:
        app: The application.
        handlers: The handler of each route.
        expect: Answers a client that waits before it sends its body. None: it is told to send it.
    """
    for name, handler in handlers.items():
        route = ROUTES[name]
        path = route.path.replace("{id}", r"{id:[\s\S]+}")
        path = re.sub(r"\{(\w+)\}", r"{\1:[^/]+}", path)  # by default a name matches no braces
        if route.method == "GET":
            app.router.add_get(path, handler)  # and HEAD
        else:
            app.router.add_route(route.method, path, handler, expect_handler=expect)


@asynccontextmanager
async def listening(app: web.Application, address: str) -> AsyncIterator[str]:
    """Answer requests in the block, and yield the address.

    Requests in work are answered at the end.

    Raises:
        SettingsError: The address cannot be used.
    """
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        listener = await _listen(runner, address)
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
    """Answer in JSON where aiohttp would answer in text.

    A connection on which the rest of a body is still to come is closed soon, and the answer says so, or else its client
    would use it again.
    """
    try:
        response = await handler(request)
    except (RefusedError, ForbiddenError, InvalidMessageError) as error:
        response = refusal_of(error).response()
    except web.HTTPException as error:
        status = HTTPStatus(error.status)
        is_passing = status == HTTPStatus.TOO_MANY_REQUESTS
        expected = _EXPECTED.get(error.status, status.phrase)
        response = RefusedError(status, status.name.lower(), expected, again=is_passing).response()
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
    finally:
        give_back_body(request)
    if not request.content.is_eof():
        response.force_close()
    return response


@web.middleware
async def _own_names(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests under the name of another site."""
    if is_foreign_name(request.headers.get("Host")):
        raise RefusedError(403, "foreign_name", FOREIGN_NAME)
    request[ACCESS] = Access()
    return await handler(request)


def _authorization(gate: Gate) -> Middleware:
    """Return the middleware that asks for a token, except on paths that are open to all."""

    @web.middleware
    async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in OPEN_PATHS or request.path.startswith(_PAGE_FILES):
            return await handler(request)
        access, is_early = gate.access(request.headers.get("Authorization", ""), time.monotonic())
        if access is None:
            expected = "expected the header Authorization: Bearer <token>"
            response = RefusedError(401, "unauthorized", expected).response()
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if access.is_bare and not is_bare_question(request):
            expected = "expected POST /v1/check?bare=1 with a signature, for which the token is"
            raise RefusedError(403, "only_bare", expected)
        if is_early:
            CHECKS.labels("rate_limited").inc()
            raise RefusedError(429, "rate_limited", "expected fewer requests a second with this token", again=True)
        request[ACCESS] = access
        return await handler(request)

    return authorize
