"""Connections of the HTTP API, which refuse what is no proper request in JSON too."""

import asyncio

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from nearstream.workers.http.requests import HEADER_BYTES, HEADERS, refusal

CONNECTIONS = 512
_TOO_MANY = "Too many headers"  # how aiohttp begins its message about them


class Connection(web.RequestHandler):
    """A connection whose refusals are in JSON and quote nothing.

    aiohttp answers requests that it cannot read with a text that quotes them.
    """

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close a connection at once if there are too many."""
        super().connection_made(transport)
        if self._manager is not None and len(self._manager.connections) > CONNECTIONS:
            self.force_close()

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
