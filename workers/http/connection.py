"""Connections of the HTTP API, which refuse what is no proper request in JSON too."""

import asyncio
from collections import Counter

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from nearstream.workers.http.requests import HEADER_BYTES, HEADERS, refusal

CONNECTIONS = 512
FIRST_SECONDS = 10.0  # within which a new connection sends the headers of its first request
_TOO_MANY = "Too many headers"  # how aiohttp begins its message about them


class Connection(web.RequestHandler):
    """A connection whose refusals are in JSON and quote nothing.

    aiohttp answers requests that it cannot read with a text that quotes them.
    """

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make room for a connection if there are too many, or close it."""
        super().connection_made(transport)
        self._loop.call_later(FIRST_SECONDS, self._end_without_request)
        if self._manager is not None and len(self._manager.connections) > CONNECTIONS:
            self._make_room([each for each in self._manager.connections if isinstance(each, Connection)])

    def _end_without_request(self) -> None:
        if self._request_count == 0:
            self._abort()

    def _make_room(self, connections: list["Connection"]) -> None:
        """Close an idle connection of the address that has the most, so that idle ones keep nobody out.

        Without one, or for an address that has more connections itself, the new one is closed.
        """
        held = Counter(each._address() for each in connections)
        idle = [each for each in connections if each is not self and each._current_request is None]
        most = max(idle, key=lambda each: held[each._address()], default=self)
        (most if held[most._address()] >= held[self._address()] else self)._abort()

    def _address(self) -> str:
        peer = self.transport.get_extra_info("peername") if self.transport is not None else None
        return str(peer[0]) if peer else ""

    def _abort(self) -> None:
        self.force_close()
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse a request that cannot be read, or answer for a bug."""
        if not isinstance(exc, BadHttpMessage):
            self.log_exception("a request failed", exc_info=exc)
            response = refusal(500, "internal", "the log of the server says more")
        elif isinstance(exc, LineTooLong) or str(message).startswith(_TOO_MANY):
            expected = f"expected at most {HEADERS} headers, each of at most {HEADER_BYTES} bytes"
            response = refusal(431, "headers_too_large", expected)
        else:
            response = refusal(400, "bad_request", "expected a request in HTTP/1.1")
        response.force_close()
        return response
