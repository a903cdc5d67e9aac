"""The table of the paths of the HTTP API, which makes its routes and its OpenAPI 3.1 description."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import msgspec

from nearstream.schemas.checks.check import (
    ApiError,
    BareAnswer,
    CheckAnswer,
    FamilyMembers,
    Health,
    Labelled,
    LabelRequest,
    Readiness,
    Removal,
    SkipAnswer,
    SkipAnswers,
    SkipRequest,
    UnknownDocument,
)
from nearstream.schemas.documents.document import Document
from nearstream.schemas.live import details, state
from nearstream.schemas.published.json_schema import components

Json = dict[str, Any]  # parts of OpenAPI, each with a form of its own

_TOKEN: list[dict[str, list[str]]] = [{"token": []}, {}]  # none is needed where none is set


class Route(NamedTuple):
    """A path of the API with a method, and its description."""

    # The method, a space, and the path with names of parameters in braces. `id` matches any text, other names match
    # none with a slash.
    at: str
    summary: str  # what it does
    answer: type[msgspec.Struct] | Json  # the message that it returns, or its whole response
    parameters: tuple[Json, ...] = ()  # parameters of the path, the query and the headers
    takes: Mapping[str, Json] = {}  # schemas of the body by content type
    refusals: Mapping[str, Json] = {}  # its own responses by status, beside those of all
    status: str = "200"  # of the answer
    is_open: bool = False  # it needs no token

    @property
    def method(self) -> str:
        """Return the method."""
        return self.at.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path."""
        return self.at.partition(" ")[2]


def _header(name: str, meaning: str) -> Json:
    return {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}


def _in_path(name: str, meaning: str) -> Json:
    return {**_header(name, meaning), "in": "path", "required": True}


def _query(name: str, meaning: str, *, required: bool = False) -> Json:
    return {**_header(name, meaning), "in": "query", "required": required}


def _switch(name: str, meaning: str) -> Json:
    schema = {"type": "string", "enum": ["0", "1"], "default": "0"}
    return {"name": name, "in": "query", "description": meaning, "schema": schema}


def _reference(message: type[msgspec.Struct]) -> Json:
    return {"$ref": f"#/components/schemas/{message.__name__}"}


def _response(meaning: str, message: type[msgspec.Struct] = ApiError) -> Json:
    return {"description": meaning, "content": {"application/json": {"schema": _reference(message)}}}


def _text(meaning: str, *kinds: str) -> Json:
    return {"description": meaning, "content": {kind: {"schema": {"type": "string"}} for kind in kinds}}


def _json(message: type[msgspec.Struct]) -> Json:
    return {"application/json": _reference(message)}


_TENANT = _query("collection", "The tenant, by default `default`.")
_ONLY_OF = _query("collection", "Only events of this collection.")
_ANY_ID = "percent-encoded. It may contain slashes."
_DOCUMENT = (_in_path("collection", "The tenant."), _in_path("id", f"The id, {_ANY_ID}"))
_STORED_ID = "Id of a document, percent-encoded."
_FILE = _text("A file, which holds no data.", "text/html", "text/css", "text/javascript")
_UNCONFIRMED = {"503": _response("Kafka has not confirmed the record. Ask again after `Retry-After`.")}
_NOT_STORED = {
    "404": _response("It is not stored."),
    "503": _response("Redis does not answer, or does not allow it."),
}

ROUTES = {
    "check": Route(
        "POST /v1/check",
        "Say what a document is to those in the index, and add it only if asked to",
        {
            "description": "The answer, also if it is degraded, or with `bare` yes or no alone.",
            "content": {
                "application/json": {"schema": {"anyOf": [_reference(CheckAnswer), _reference(BareAnswer)]}},
                "application/x-ndjson": {"schema": {"type": "string"}},
            },
        },
        (
            _switch("learn", "1: the document is handed to the workers too, which add it to the index."),
            _switch("bare", "1: the answer is only whether there is a related document."),
            _header("nearstream-collection", "The tenant. Documents of two collections are never compared."),
            _header("nearstream-recipient", "The address that gets a mail, for the collection of its domain."),
            _header("nearstream-id", "The id of a text or page."),
            _header("nearstream-observed-at", "When a text, page or mail was observed, with time zone."),
        ),
        _json(Document)
        | {
            "message/rfc822": {"type": "string", "contentMediaType": "message/rfc822"},
            "text/plain": {"type": "string"},
            "text/html": {"type": "string"},
            "application/vnd.nearstream.signature": {"type": "array"},
            "application/x-ndjson": {"type": "string", "description": "Up to 64 lines, each a document in JSON."},
        },
        {"503": _response("With `bare`: there is no answer. Ask again after `Retry-After`.")},
    ),
    "skip": Route(
        "GET /v1/skip",
        "Say whether a crawler need not fetch a page now",
        SkipAnswer,
        (_query("url", "The page, percent-encoded.", required=True), _TENANT),
    ),
    "skip_many": Route(
        "POST /v1/skip",
        "Say of many pages whether a crawler need not fetch them now",
        SkipAnswers,
        takes=_json(SkipRequest),
    ),
    "due": Route(
        "GET /v1/due",
        "Return the pages of a host that should be fetched now, none if the answer is degraded",
        SkipAnswers,
        (
            _query("host", "The host. A port and `www.` are ignored.", required=True),
            _query("limit", "Most pages that are returned, 1 to 1000, by default 100."),
            _TENANT,
        ),
    ),
    "cdx": Route(
        "GET /cdx",
        "Return the CDX line of the content that a URL had at its last fetch",
        _text("One line, or none, also if Redis does not answer.", "text/plain"),
        (
            _query("url", "The page, percent-encoded, exactly as it is to be fetched.", required=True),
            _TENANT,
            _query("fl", "Names of fields, by default all, separated by commas."),
            _query("filter", "`digest:` and a digest: no line for another one. Other filters are ignored."),
            _query("header", "`1`: the header of a CDX file comes first."),
            _query("limit", "It is ignored: there is at most one line."),
            _query("stored", "`any`: a line also if no WARC record is known that holds the page."),
        ),
    ),
    "remove": Route(
        "DELETE /v1/documents/{collection}/{id}",
        "Hand the removal of a document to the workers",
        Removal,
        _DOCUMENT,
        refusals=_UNCONFIRMED,
        status="202",
    ),
    "label": Route(
        "POST /v1/label",
        "Say that a document is spam or ham, which counts for all of its family",
        Labelled,
        takes=_json(LabelRequest),
        refusals={**_UNCONFIRMED, "409": _response("The index does not have the document.", UnknownDocument)},
        status="202",
    ),
    "unlabel": Route(
        "DELETE /v1/label/{collection}/{id}",
        "Take back the label of a document",
        Labelled,
        _DOCUMENT,
        refusals=_UNCONFIRMED,
        status="202",
    ),
    "members": Route(
        "GET /v1/families/{id}/members",
        "Say which documents are in the family of a document, in the order of joining",
        FamilyMembers,
        (
            _in_path("id", f"The id of any document of the family, {_ANY_ID}"),
            _TENANT,
            _query("after", "`next` of the former answer, by default 0."),
            _query("limit", "Most members that are read, 1 to 1000, by default 100."),
        ),
        refusals=_NOT_STORED,
    ),
    "readiness": Route(
        "GET /readyz",
        "Say whether checks get whole answers",
        Readiness,
        refusals={"503": _response("They do not.", Readiness)},
        is_open=True,
    ),
    "health": Route("GET /healthz", "Say whether the process works", Health, is_open=True),
    "metrics": Route("GET /metrics", "Return all metrics for Prometheus", _text("The metrics.", "text/plain")),
    "description": Route(
        "GET /v1/openapi.json",
        "Return this description",
        {"description": "This description.", "content": {"application/json": {"schema": {"type": "object"}}}},
        is_open=True,
    ),
    "events": Route(
        "GET /v1/events",
        "Send verdicts, relation events and retractions as they arrive, as server-sent events",
        _text(
            "Each message has the `event_id` as its id, and the event with `detected_at` as its data. A message "
            "of the type `missed` counts events that have left the memory of the server.",
            "text/event-stream",
        ),
        (
            _ONLY_OF,
            _query("recent", "Begin with so many earlier events, by default 0, at most 1,000."),
            _header("Last-Event-ID", "Go on after this event."),
        ),
    ),
    "live": Route("GET /v1/live", "Return the last hour of the stream of events", state.LiveState, (_ONLY_OF,)),
    "family": Route(
        "GET /v1/families/{family}",
        "Return a family of copies with its newest members",
        state.LiveFamilyDetail,
        (
            _in_path("family", "The id of the family."),
            _query("collection", "The collection of a member. It is asked for if no verdict is in memory."),
            _query("id", "The id of this member. By default that of the first document, if an alert names it."),
        ),
        refusals=_NOT_STORED,
    ),
    "pair": Route(
        "GET /v1/pair",
        "Show what two documents share, as their signatures say",
        details.LivePair,
        (_TENANT, _query("newer", _STORED_ID, required=True), _query("older", _STORED_ID, required=True)),
        refusals=_NOT_STORED,
    ),
    "document": Route(
        "GET /v1/document",
        "Show a document with its states, as their signatures say",
        details.LiveDocument,
        (_TENANT, _query("id", _STORED_ID, required=True)),
        refusals=_NOT_STORED,
    ),
    "dead_letters": Route("GET /v1/dead-letters", "Return the newest dead letters", state.LiveLetters),
    "dead_letter": Route(
        "GET /v1/dead-letters/{id}",
        "Return a dead letter with the beginning of its record",
        state.LiveLetterDetail,
        (_in_path("id", "The id of the dead letter."),),
        refusals={"404": _response("It is none of the newest.")},
    ),
    "replay": Route(
        "POST /v1/replay",
        "Send the records again that were refused for a reason, each once, and say what became of them",
        state.LiveReplay,
        takes=_json(state.LiveReplayRequest),
        refusals={"503": _response("Kafka or Redis does not answer, or does not allow it.")},
    ),
    "silence": Route(
        "POST /v1/silences",
        "Say that an alert was seen, or keep its subject silent, and return the last hour with that",
        state.LiveState,
        takes=_json(state.LiveSilenceRequest),
        refusals=_UNCONFIRMED,
    ),
    "page": Route("GET /", "Return the live page", _FILE, is_open=True),
    "page_file": Route(
        "GET /page/{file}",
        "Return a file of the live page",
        _FILE,
        (_in_path("file", "Name of a file of the page."),),
        refusals={"404": _response("There is no such file.")},
        is_open=True,
    ),
}
OPEN_PATHS = tuple(route.path for route in ROUTES.values() if route.is_open)  # need no token

# Each message of the live page and each part of one has a name that begins so.
LIVE_MESSAGES = tuple(
    each for module in (state, details) for name, each in vars(module).items() if name.startswith("Live")
)
_ANSWERS: tuple[type[msgspec.Struct], ...] = (
    *(CheckAnswer, BareAnswer, SkipAnswer, SkipAnswers, FamilyMembers, Labelled, Removal, ApiError, UnknownDocument),
    *(Health, Readiness, *LIVE_MESSAGES),
)


def description() -> Json:
    """Return the description of the API."""
    paths: dict[str, Json] = {route.path: {} for route in ROUTES.values()}
    for name, route in ROUTES.items():
        paths[route.path][route.method.lower()] = _operation(name, route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nearstream",
            "version": version("nearstream"),
            "description": "Answers within 150 ms whether a document is bulk, a copy of a known one, or new.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(name: str, route: Route) -> Json:
    answer = route.answer if isinstance(route.answer, dict) else _response(f"{route.summary}.", route.answer)
    described: Json = {
        "operationId": name,
        "summary": route.summary,
        "security": [] if route.is_open else _TOKEN,
        "responses": {
            route.status: answer,
            **route.refusals,
            **({} if route.is_open else {"default": _response("Why the request was refused, or a bug.")}),
        },
    }
    if route.parameters:
        described["parameters"] = list(route.parameters)
    if route.takes:
        content = {kind: {"schema": schema} for kind, schema in route.takes.items()}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _schemas() -> Json:
    """Return the schemas of all messages. Answers always have all of their fields."""
    _, schemas = components((*_ANSWERS, Document, LabelRequest, SkipRequest), "#/components/schemas/{name}")
    for answer in _ANSWERS:
        schema = schemas[answer.__name__]
        schema["required"] = list(schema["properties"])
        for field in schema["properties"].values():
            field.pop("default", None)
    return dict(sorted(schemas.items()))
