"""Read requests of the HTTP API, within bounds of size and time."""

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import ApiError
from nearstream.schemas.documents.record import INPUT, ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.workers.http.access import Access
from nearstream.workers.http.openapi import CHECK_PATH
from nearstream.workers.http.reading import DEFAULT_TYPE, MAIL_TYPE, READABLE, SIGNATURE_TYPE, is_readable, media_type
from nearstream.workers.mail.memory import Memory
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES
from nearstream.workers.operations.signatures import LINE_MAX_BYTES

HEADER_BYTES = 8190  # of one header, and of the request line
HEADERS = 64
BODY_SECONDS = 10.0
SHORT_BYTES = 64 * 1024  # of a body that large ones do not shut out
FOR_SHORT_BYTES = 16 * 1024 * 1024  # of the memory of all bodies, which is left to short ones
ACCESS = web.RequestKey("access", Access)  # where the middleware puts what a request may do
ASKS_TOKEN = web.AppKey("asks_token", bool)  # whether an application asks for tokens
BODIES = web.AppKey("bodies", Memory)  # the memory that the bodies of all requests in work share
HELD = web.RequestKey("held", int)  # how many bytes of it a request has taken
IN_USE: web.RequestKey[asyncio.Future[Any]] = web.RequestKey("in_use")  # what needs the body after the answer
_PASSED_ON = ("content-type", "content-encoding")
_STATUS_OF_REASON = {Reason.TOO_LARGE: 413, Reason.DECOMPRESSION_LIMIT: 413, Reason.UNSUPPORTED_CONTENT_TYPE: 415}

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "nearstream",
}


def any_name(path: str) -> str:
    """Return a path whose names in braces match any text without a slash.

    By default they match no braces.
    """
    return path.replace("}", ":[^/]+}")


def any_id(path: str) -> str:
    """Return a path with the names of a collection and a document, which match any text.

    What is wrong with a name is said by what reads it.
    """
    return path.replace("{collection}", "{collection:[^/]+}").replace("{id}", r"{id:[\s\S]+}")


def is_bare_question(request: web.Request) -> bool:
    """Return whether a request asks about a signature, and wants yes or no alone."""
    is_asked = (request.method, request.path, request.query_string) == ("POST", CHECK_PATH, "bare=1")
    return is_asked and type_of_body(request) == SIGNATURE_TYPE


def type_of_body(request: web.Request) -> str:
    """Return the media type of the body of a request."""
    return media_type(request.headers.get("Content-Type", DEFAULT_TYPE))


def is_from_another_site(request: web.Request) -> bool:
    """Return whether a browser sent a request for a page of another site.

    A page may send simple requests to any address, loopback included. It cannot read the answers, but a request that
    changes something would have done so.
    """
    origin = request.headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != request.host


def refused_unread(request: web.Request, value_bytes: int) -> web.Response | None:
    """Return the refusal of a body with a wrong type or length.

    Args:
        request: The request.
        value_bytes: Most bytes of a body that is no mail.
    """
    if not is_readable(type_of_body(request)):
        return refusal(415, Reason.UNSUPPORTED_CONTENT_TYPE, f"expected {', '.join(READABLE)}")
    limit = _limit(request, value_bytes)
    if request.content_length is not None and request.content_length > limit:
        return refusal(413, Reason.TOO_LARGE, f"expected a body of at most {limit} bytes")
    return None


async def read_record(request: web.Request, value_bytes: int) -> ConsumerRecord:
    """Return the body of a request as a record of `documents`.

    The headers of the request that such a record may have are its headers: the type and encoding of the content, and
    those that begin with `nearstream-`.

    Args:
        request: The request.
        value_bytes: Most bytes of a body that is no mail.

    Raises:
        InvalidMessageError: The body is too large.
        HTTPRequestTimeout: The client did not send its body in time.
    """
    body = await read_body(request, _limit(request, value_bytes))
    named = [(name.lower(), value) for name, value in request.headers.items()]
    headers: list[tuple[str, bytes | None]] = [
        (name, value.encode("utf-8", "surrogateescape"))
        for name, value in named
        if name in _PASSED_ON or name.startswith("nearstream-")
    ]
    return ConsumerRecord(INPUT, 0, 0, time.time_ns() // 1_000_000, None, body, headers)


async def read_body(request: web.Request, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        InvalidMessageError: It has more than `limit` bytes.
        HTTPRequestTimeout: The client did not send it in time.
        HTTPTooManyRequests: The bodies of all requests in work have too many bytes together.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                is_short = len(body) + len(piece) <= SHORT_BYTES
                if not request.app[BODIES].take(len(piece), keep=0 if is_short else FOR_SHORT_BYTES):
                    raise web.HTTPTooManyRequests
                request[HELD] = request.get(HELD, 0) + len(piece)
                body += piece
                if len(body) > limit:
                    raise InvalidMessageError(Reason.TOO_LARGE, f"expected a body of at most {limit} bytes")
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    return bytes(body)


def give_back_body(request: web.Request) -> None:
    """Give back the memory of the body of a request, as soon as nothing needs it any more."""
    memory, size, in_use = request.app[BODIES], request.get(HELD, 0), request.get(IN_USE)
    if in_use is None or in_use.done():
        memory.give_back(size)
    else:
        in_use.add_done_callback(lambda _: memory.give_back(size))


def _limit(request: web.Request, value_bytes: int) -> int:
    """Return the most bytes that the body of a request may have."""
    return {SIGNATURE_TYPE: LINE_MAX_BYTES, MAIL_TYPE: MESSAGE_MAX_BYTES}.get(type_of_body(request), value_bytes)


def status_of(reason: Reason) -> int:
    """Return the status code for a document that cannot be read."""
    return _STATUS_OF_REASON.get(reason, 400)


def json_response(value: msgspec.Struct, status: int = 200) -> web.Response:
    """Return a response with a message in JSON."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json", headers=SECURITY_HEADERS
    )


def ask_again(status: int, error: str, detail: str) -> web.Response:
    """Return a response that refuses a request for now."""
    response = refusal(status, error, detail)
    response.headers["Retry-After"] = "1"
    return response


def refusal(status: int, error: str, detail: str) -> web.Response:
    """Return a response that refuses a request."""
    return json_response(ApiError(error=error, detail=detail), status)
