"""A provider of tokens (OIDC client credentials), whose tokens a broker without a real provider accepts."""

import json
import threading
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from urllib.parse import parse_qs

from tests.support.secured import password


def bearer(user: str, seconds: float) -> str:
    """Return an unsigned token for a user of the test broker, which ends after so many seconds."""
    claims = {"sub": user, "iat": time(), "exp": time() + seconds}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


@dataclass
class TokenServer:
    """What a provider does, and what it was asked."""

    seconds: float  # how long its tokens live
    status: int = 200  # What it answers. Other than 200, there is no token in the answer.
    url: str = ""  # where it is asked
    asked: list[dict[str, list[str]]] = field(default_factory=list)  # the form of each request


@contextmanager
def token_server(seconds: float) -> Iterator[TokenServer]:
    """Run a provider, for users with the passwords of the test broker."""
    told = TokenServer(seconds)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.asked.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            user, _, given = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
            answer: dict[str, object] = {"access_token": bearer(user, told.seconds), "expires_in": told.seconds}
            status = told.status if given == password(user) else 401
            if status != 200:
                answer = {"error": "invalid_client"}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}/token"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
