"""Parts of the OpenAPI description."""

from typing import Any

import msgspec

from nearstream.schemas.checks.check import ApiError

Json = dict[str, Any]  # parts of OpenAPI, each with a form of its own
TOKEN: list[dict[str, list[str]]] = [{"token": []}, {}]  # none is needed where none is set
REFUSALS = {
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


def in_path(name: str, meaning: str) -> Json:
    """Describe a parameter in the path."""
    return {"name": name, "in": "path", "required": True, "description": meaning, "schema": {"type": "string"}}


def header(name: str, meaning: str) -> Json:
    """Describe a header of a request."""
    return {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}


def in_query(name: str, meaning: str, *, required: bool = False) -> Json:
    """Describe a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "description": meaning, "schema": {"type": "string"}}


def response(meaning: str, message: type[msgspec.Struct]) -> Json:
    """Describe a response with a message in JSON."""
    return {"description": meaning, "content": {"application/json": {"schema": reference(message)}}}


def error(meaning: str) -> Json:
    """Describe a response that says what is wrong."""
    return response(meaning, ApiError)


def text(meaning: str, *kinds: str) -> Json:
    """Describe a response that is text of one of these content types."""
    return {"description": meaning, "content": {kind: {"schema": {"type": "string"}} for kind in kinds}}


def operation(
    name: str,
    summary: str,
    answers: Json,
    *parameters: Json,
    refused: str = "",
    takes: type[msgspec.Struct] | None = None,
    is_open: bool = False,
) -> Json:
    """Describe an operation.

    Args:
        name: Its id.
        summary: What it does.
        answers: Its responses by status.
        parameters: Parameters of the path, the query and the headers.
        refused: Statuses of further responses, separated by spaces, which mean what `REFUSALS` says.
        takes: The message that its body holds.
        is_open: It needs no token.
    """
    described: Json = {"operationId": name, "summary": summary, "security": [] if is_open else TOKEN}
    if parameters:
        described["parameters"] = list(parameters)
    if takes is not None:
        body = {"application/json": {"schema": reference(takes)}}
        described["requestBody"] = {"required": True, "content": body}
    refusals = {status: error(REFUSALS[status]) for status in refused.split()}
    return {**described, "responses": {**answers, **refusals}}


def reference(message: type[msgspec.Struct]) -> Json:
    """Refer to the schema of a message."""
    return {"$ref": f"#/components/schemas/{message.__name__}"}
