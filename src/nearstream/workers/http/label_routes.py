"""The paths about labels and families."""

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import Labelled, UnknownDocument
from nearstream.schemas.checks.members import MEMBERS_MAX
from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key
from nearstream.schemas.labels.label import Label
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document, decode_label_request
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.http import openapi
from nearstream.workers.http.access import ForbiddenError
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.members import MemberReader, NotLookedUpError
from nearstream.workers.http.refusals import forbidden, from_another_site, named, not_looked_up, unconfirmed
from nearstream.workers.http.requests import (
    ACCESS,
    any_id,
    is_from_another_site,
    json_response,
    read_body,
    refusal,
    status_of,
)
from nearstream.workers.operations.signatures import LINE_MAX_BYTES, why_not_sent

_SCHEME = web.AppKey("scheme", Scheme)
_LEARNER = web.AppKey("learner_of_labels", Learner)
_MEMBER_READER = web.AppKey("member_reader", MemberReader)
_LABEL_BYTES = 4096 + LINE_MAX_BYTES


def add_label_routes(app: web.Application, scheme: Scheme, learner: Learner, member_reader: MemberReader) -> None:
    """Add the paths about labels and families to an application."""
    app[_SCHEME], app[_LEARNER], app[_MEMBER_READER] = scheme, learner, member_reader
    app.router.add_post(openapi.LABEL_PATH, _label)
    app.router.add_delete(any_id(openapi.LABELLED_PATH), _unlabel)
    app.router.add_get(any_id(openapi.MEMBERS_PATH), _members)


async def _label(request: web.Request) -> web.Response:
    if is_from_another_site(request):
        return from_another_site()
    try:
        said = decode_label_request(await read_body(request, _LABEL_BYTES))
        signature = said.signature
        request[ACCESS].require(
            signature.collection if signature else said.collection, signature.against if signature else ()
        )
    except ForbiddenError:
        return forbidden()
    except InvalidMessageError as error:
        return refusal(status_of(error.reason), error.reason, error.detail)
    label = Label(label=said.label, weight=said.weight)
    if said.signature is None:
        name = said.id or ""
        unknown = None if said.expected else await _unknown(request, said.collection, name)
        return unknown or await _labelled(request, document_key(said.collection, name), label)
    wrong = why_not_sent(said.signature, request.app[_SCHEME])
    if wrong:
        return refusal(400, Reason.INVALID_SIGNATURE, wrong)
    reason = await request.app[_LEARNER].learn_signature(said.signature)
    return unconfirmed(reason) if reason else await _labelled(request, said.signature.document_key, label)


async def _unknown(request: web.Request, collection: str, name: str) -> web.Response | None:
    """Return a refusal if the index does not have a document."""
    try:
        known = await request.app[_MEMBER_READER].known(collection, name)
    except NotLookedUpError:
        return not_looked_up()
    if known[:1] == [name]:
        return None
    detail = "expected the id of a document in the index, or `expected`: true for one that will come"
    return json_response(UnknownDocument(error="unknown_document", detail=detail, known=tuple(known)), 409)


async def _unlabel(request: web.Request) -> web.Response:
    collection = named(request)
    if isinstance(collection, web.Response):
        return collection
    return await _labelled(request, document_key(collection, request.match_info["id"]), None)


async def _labelled(request: web.Request, key: str, label: Label | None) -> web.Response:
    reason = await request.app[_LEARNER].label(key, label)
    return unconfirmed(reason) if reason else json_response(Labelled(accepted=True), 202)


async def _members(request: web.Request) -> web.Response:
    given = request.query
    after, limit = (given.get(name, usual) for name, usual in (("after", "0"), ("limit", "100")))
    collection = given.get("collection", DEFAULT_COLLECTION)
    if given.keys() - {"collection", "after", "limit"} or not (
        _is_whole(after, 2**32) and _is_whole(limit, MEMBERS_MAX) and int(limit)
    ):
        return refusal(
            400, "bad_request", f"expected after=0 or more, limit=1 to {MEMBERS_MAX}, and perhaps collection="
        )
    try:
        asked = decode_document(msgspec.json.encode({"id": request.match_info["id"], "collection": collection}))
        request[ACCESS].require(asked.collection)
        reader = request.app[_MEMBER_READER]
        found = await reader.members(asked.collection, asked.id or "", int(after), int(limit))
    except ForbiddenError:
        return forbidden()
    except InvalidMessageError as error:
        return refusal(400, error.reason, error.detail)
    except NotLookedUpError:
        return not_looked_up()
    if found is None:
        return refusal(404, "unknown_document", "expected the id of a document in the index")
    return json_response(found)


def _is_whole(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most
