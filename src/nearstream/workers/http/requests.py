"""Read requests of the HTTP API and their questions, within bounds of size, time, and what tokens may do."""

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import ApiError
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import INPUT, ConsumerRecord, header
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document, decode_signature_line
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.ingest.media_type import HTML_TYPES
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import Unsigned
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.config.domains import collection_of
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.tokens import ApiToken, parse_tokens
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.http.openapi import ROUTES
from nearstream.workers.http.work import RareLog
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES, MailRules, Memory, read_message
from nearstream.workers.operations.signatures import LINE_MAX_BYTES, why_not_sent
from nearstream.workers.pipeline.sign import parse_document, parse_unsigned

MAIL_TYPE, SIGNATURE_TYPE = "message/rfc822", "application/vnd.nearstream.signature"
LINES_TYPE = "application/x-ndjson"
_ATTACHMENTS_SHARE = 0.5  # of the time for an answer, after which no more attachments are read
READABLE = (MAIL_TYPE, "text/plain", "application/json", *sorted(HTML_TYPES), SIGNATURE_TYPE, LINES_TYPE)
DEFAULT_TYPE = "application/json"  # of a body without a type
HEADER_BYTES = 8190  # of one header, and of the request line
HEADERS = 64
BODY_SECONDS = 10.0
SHORT_BYTES = 64 * 1024  # of a body that large ones do not shut out
FOR_SHORT_BYTES = 16 * 1024 * 1024  # of the memory of all bodies, which is left to short ones
_LOOK_SECONDS = 2.0
_BURST_SECONDS = 1.0  # a token that was not used for this long may ask for as many requests at once
BODIES = web.AppKey("bodies", Memory)  # the memory that the bodies of all requests in work share
HELD = web.RequestKey("held", int)  # how many bytes of it a request has taken
IN_USE: web.RequestKey[asyncio.Future[Any]] = web.RequestKey("in_use")  # what needs the body after the answer
_PASSED_ON = ("content-type", "content-encoding")
_STATUS_OF_REASON = {
    **dict.fromkeys((Reason.TOO_LARGE, Reason.DECOMPRESSION_LIMIT), 413),
    **dict.fromkeys((Reason.UNSUPPORTED_CONTENT_TYPE, Reason.EXTRACTION_FAILED), 415),
}

Asked = TypeVar("Asked")
_rare_log = RareLog(logging.getLogger(__name__))

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "nearstream",
}


def is_readable(kind: str) -> bool:
    """Return whether a body of this media type can be a question."""
    return kind in READABLE or (kind.startswith("application/") and kind.endswith("+json"))


def media_type(content_type: str) -> str:
    """Return the media type in the value of a header Content-Type."""
    return content_type.partition(";")[0].strip().lower()


def type_of(record: ConsumerRecord) -> str:
    """Return the media type of the body of a question."""
    return media_type((header(record.headers, "content-type") or b"").decode("latin-1"))


def read_document(record: ConsumerRecord, limits: DocumentLimits) -> Unsigned:
    """Return the document of a question that is a text, or a document in JSON."""
    parsed = parse_unsigned(record, limits)
    if isinstance(parsed, Removal):
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a document")
    return parsed


def read_signature(record: ConsumerRecord, scheme: Scheme) -> Signature:
    """Return the signature of a question, as `nearstream sign` prints it, if it has our scheme and key."""
    signature = decode_signature_line((record.value or b"").strip())
    wrong = why_not_sent(signature, scheme)
    if wrong:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, wrong)
    return signature


def read_page(record: ConsumerRecord, limits: DocumentLimits, pages: PageReader) -> Unsigned:
    """Return the document of a question that is a web page, with its text.

    It blocks while the page becomes text.
    """
    parsed = parse_document(record, limits)
    if isinstance(parsed, Removal):
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a document")
    return pages.with_page(parsed)[0]


def read_mail(record: ConsumerRecord, key: HashKey, html: HtmlProcesses, rules: MailRules, seconds: float) -> Unsigned:
    """Return the document of a question that is a whole mail.

    It blocks while the HTML of the mail becomes text. Attachments of a mail with words are read for half of the
    seconds that an answer may take. The time of the document is that of the request, or what the client says, because
    a sender chooses the Date.
    """
    if (header(record.headers, "content-encoding") or b"identity").strip().lower() != b"identity":
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected a message without content-encoding")
    received_at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    until = time.monotonic() + _ATTACHMENTS_SHARE * seconds
    recipient = (header(record.headers, "nearstream-recipient") or b"").decode("utf-8", "replace")
    named = _named(record)
    collection = collection_of(recipient, rules.domains) or named.collection
    mail = read_message(record.value or b"", received_at, key, html, collection, rules, until)
    document = msgspec.structs.replace(mail.document, against=named.against, observed_at=named.observed_at)
    return Unsigned(fill_defaults(document, DocumentLimits(), record.timestamp_ms), None, mail.degraded)


def _named(record: ConsumerRecord) -> Document:
    """Return what the headers of a question say about its mail."""
    given = {
        name: value.decode("utf-8", "replace")
        for name in ("collection", "observed_at", "against")
        if (value := header(record.headers, f"nearstream-{name.replace('_', '-')}")) is not None
    }
    return decode_document(msgspec.json.encode(given | {"against": given.get("against", "").split()}))


def json_response(value: object, status: int = 200) -> web.Response:
    """Return a response with a message in JSON."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json", headers=SECURITY_HEADERS
    )


class RefusedError(Exception):
    """A request is refused, with a status and what was expected."""

    def __init__(self, status: int, error: str, detail: str, *, again: bool = False) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail, self.again = status, error, detail, again

    def response(self) -> web.Response:
        """Return the response that says so."""
        response = json_response(ApiError(error=self.error, detail=self.detail), self.status)
        if self.again:
            response.headers["Retry-After"] = "1"
        return response


def require(access: ApiToken, collection: str, against: Collection[str] = ()) -> None:
    """Refuse a request that may not name a collection, or others to compare with."""
    if not access.may_name(collection, against):
        raise RefusedError(403, "collection_forbidden", "expected a collection that the token is for")


class Gate:
    """Knows the tokens, and counts the requests of each."""

    def __init__(self, tokens: str) -> None:
        # How many requests each token may make now, and when that was so.
        self._meters: dict[ApiToken, tuple[float, float]] = {}
        self.take(tokens)

    def take(self, tokens: str) -> None:
        """Take other tokens. One that was known keeps its count."""
        self._meters = {token: self._meters.get(token, (float("inf"), 0.0)) for token in parse_tokens(tokens)}

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return not self._meters

    def access(self, authorization: str, now: float) -> tuple[ApiToken | None, bool]:
        """Return the token of a request, None without one, and whether it comes too early."""
        given = authorization.encode("utf-8", "surrogateescape")
        # All tokens are compared, so that the time of the answer does not tell which one fits.
        fitting = [each for each in self._meters if hmac.compare_digest(given, b"Bearer " + each.token.encode())]
        if not fitting:
            return None, False
        (token,) = fitting
        return token, not self._may_ask(token, now)

    def _may_ask(self, token: ApiToken, now: float) -> bool:
        """Count a request, unless there were too many."""
        if not token.rate:
            return True
        left, at = self._meters[token]
        left = min(max(1.0, _BURST_SECONDS * token.rate), left + (now - at) * token.rate)
        may_ask = left >= 1
        self._meters[token] = left - may_ask, now
        return may_ask


ACCESS = web.RequestKey("access", ApiToken)  # where the middleware puts what a request may do


def is_bare_question(request: web.Request) -> bool:
    """Return whether a request asks about a signature, and wants yes or no alone."""
    is_asked = (request.method, request.path, request.query_string) == ("POST", ROUTES["check"].path, "bare=1")
    return is_asked and type_of_body(request) == SIGNATURE_TYPE


def type_of_body(request: web.Request) -> str:
    """Return the media type of the body of a request."""
    return media_type(request.headers.get("Content-Type", DEFAULT_TYPE))


def require_readable(request: web.Request, value_bytes: int) -> None:
    """Refuse a body with a wrong type or length, before it is read.

    A body that is no mail may have `value_bytes`.
    """
    if not is_readable(type_of_body(request)):
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, f"expected {', '.join(READABLE)}")
    limit = _limit(request, value_bytes)
    if request.content_length is not None and request.content_length > limit:
        raise InvalidMessageError(Reason.TOO_LARGE, f"expected a body of at most {limit} bytes")


async def read_record(request: web.Request, value_bytes: int) -> ConsumerRecord:
    """Return the body of a request as a record of `documents`.

    The headers of the request that such a record may have are its headers: the type and encoding of the content, and
    those that begin with `nearstream-`.
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
    return {SIGNATURE_TYPE: LINE_MAX_BYTES, MAIL_TYPE: MESSAGE_MAX_BYTES}.get(type_of_body(request), value_bytes)


def refusal_of(error: RefusedError | InvalidMessageError) -> RefusedError:
    """Return how an error of what reads requests is told."""
    if isinstance(error, InvalidMessageError):
        return RefusedError(_STATUS_OF_REASON.get(error.reason, 400), error.reason, error.detail)
    return error


def unconfirmed(reason: str) -> RefusedError:
    """Return the refusal of what was not confirmed."""
    return RefusedError(503, reason, "expected the record to be confirmed, ask again", again=True)


@asynccontextmanager
async def looking_up(request: web.Request, collection: str) -> AsyncIterator[None]:
    """Refuse the request in the block with 503 if the index does not answer in time.

    The request is about this collection, for which its token is checked.
    """
    require(request[ACCESS], collection)
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            yield
    except (IndexUnavailableError, IndexLostError, SettingsError, TimeoutError) as error:
        _rare_log.warning(f"the index gives no answer: {str(error) or type(error).__name__}")
        expected = "expected Redis to answer and to allow it, ask again"
        raise RefusedError(503, "index_unavailable", expected, again=True) from None


def require_own_site(request: web.Request) -> None:
    """Refuse a request that a browser sent for a page of another site.

    A page may send simple requests to any address, loopback included. It cannot read the answers, but a request that
    changes something would have done so.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        raise RefusedError(403, "cross_origin", "expected no request of a page of another site")


def require_all(request: web.Request) -> None:
    """Refuse a request that may not see all collections.

    A record that could not be read, or a setting, belongs to none.
    """
    if request[ACCESS].collections:
        raise RefusedError(403, "collection_forbidden", "expected a token for all collections")


def named(request: web.Request, **others: str) -> str:
    """Return the collection that a request names in its path, or in these other fields, if its token is for it."""
    given = decode_document(msgspec.json.encode({**request.match_info, **others}))
    require(request[ACCESS], given.collection)
    return given.collection


async def asked_for_all(request: web.Request, kind: type[Asked], limit: int, expected: str) -> Asked:
    """Return what a request that may see all collections asks to be changed.

    Its body is JSON of this kind, else the request is refused with what was expected.
    """
    require_all(request)
    require_own_site(request)
    try:
        return msgspec.json.decode(await read_body(request, limit), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RefusedError(400, "bad_request", expected) from None


def is_whole(text: str, most: int) -> bool:
    """Return whether a parameter is a whole number from 0 on that is not too large."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most
