"""Refusals that several paths share, and the document that a path names."""

from typing import TypeVar

import msgspec
from aiohttp import web

from nearstream.schemas.topics.codec import InvalidMessageError, decode_document
from nearstream.workers.http.access import ForbiddenError
from nearstream.workers.http.requests import ACCESS, ask_again, is_from_another_site, read_body, refusal, status_of

Asked = TypeVar("Asked")


def named(request: web.Request) -> str | web.Response:
    """Return the collection in a path, or refuse to change something there."""
    if is_from_another_site(request):
        return from_another_site()
    try:
        given = decode_document(msgspec.json.encode(dict(request.match_info)))
        request[ACCESS].require(given.collection)
    except ForbiddenError:
        return forbidden()
    except InvalidMessageError as error:
        return refusal(400, error.reason, error.detail)
    return given.collection


def unconfirmed(reason: str) -> web.Response:
    """Return the refusal of what Kafka has not confirmed."""
    return ask_again(503, reason, "expected Kafka to confirm the record, ask again")


def not_looked_up() -> web.Response:
    """Return the refusal of a question to which Redis gave no answer."""
    return ask_again(503, "index_unavailable", "expected Redis to answer and to allow it, ask again")


def forbidden() -> web.Response:
    """Return the refusal of a collection that the token is not for."""
    return refusal(403, "collection_forbidden", "expected a collection that the token is for")


def for_all_only(request: web.Request) -> web.Response | None:
    """Return the refusal of a request that may not see all collections.

    A record that could not be read, or a setting, belongs to none.
    """
    if request[ACCESS].collections:
        return refusal(403, "collection_forbidden", "expected a token for all collections")
    return None


async def asked_for_all(request: web.Request, kind: type[Asked], limit: int, expected: str) -> Asked | web.Response:
    """Return what a request that may see all collections asks to be changed, or its refusal.

    Args:
        request: The request.
        kind: What its body holds as JSON.
        limit: Most bytes of its body.
        expected: What to say of another body.
    """
    refused = for_all_only(request)
    if refused is not None:
        return refused
    if is_from_another_site(request):
        return from_another_site()
    try:
        return msgspec.json.decode(await read_body(request, limit), type=kind)
    except InvalidMessageError as error:
        return refusal(status_of(error.reason), error.reason, error.detail)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return refusal(400, "bad_request", expected)


def from_another_site() -> web.Response:
    """Return the refusal of a request that a browser sent for a page of another site."""
    return refusal(403, "cross_origin", "expected no request of a page of another site")
