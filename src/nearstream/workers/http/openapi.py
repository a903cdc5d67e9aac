"""The OpenAPI 3.1 description of the HTTP API, made from the messages that it answers with."""

from importlib.metadata import version

import msgspec

from nearstream.schemas.checks.check import (
    ApiError,
    BareAnswer,
    CheckAnswer,
    Health,
    Labelled,
    LabelRequest,
    Readiness,
    Removal,
    SkipAnswer,
    UnknownDocument,
)
from nearstream.schemas.checks.members import FamilyMembers
from nearstream.schemas.documents.document import Document
from nearstream.schemas.published.json_schema import components
from nearstream.workers.http.openapi_live import LIVE_MESSAGES, PAGE_FILE_PATH, PAGE_PATH, live_paths
from nearstream.workers.http.openapi_parts import (
    REFUSALS,
    Json,
    error,
    header,
    in_path,
    in_query,
    operation,
    reference,
    response,
    text,
)

DOCUMENT_PATH = "/v1/documents/{collection}/{id}"
LABEL_PATH, LABELLED_PATH = "/v1/label", "/v1/label/{collection}/{id}"
MEMBERS_PATH = "/v1/families/{id}/members"
CHECK_PATH, SKIP_PATH, DESCRIPTION_PATH = "/v1/check", "/v1/skip", "/v1/openapi.json"
CDX_PATH = "/cdx"
READY_PATH, HEALTHY_PATH, METRICS_PATH = "/readyz", "/healthz", "/metrics"
OPEN_PATHS = (READY_PATH, HEALTHY_PATH, DESCRIPTION_PATH, PAGE_PATH, PAGE_FILE_PATH)  # need no token

_ANSWERS = (
    *(
        CheckAnswer,
        BareAnswer,
        SkipAnswer,
        FamilyMembers,
        Labelled,
        Removal,
        ApiError,
        UnknownDocument,
        Health,
        Readiness,
    ),
    *LIVE_MESSAGES,
)
_DOCUMENT_IN_PATH = (
    in_path("collection", "The tenant."),
    in_path("id", "The id, percent-encoded. It may contain slashes."),
)
_REFUSED = "400 401 403 429 431 500"  # without a body


def description() -> Json:
    """Return the description of the API."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nearstream",
            "version": version("nearstream"),
            "description": "Answers within 150 ms whether a document is bulk, a copy of a known one, or new.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            CHECK_PATH: {"post": _check()},
            SKIP_PATH: {"get": _skip()},
            CDX_PATH: {"get": _cdx()},
            DOCUMENT_PATH: {"delete": _remove()},
            LABEL_PATH: {"post": _label()},
            LABELLED_PATH: {"delete": _unlabel()},
            MEMBERS_PATH: {"get": _members()},
            READY_PATH: {"get": _probe("Say whether checks get whole answers", Readiness, "503")},
            HEALTHY_PATH: {"get": _probe("Say whether the process works", Health)},
            METRICS_PATH: {"get": _metrics()},
            DESCRIPTION_PATH: {"get": _itself()},
            **live_paths(),
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> Json:
    """Return the schemas of all messages. Answers always have all of their fields."""
    _, schemas = components((*_ANSWERS, Document, LabelRequest), "#/components/schemas/{name}")
    for answer in _ANSWERS:
        schema = schemas[answer.__name__]
        schema["required"] = list(schema["properties"])
        for field in schema["properties"].values():
            field.pop("default", None)
    return dict(sorted(schemas.items()))


def _check() -> Json:
    described = operation(
        "check",
        "Say what a document is to those in the index, and add it only if asked to",
        {
            "200": {
                "description": "The answer, also if it is degraded, or with `bare` yes or no alone.",
                "content": {"application/json": {"schema": {"anyOf": [reference(CheckAnswer), reference(BareAnswer)]}}},
            },
            "503": error("With `bare`: there is no answer. Ask again after `Retry-After`."),
        },
        _switch("learn", "1: the document is handed to the workers too, which add it to the index."),
        _switch("bare", "1: the answer is only whether there is a related document."),
        header("nearstream-collection", "The tenant. Documents of two collections are never compared."),
        header("nearstream-id", "The id of a text or page."),
        header("nearstream-observed-at", "When a text or page was observed, with time zone."),
        takes=Document,
        refused=" ".join(REFUSALS),
    )
    described["requestBody"]["content"] |= {
        "message/rfc822": {"schema": {"type": "string", "contentMediaType": "message/rfc822"}},
        "text/plain": {"schema": {"type": "string"}},
        "text/html": {"schema": {"type": "string"}},
        "application/vnd.nearstream.signature": {"schema": {"type": "array"}},
    }
    return described


def _switch(name: str, meaning: str) -> Json:
    schema = {"type": "string", "enum": ["0", "1"], "default": "0"}
    return {"name": name, "in": "query", "description": meaning, "schema": schema}


def _skip() -> Json:
    return operation(
        "skip",
        "Say whether a crawler need not fetch a page now",
        {"200": response("The answer, also if it is degraded.", SkipAnswer)},
        in_query("url", "The page, percent-encoded.", required=True),
        in_query("collection", "The tenant, by default `default`."),
        refused=_REFUSED,
    )


def _cdx() -> Json:
    return operation(
        "cdx",
        "Return the CDX line of the content that a URL had at its last fetch",
        {"200": text("One line, or none, also if Redis does not answer.", "text/plain")},
        in_query("url", "The page, percent-encoded, exactly as it is to be fetched.", required=True),
        in_query("collection", "The tenant, by default `default`."),
        in_query("fl", "Names of fields, by default all, separated by commas."),
        in_query("filter", "`digest:` and a digest: no line for another one. Other filters are ignored."),
        in_query("header", "`1`: the header of a CDX file comes first."),
        in_query("limit", "It is ignored: there is at most one line."),
        refused=_REFUSED,
    )


def _remove() -> Json:
    summary = "Hand the removal of a document to the workers"
    return operation("remove", summary, _confirmed(Removal), *_DOCUMENT_IN_PATH, refused=_REFUSED)


def _label() -> Json:
    return operation(
        "label",
        "Say that a document is spam or ham, which counts for all of its family",
        {**_confirmed(Labelled), "409": response("The index does not have the document.", UnknownDocument)},
        takes=LabelRequest,
        refused=f"{_REFUSED} 408 413",
    )


def _unlabel() -> Json:
    summary = "Take back the label of a document"
    return operation("unlabel", summary, _confirmed(Labelled), *_DOCUMENT_IN_PATH, refused=_REFUSED)


def _members() -> Json:
    return operation(
        "members",
        "Say which documents are in the family of a document, in the order of joining",
        {
            "200": response("Some members.", FamilyMembers),
            "404": error("The index does not have the document."),
            "503": error("Redis does not answer, or refuses to. Ask again after `Retry-After`."),
        },
        in_path("id", "The id of any document of the family, percent-encoded. It may contain slashes."),
        in_query("collection", "The tenant, by default `default`."),
        in_query("after", "`next` of the former answer, by default 0."),
        in_query("limit", "Most members that are read, 1 to 1000, by default 100."),
        refused=_REFUSED,
    )


def _confirmed(message: type[msgspec.Struct]) -> Json:
    """Return the responses to a request that Kafka has to confirm."""
    return {
        "202": response("Kafka has confirmed the record.", message),
        "503": error("Kafka has not confirmed the record. Ask again after `Retry-After`."),
    }


def _probe(summary: str, message: type[msgspec.Struct], *others: str) -> Json:
    answers = {status: response(f"{summary}.", message) for status in ("200", *others)}
    return operation(message.__name__.lower(), summary, answers, is_open=True)


def _metrics() -> Json:
    answers = {"200": text("The metrics.", "text/plain")}
    return operation("metrics", "Return all metrics for Prometheus", answers, refused="401 429")


def _itself() -> Json:
    answer = {"description": "This description.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return operation("description", "Return this description", {"200": answer}, is_open=True)
