"""Answer who belongs to the family of a document, and take labels of documents."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from aiohttp import web

from nearstream.schemas.checks.check import (
    MEMBERS_MAX,
    FamilyLabel,
    FamilyMember,
    FamilyMembers,
    Labelled,
    UnknownDocument,
)
from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key, from_milliseconds
from nearstream.schemas.labels.label import Label
from nearstream.schemas.topics.codec import decode_label_request
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.learning import Learner
from nearstream.workers.http.requests import (
    ACCESS,
    RefusedError,
    json_response,
    named,
    not_looked_up,
    read_body,
    require_own_site,
    unconfirmed,
)
from nearstream.workers.http.work import RareLog
from nearstream.workers.operations.signatures import LINE_MAX_BYTES, why_not_sent
from nearstream.workers.redis.index.index import RedisIndex, current_state
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.reading.labelled import labels_of
from nearstream.workers.redis.reading.members import addresses, members, spellings, stored_family

_LOOK_SECONDS = 2.0
_LABEL_BYTES = 4096 + LINE_MAX_BYTES

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemberReader:
    """Reads who belongs to a family."""

    index: RedisIndex  # the index
    guards: LabelGuards  # labels that are suspended
    rare_log: RareLog = field(default_factory=lambda: RareLog(log))  # logs why Redis refuses to be read

    async def members(self, collection: str, name: str, after: int, limit: int) -> FamilyMembers | None:
        """Return members of the family of a document, None without the document.

        They follow that with the ordinal `after`, of which at most `limit` are read.
        """
        return await self._within_time(self._members(collection, name, after, limit))

    async def known(self, collection: str, name: str) -> list[str]:
        """Return the spellings of an id that the index has."""
        return await self._within_time(self._known(collection, name))

    async def _members(self, collection: str, name: str, after: int, limit: int) -> FamilyMembers | None:
        family = await stored_family(self.index, document_key(collection, name))
        if family is None:
            return None
        page = await members(self.index, family, after, limit)
        senders, recipients = await addresses(self.index, family)
        labels = await labels_of(self.index, family)
        guard = await self.guards.read(collection, family.family_id) if labels else None
        return FamilyMembers(
            family=family.family_id,
            size=family.size,
            first_seen=from_milliseconds(family.first_seen_ms),
            members=tuple(
                FamilyMember(id=each.id, version=each.version, observed_at=from_milliseconds(each.observed_at_ms))
                for each in page.members
            ),
            next=page.next,
            labels=tuple(
                FamilyLabel(id=name, label=kind, weight=given.weight, since=from_milliseconds(given.given_ms))
                for name, given in labels
                if (kind := given.label) is not None
            ),
            label_state=guard.state if guard else "",
            senders=tuple(senders),
            recipients=tuple(recipients),
        )

    async def _known(self, collection: str, name: str) -> list[str]:
        return [each for each in spellings(name) if await current_state(self.index, document_key(collection, each))]

    async def _within_time(self, answering: Coroutine[None, None, Answer]) -> Answer:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await answering
        except (IndexUnavailableError, IndexLostError, TimeoutError) as error:
            raise not_looked_up() from error
        except SettingsError as error:
            self.rare_log.warning(f"the index refuses to be read: {error}")
            raise not_looked_up() from error


def add_label_routes(app: web.Application, scheme: Scheme, learner: Learner, reader: MemberReader) -> None:
    """Let labels be taken, and questions about families answered."""
    handlers = {
        "label": partial(_label, scheme, learner, reader),
        "unlabel": partial(_unlabel, learner),
        "members": partial(_members, reader),
    }
    add_handlers(app, handlers)


async def _label(scheme: Scheme, learner: Learner, reader: MemberReader, request: web.Request) -> web.Response:
    require_own_site(request)
    said = decode_label_request(await read_body(request, _LABEL_BYTES))
    signature = said.signature
    collection = signature.collection if signature else said.collection
    request[ACCESS].require(collection, signature.against if signature else ())
    label = Label(label=said.label, weight=said.weight)
    if signature is None:
        name = said.id or ""
        unknown = None if said.expected else await _unknown(reader, said.collection, name)
        return unknown or await _labelled(learner, document_key(said.collection, name), label)
    wrong = why_not_sent(signature, scheme)
    if wrong:
        raise RefusedError(400, Reason.INVALID_SIGNATURE, wrong)
    reason = await learner.learn_signature(signature)
    if reason:
        raise unconfirmed(reason)
    return await _labelled(learner, signature.document_key, label)


async def _unknown(reader: MemberReader, collection: str, name: str) -> web.Response | None:
    """Return a refusal if the index does not have a document."""
    known = await reader.known(collection, name)
    if known[:1] == [name]:
        return None
    detail = "expected the id of a document in the index, or `expected`: true for one that will come"
    return json_response(UnknownDocument(error="unknown_document", detail=detail, known=tuple(known)), 409)


async def _unlabel(learner: Learner, request: web.Request) -> web.Response:
    require_own_site(request)
    return await _labelled(learner, document_key(named(request), request.match_info["id"]), None)


async def _labelled(learner: Learner, key: str, label: Label | None) -> web.Response:
    reason = await learner.label(key, label)
    if reason:
        raise unconfirmed(reason)
    return json_response(Labelled(accepted=True), 202)


async def _members(reader: MemberReader, request: web.Request) -> web.Response:
    given = request.query
    after, limit = (given.get(name, usual) for name, usual in (("after", "0"), ("limit", "100")))
    is_whole = _is_whole(after, 2**32) and _is_whole(limit, MEMBERS_MAX) and int(limit)
    if given.keys() - {"collection", "after", "limit"} or not is_whole:
        expected = f"expected after=0 or more, limit=1 to {MEMBERS_MAX}, and perhaps collection="
        raise RefusedError(400, "bad_request", expected)
    collection = named(request, collection=given.get("collection", DEFAULT_COLLECTION))
    found = await reader.members(collection, request.match_info["id"], int(after), int(limit))
    if found is None:
        raise RefusedError(404, "unknown_document", "expected the id of a document in the index")
    return json_response(found)


def _is_whole(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most
