"""An application that asks for tokens and answers errors in JSON, and its connections, which are bounded."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.typedefs import Handler, Middleware

from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.workers.config.hosts import FOREIGN_NAME, is_foreign_name
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.tokens import ApiToken
from nearstream.workers.http.openapi import OPEN_PATHS, ROUTES
from nearstream.workers.http.requests import (
    ACCESS,
    BODIES,
    HEADER_BYTES,
    HEADERS,
    Gate,
    RefusedError,
    give_back_body,
    is_bare_question,
    refusal_of,
)
from nearstream.workers.mail.message import Memory
from nearstream.workers.monitoring.metrics import CHECKS

CONNECTIONS = 512
HEAD_BYTES = 64 * 1024  # of the request line and all headers of a request together
_READ_BYTES = 4 * 1024  # at a time, of each connection: a parser takes 0.01 s for so many in chunks of one byte
FIRST_SECONDS = 10.0  # within which a new connection sends the headers of its first request
_TOO_MANY = "Too many headers"  # how aiohttp begins its message about them
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


class Connection(web.RequestHandler):
    """A connection whose refusals are in JSON and quote nothing.

    aiohttp answers requests that it cannot read with a text that quotes them.
    """

    __slots__ = ("_head_bytes", "_heard_at")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make room for a connection if there are too many."""
        super().connection_made(transport)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined] # of each transport of asyncio with a socket
        self._head_bytes, self._heard_at = 0, self._loop.time()
        self._loop.call_later(FIRST_SECONDS, self._end_without_request)
        self._make_room()

    def _end_without_request(self) -> None:
        if self._request_count == 0:
            self._abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and close a connection whose headers have too many of them."""
        super().data_received(data)
        self._heard_at = self._loop.time()
        is_head = self._current_request is None and not self._messages
        self._head_bytes = self._head_bytes + len(data) if is_head else 0
        if self._head_bytes > HEAD_BYTES:
            self._abort()

    def _make_room(self) -> None:
        """Close a connection of the address that has the most, if there are too many.

        It is an idle one, else one whose client has not sent all of its request, else any. Of these it is the one whose
        client has sent nothing for the longest time.
        """
        known = self._manager.connections if self._manager is not None else ()
        others = [each for each in known if isinstance(each, Connection) and each is not self and each._is_open()]
        if len(others) < CONNECTIONS:
            return
        held = Counter(each._address() for each in others)
        most = max(held.values())
        theirs = [each for each in others if held[each._address()] == most]
        min(theirs, key=lambda each: (each._rank(), each._heard_at))._abort()

    def _rank(self) -> int:
        """Return 0 for an idle connection, 1 while it sends its request, and 2 while it is answered."""
        request = self._current_request
        return 0 if request is None else 1 + request.content.is_eof()

    def _is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def _address(self) -> str:
        peer = self.transport.get_extra_info("peername") if self.transport is not None else None
        return str(peer[0]) if peer else ""

    def _abort(self) -> None:
        transport = self.transport  # of which nothing is known afterwards
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def log_exception(self, *told: Any, **more: Any) -> None:  # noqa: ANN401 - as aiohttp
        """Log an error, unless the client has left, which aiohttp takes for one while it reads the rest of a body."""
        (super().log_exception if self._is_open() else self.log_debug)(*told, **more)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse a request that cannot be read, or answer for a bug."""
        if not self._is_open():
            self.log_debug("a client left before its answer", exc_info=exc)
            refused = RefusedError(400, "bad_request", "expected a client that waits")  # which is not read
        elif not isinstance(exc, BadHttpMessage):
            self.log_exception("a request failed", exc_info=exc)
            refused = RefusedError(500, "internal", "the log of the server says more")
        elif isinstance(exc, LineTooLong) or str(message).startswith(_TOO_MANY):
            expected = f"expected at most {HEADERS} headers, each of at most {HEADER_BYTES} bytes"
            refused = RefusedError(431, "headers_too_large", expected)
        else:
            refused = RefusedError(400, "bad_request", "expected a request in HTTP/1.1")
        response = refused.response()
        response.force_close()
        return response


def application(gate: Gate) -> web.Application:
    """Return an application without paths, for which the tokens of a gate are needed."""
    app = web.Application(middlewares=[_refusals, _authorization(gate)])
    app[BODIES] = Memory()
    return app


def add_handlers(app: web.Application, handlers: Mapping[str, Handler], expect: Expect | None = None) -> None:
    """Let handlers answer for routes, which they name as the table does.

    `expect` answers a client that waits before it sends its body. Without it the client is told to send it.
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
async def listening(app: web.Application, address: str, setting: str = "NEARSTREAM_API") -> AsyncIterator[str]:
    """Answer requests at the address of a setting, and yield it. Requests in work are answered at the end."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        listener = await _listen(runner, address, setting)
        host, port = listener.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
        listener.close()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, address: str, setting: str) -> asyncio.Server:
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
        told = f"cannot listen on {address}: {error.strerror or error}: choose another one, or port 0 for any free port"
        raise SettingsError(f"{setting}: {told}") from None


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in JSON where aiohttp would answer in text.

    A connection on which the rest of a body is still to come is closed soon, and the answer says so, or else its client
    would use it again.
    """
    try:
        response = await handler(request)
    except (RefusedError, InvalidMessageError) as error:
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


async def _own_names(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests under the name of another site, where no token is needed."""
    if is_foreign_name(request.headers.get("Host")):
        raise RefusedError(403, "foreign_name", FOREIGN_NAME)
    request[ACCESS] = ApiToken()
    return await handler(request)


def _authorization(gate: Gate) -> Middleware:
    @web.middleware
    async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
        if gate.is_open:
            return await _own_names(request, handler)
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
