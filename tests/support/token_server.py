"""A provider of tokens (OIDC client credentials), whose tokens a broker without a real provider accepts."""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from time import time
from urllib.parse import parse_qs

from tests.support.answering import answering
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

    def answer(request: BaseHTTPRequestHandler, form: bytes) -> tuple[int, bytes]:
        told.asked.append(parse_qs(form.decode()))
        user, _, given = b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
        status = told.status if given == password(user) else 401
        token = {"access_token": bearer(user, told.seconds), "expires_in": told.seconds}
        return status, json.dumps(token if status == 200 else {"error": "invalid_client"}).encode()

    with answering(answer, "application/json") as port:
        told.url = f"http://127.0.0.1:{port}/token"
        yield told
