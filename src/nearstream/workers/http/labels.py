"""Answer who belongs to the family of a document, and take labels of documents."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web
from aiohttp.typedefs import Handler

from nearstream.schemas.checks.check import (
    MEMBERS_MAX,
    FamilyLabel,
    FamilyMembers,
    KnownDocument,
    Labelled,
    UnknownDocument,
)
from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key, from_milliseconds
from nearstream.schemas.labels.label import Label
from nearstream.schemas.topics.codec import decode_label_request
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.requests import (
    ACCESS,
    RefusedError,
    is_whole,
    json_response,
    looking_up,
    named,
    read_body,
    require,
    require_own_site,
)
from nearstream.workers.operations.signatures import LINE_MAX_BYTES, why_not_sent
from nearstream.workers.redis.kept.label_guards import Guards, label_state
from nearstream.workers.redis.reading.members import (
    Index,
    addresses,
    current_state,
    labels_of,
    members,
    spellings,
    stored_family,
)

_LABEL_BYTES = 4096 + LINE_MAX_BYTES

Unknown = Callable[[web.Request, str, str], Awaitable[web.Response | None]]  # takes a collection and an id

log = logging.getLogger(__name__)


def add_label_routes(app: web.Application, scheme: Scheme, learner: Learner, index: Index, guards: Guards) -> None:
    """Let labels be taken, and questions about families answered."""

    async def unknown(request: web.Request, collection: str, name: str) -> web.Response | None:
        """Return a refusal if the index does not have a document."""
        async with looking_up(request, collection):
            keys = {each: document_key(collection, each) for each in spellings(name)}
            known = [each for each, key in keys.items() if await current_state(index, key)]
        if known[:1] == [name]:
            return None
        detail = "expected the id of a document in the index, or `expected`: true for one that will come"
        return json_response(UnknownDocument(error="unknown_document", detail=detail, known=tuple(known)), 409)

    async def answer_members(request: web.Request) -> web.Response:
        asked = _members_asked(request)
        async with looking_up(request, asked[0]):
            found = await _members(index, guards, asked)
        if found is None:
            raise RefusedError(404, "unknown_document", "expected the id of a document in the index")
        return json_response(found)

    handlers: dict[str, Handler] = {
        "label": partial(_label, scheme, learner, unknown),
        "unlabel": partial(_unlabel, learner),
        "members": answer_members,
    }
    add_handlers(app, handlers)


async def _label(scheme: Scheme, learner: Learner, find_unknown: Unknown, request: web.Request) -> web.Response:
    require_own_site(request)
    said = decode_label_request(await read_body(request, _LABEL_BYTES))
    signature = said.signature
    collection = signature.collection if signature else said.collection
    require(request[ACCESS], collection, signature.against if signature else ())
    label = Label(label=said.label, weight=said.weight)
    if signature is None:
        name = said.id or ""
        unknown = None if said.expected else await find_unknown(request, said.collection, name)
        return unknown or await _labelled(learner, document_key(said.collection, name), label)
    wrong = why_not_sent(signature, scheme)
    if wrong:
        raise RefusedError(400, Reason.INVALID_SIGNATURE, wrong)
    await learner.learn_signature(signature)
    return await _labelled(learner, signature.document_key, label)


async def _unlabel(learner: Learner, request: web.Request) -> web.Response:
    require_own_site(request)
    return await _labelled(learner, document_key(named(request), request.match_info["id"]), None)


async def _labelled(learner: Learner, key: str, label: Label | None) -> web.Response:
    await learner.label(key, label)
    return json_response(Labelled(accepted=True), 202)


async def _members(index: Index, guards: Guards, asked: tuple[str, str, int, int]) -> FamilyMembers | None:
    collection, name, after, limit = asked
    family = await stored_family(index, document_key(collection, name))
    if family is None:
        return None
    found, following = await members(index, family, after, limit)
    senders, recipients = await addresses(index, family)
    labels = await labels_of(index, family)
    guard = await guards.read(collection, family.family_id) if labels else None
    return FamilyMembers(
        family=family.family_id,
        size=family.size,
        first_seen=from_milliseconds(family.first_seen_ms),
        members=tuple(
            KnownDocument(id=each.id, version=each.version, observed_at=from_milliseconds(each.observed_at_ms))
            for each in found
        ),
        next=following,
        labels=tuple(
            FamilyLabel(id=name, label=kind, weight=given.weight, since=from_milliseconds(given.given_ms))
            for name, given in labels
            if (kind := given.label) is not None
        ),
        label_state=label_state(guard, (given for _, given in labels)),
        senders=tuple(senders),
        recipients=tuple(recipients),
    )


def _members_asked(request: web.Request) -> tuple[str, str, int, int]:
    given = request.query
    after, limit = (given.get(name, usual) for name, usual in (("after", "0"), ("limit", "100")))
    are_whole = is_whole(after, 2**32) and is_whole(limit, MEMBERS_MAX) and int(limit)
    if given.keys() - {"collection", "after", "limit"} or not are_whole:
        expected = f"expected after=0 or more, limit=1 to {MEMBERS_MAX}, and perhaps collection="
        raise RefusedError(400, "bad_request", expected)
    collection = named(request, collection=given.get("collection", DEFAULT_COLLECTION))
    return collection, request.match_info["id"], int(after), int(limit)
