"""Connections of the HTTP API, which refuse what is no proper request in JSON too."""

import asyncio
from collections import Counter
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from nearstream.workers.http.requests import HEADER_BYTES, HEADERS, RefusedError

CONNECTIONS = 512
HEAD_BYTES = 64 * 1024  # of the request line and all headers of a request together
_READ_BYTES = 4 * 1024  # at a time, of each connection: a parser takes 0.01 s for so many in chunks of one byte
FIRST_SECONDS = 10.0  # within which a new connection sends the headers of its first request
_TOO_MANY = "Too many headers"  # how aiohttp begins its message about them


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
