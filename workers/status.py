"""Metrics, health, readiness, lag of one worker over HTTP: read only, from threads beside its event loop."""

import hmac
import json
import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from time import monotonic
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from workers.guard import LOOP_SECONDS
from workers.health import Health
from workers.settings import Settings, SettingsError

AT_ONCE = 32
_READ_SECONDS = 2.0
_JSON = "application/json"

log = logging.getLogger("nearstream.status")


class Answer(NamedTuple):
    """What a path answers."""

    code: int
    kind: str
    body: bytes


def answers(health: Health) -> dict[str, Callable[[], Answer]]:
    """What is served, by path; no ids, no text."""

    def healthz() -> Answer:
        stalled = health.ticked is not None and monotonic() - health.ticked > LOOP_SECONDS
        return _json(503 if stalled else 200, {"healthy": not stalled})

    def readyz() -> Answer:
        why = health.unready
        return _json(503 if why else 200, {"ready": not why, "why": why})

    def lag() -> Answer:
        return _json(200, [at.as_json() for at in health.lags])

    return {
        "/metrics": lambda: Answer(200, CONTENT_TYPE_LATEST, generate_latest()),
        "/healthz": healthz,
        "/readyz": readyz,
        "/lag": lag,
    }


def serve_status(address: str, health: Health, token: str) -> str:
    """Serves until the process ends; the address that is served.

    Args:
        address: `host:port`; port 0: a free one, as when that of the default is taken.
        health: What is told.
        token: With one, a request needs `Authorization: Bearer <token>`, but for `/healthz` or `/readyz`.

    Raises:
        SettingsError: The address cannot be had, and it is not the default.
    """
    host, port = address.rsplit(":", 1)
    handler = _handler(answers(health), token)
    try:
        server = _Server((host, int(port)), handler)
    except OSError as error:
        if address != Settings.status:
            raise SettingsError(f"NEARSTREAM_STATUS: {address} cannot be served: {error.strerror or error}") from None
        # Nobody asked for this port: a second worker beside the first takes a free one.
        server = _Server((host, 0), handler)
    threading.Thread(target=server.serve_forever, name="status", daemon=True).start()
    return f"{host}:{server.server_address[1]}"


class _Server(ThreadingTCPServer):
    """At most `AT_ONCE` requests are answered at once, others are turned away."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = AT_ONCE

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - as socketserver
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver
        """A reader that went away is no news."""
        log.debug("a request was not answered", exc_info=True)


def _handler(known: dict[str, Callable[[], Answer]], token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _READ_SECONDS
        server_version = "nearstream"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path not in known:
                answer = _json(404, {"paths": sorted(known)})
            elif not self._is_allowed(path):
                answer = _json(401, {"expected": "Authorization: Bearer <token>"})
            else:
                answer = known[path]()
            self.send_response(answer.code)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def _is_allowed(self, path: str) -> bool:
            if not token or path in ("/healthz", "/readyz"):
                return True
            given = self.headers.get("Authorization", "")
            return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())

        def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as http.server
            """A scrape is no news."""

    return Handler


def _json(code: int, value: object) -> Answer:
    return Answer(code, _JSON, json.dumps(value).encode() + b"\n")
