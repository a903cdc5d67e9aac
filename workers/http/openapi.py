"""The OpenAPI 3.1 description of the HTTP API, made from the messages that it answers with."""

from importlib.metadata import version
from typing import Any

import msgspec

from nearstream.schemas.check import ApiError, CheckAnswer, Health, Readiness, Removal
from nearstream.schemas.document import Document

DOCUMENT_PATH = "/v1/documents/{collection}/{id}"
CHECK_PATH, DESCRIPTION_PATH = "/v1/check", "/v1/openapi.json"
READY_PATH, HEALTHY_PATH, METRICS_PATH = "/readyz", "/healthz", "/metrics"
OPEN_PATHS = (READY_PATH, HEALTHY_PATH, DESCRIPTION_PATH)  # need no token

_ANSWERS = (CheckAnswer, Removal, ApiError, Health, Readiness)
_TOKEN: list[dict[str, list[str]]] = [{"token": []}, {}]  # none is needed where none is set
_REFUSALS = {
    "400": "The document cannot be read.",
    "401": "The token is missing or wrong.",
    "403": "The token is not for this collection, or a page of another site asks to change something.",
    "408": "The body was not there within 10 s.",
    "413": "The body or its text is too large.",
    "415": "The type of the content is not supported.",
    "429": "64 requests are in work, or more came with this token than its rate. Ask again after `Retry-After`.",
    "431": "There are too many headers, or one is too long.",
    "500": "A bug.",
}

Json = dict[str, Any]  # parts of OpenAPI, each with a form of its own


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
            DOCUMENT_PATH: {"delete": _remove()},
            READY_PATH: {"get": _probe("Say whether checks get whole answers", Readiness, "503")},
            HEALTHY_PATH: {"get": _probe("Say whether the process works", Health)},
            METRICS_PATH: {"get": _metrics()},
            DESCRIPTION_PATH: {"get": _itself()},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> Json:
    """Return the schemas of all messages. Answers always have all of their fields."""
    _, made = msgspec.json.schema_components((*_ANSWERS, Document), ref_template="#/components/schemas/{name}")
    schemas: Json = msgspec.json.decode(msgspec.json.encode(made))  # defaults that are tuples become arrays
    for answer in _ANSWERS:
        schema = schemas[answer.__name__]
        schema["required"] = list(schema["properties"])
        for field in schema["properties"].values():
            field.pop("default", None)
    return schemas


def _check() -> Json:
    text = {"schema": {"type": "string"}}
    return {
        "operationId": "check",
        "summary": "Say what a document is to those in the index, and add it only if asked to",
        "security": _TOKEN,
        "parameters": [
            {
                "name": "learn",
                "in": "query",
                "description": "1: the document is handed to the workers too, which add it to the index.",
                "schema": {"type": "string", "enum": ["0", "1"], "default": "0"},
            },
            _header("nearstream-collection", "The tenant. Documents of two collections are never compared."),
            _header("nearstream-id", "The id of a text."),
            _header("nearstream-observed-at", "When a text was observed, with time zone."),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "message/rfc822": {"schema": {"type": "string", "contentMediaType": "message/rfc822"}},
                "text/plain": text,
                "application/json": {"schema": _reference(Document)},
            },
        },
        "responses": {
            "200": _response("The answer, also if it is degraded.", CheckAnswer),
            **{status: _response(meaning, ApiError) for status, meaning in _REFUSALS.items()},
        },
    }


def _remove() -> Json:
    refusals = {status: _response(_REFUSALS[status], ApiError) for status in ("400", "401", "403", "429", "431", "500")}
    return {
        "operationId": "remove",
        "summary": "Hand the removal of a document to the workers",
        "security": _TOKEN,
        "parameters": [
            _in_path("collection", "The tenant."),
            _in_path("id", "The id, percent-encoded. It may contain slashes."),
        ],
        "responses": {
            "202": _response("Kafka has confirmed the removal.", Removal),
            **refusals,
            "503": _response("Kafka has not confirmed the removal. Ask again after `Retry-After`.", ApiError),
        },
    }


def _probe(summary: str, message: type[msgspec.Struct], *others: str) -> Json:
    name = message.__name__.lower()
    responses = {status: _response(summary + ".", message) for status in ("200", *others)}
    return {"operationId": name, "summary": summary, "security": [], "responses": responses}


def _metrics() -> Json:
    return {
        "operationId": "metrics",
        "summary": "Return all metrics for Prometheus",
        "security": _TOKEN,
        "responses": {
            "200": {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **{status: _response(_REFUSALS[status], ApiError) for status in ("401", "429")},
        },
    }


def _itself() -> Json:
    answer = {"description": "This description.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "operationId": "description",
        "summary": "Return this description",
        "security": [],
        "responses": {"200": answer},
    }


def _header(name: str, meaning: str) -> Json:
    return {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}


def _in_path(name: str, meaning: str) -> Json:
    return {"name": name, "in": "path", "required": True, "description": meaning, "schema": {"type": "string"}}


def _response(meaning: str, message: type[msgspec.Struct]) -> Json:
    return {"description": meaning, "content": {"application/json": {"schema": _reference(message)}}}


def _reference(message: type[msgspec.Struct]) -> Json:
    return {"$ref": f"#/components/schemas/{message.__name__}"}
