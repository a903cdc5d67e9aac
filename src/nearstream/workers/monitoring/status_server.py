"""Serve metrics, health, readiness and lag of one process over HTTP.

The server is read-only. It runs in threads of its own, so it answers while the event loop is blocked.
"""

import hmac
import json
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from time import monotonic
from typing import Any

from nearstream.workers.config.hosts import FOREIGN_NAME, is_foreign_name
from nearstream.workers.config.settings import AUTO, SettingsError
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import EXPOSITION_TYPE, exposition
from nearstream.workers.monitoring.watchdog import LOOP_SECONDS

DEFAULT_ADDRESS = "127.0.0.1:9464"
AT_ONCE = 32
_REQUEST_SECONDS = 2.0
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


Answer = tuple[int, str, bytes]  # status code, content type and body


def answers(health: Health) -> dict[str, Callable[[], Answer]]:
    """Return the function that answers each path."""

    def healthz() -> Answer:
        stalled = health.ticked is not None and monotonic() - health.ticked > LOOP_SECONDS
        return _json(503 if stalled else 200, {"healthy": not stalled})

    def readyz() -> Answer:
        reason = health.unready
        return _json(503 if reason else 200, {"ready": not reason, "why": reason})

    def lag() -> Answer:
        return _json(200, [row.as_json() for row in health.own_lags])

    return {
        "/metrics": lambda: (200, EXPOSITION_TYPE, exposition()),
        "/healthz": healthz,
        "/readyz": readyz,
        "/lag": lag,
    }


def serve_status(address: str, health: Health, token: str, default: str = DEFAULT_ADDRESS) -> "StatusServer":
    """Start the status server, which runs until the process ends.

    Port 0 means any free port, and `auto` the default address of this kind of process, with a free port if its own is
    taken. With a token, all but `/healthz` and `/readyz` need `Authorization: Bearer <token>`.
    """
    host, port = (default if address == AUTO else address).rsplit(":", 1)
    known = answers(health)
    try:
        server = StatusServer((host, int(port)), known, token)
    except OSError as error:
        if address != AUTO:
            raise SettingsError(
                f"NEARSTREAM_STATUS: cannot listen on {address}: {error.strerror or error}: choose another address, "
                "port 0 for any free port, or auto"
            ) from None
        server = StatusServer((host, 0), known, token)  # another process on this host has the default port
    threading.Thread(target=server.serve_forever, name="status", daemon=True).start()
    return server


class StatusServer(ThreadingTCPServer):
    """An HTTP server that answers at most `AT_ONCE` requests at a time, each within `_REQUEST_SECONDS`.

    It closes further connections, and those that take longer.

    Attributes:
        address: Host and port that it listens on.
        token: The token that is needed. Empty: none.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = AT_ONCE

    def __init__(self, address: tuple[str, int], known: dict[str, Callable[[], Answer]], token: str) -> None:
        self.known, self.token = known, token
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)
        self.address = f"{address[0]}:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        """Answer a request in a thread, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        """Answer a request, and cut it off after its time."""
        # A limit of each read would not do: a client that sends a byte now and then would keep its place for ever.
        deadline = threading.Timer(_REQUEST_SECONDS, _cut_off, [request])
        deadline.daemon = True
        try:
            deadline.start()
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        """Log at debug level only, because clients that disconnect are normal."""
        log.debug("a request failed", exc_info=True)


def _cut_off(request: socket.socket) -> None:
    """End a request, wherever its thread waits for the client."""
    with suppress(OSError):  # It may end by itself at this moment.
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers in plain text or JSON, and logs nothing."""

    server: StatusServer
    server_version = "nearstream"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if not self.server.token and is_foreign_name(self.headers.get("Host")):
            self.send(_json(403, {"expected": FOREIGN_NAME}))
        elif path not in self.server.known:
            self.send(_json(404, {"paths": sorted(self.server.known)}))
        elif not self._is_allowed(path):
            self.send(_json(401, {"expected": "Authorization: Bearer <token>"}))
        else:
            self.send(self.server.known[path]())

    do_HEAD = do_GET  # noqa: N815 - name required by http.server

    def _is_allowed(self, path: str) -> bool:
        if not self.server.token or path in ("/healthz", "/readyz"):
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode())

    def send(self, answer: Answer) -> None:
        code, kind, body = answer
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Allow", "GET, HEAD")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request in plain text, because http.server would answer HTML that quotes the request."""
        del message, explain
        self.close_connection = True
        self.request_version = self.protocol_version  # else no headers follow a version that cannot be read
        self.send(_refusal(code))

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as http.server
        """Log nothing, because every scrape would add a line."""


def _refusal(code: int) -> Answer:
    # http.server says 501 for a method without a function.
    status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
    return status, _TEXT, f"{status} {status.phrase}\n".encode()


def _json(code: int, value: object) -> Answer:
    return code, _JSON, json.dumps(value).encode() + b"\n"
