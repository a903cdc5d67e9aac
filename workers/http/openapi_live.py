"""The paths of the live page in the OpenAPI description."""

import msgspec

from nearstream.schemas.check import ApiError
from nearstream.schemas.live import (
    LiveDocument,
    LiveFamily,
    LiveFamilyDetail,
    LiveLag,
    LiveMark,
    LiveMember,
    LivePair,
    LiveState,
)
from nearstream.workers.http.openapi_parts import REFUSALS, TOKEN, Json, header, in_path, in_query, response

PAGE_PATH, PAGE_FILE_PATH = "/", "/page/{file}"
EVENTS_PATH, LIVE_PATH, FAMILY_PATH = "/v1/events", "/v1/live", "/v1/families/{family}"
PAIR_PATH, STATES_PATH = "/v1/pair", "/v1/document"

LIVE_ANSWERS = (LiveState, LiveFamilyDetail, LiveFamily, LiveLag, LiveMark, LiveMember, LivePair, LiveDocument)


def live_paths() -> Json:
    """Return the description of each path of the live page."""
    return {
        EVENTS_PATH: {"get": _events()},
        LIVE_PATH: {"get": _live()},
        FAMILY_PATH: {"get": _family()},
        PAIR_PATH: {"get": _stored("pair", "Show what two documents share", LivePair, "newer", "older")},
        STATES_PATH: {"get": _stored("document", "Show a document with its states", LiveDocument, "id")},
        PAGE_PATH: {"get": _page("page")},
        PAGE_FILE_PATH: {"get": _page("page_file", in_path("file", "Name of a file of the page."))},
    }


def _events() -> Json:
    refused = ("400", "401", "403", "429", "431")
    return {
        "operationId": "events",
        "summary": "Send verdicts, relation events and retractions as they arrive, as server-sent events",
        "security": TOKEN,
        "parameters": [
            in_query("collection", "Only events of this collection."),
            in_query("recent", "Begin with so many earlier events, by default 0, at most 1,000."),
            header("Last-Event-ID", "Go on after this event."),
        ],
        "responses": {
            "200": {
                "description": "Each message has the `event_id` as its id, and the event with `detected_at` as its "
                "data. A message of the type `missed` counts events that have left the memory of the server.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **{status: response(REFUSALS[status], ApiError) for status in refused},
        },
    }


def _live() -> Json:
    refused = ("401", "403", "429", "431")
    return {
        "operationId": "live",
        "summary": "Return the last hour of the stream of events",
        "security": TOKEN,
        "parameters": [in_query("collection", "Only events of this collection.")],
        "responses": {
            "200": response("The last hour.", LiveState),
            **{status: response(REFUSALS[status], ApiError) for status in refused},
        },
    }


def _family() -> Json:
    refusals = {status: response(REFUSALS[status], ApiError) for status in ("401", "429", "431")}
    return {
        "operationId": "family",
        "summary": "Return a family of copies with its newest members",
        "security": TOKEN,
        "parameters": [in_path("family", "The id of the family.")],
        "responses": {
            "200": response("The family.", LiveFamilyDetail),
            "404": response("No document has joined this family since the server started.", ApiError),
            **refusals,
        },
    }


def _stored(operation: str, summary: str, message: type[msgspec.Struct], *names: str) -> Json:
    refusals = {status: response(REFUSALS[status], ApiError) for status in ("401", "403", "429", "431")}
    return {
        "operationId": operation,
        "summary": summary,
        "security": TOKEN,
        "parameters": [
            in_query("collection", "The tenant, by default `default`."),
            *(in_query(name, "Id of a document, percent-encoded.", required=True) for name in names),
        ],
        "responses": {
            "200": response("What their signatures say.", message),
            "404": response("It is not stored.", ApiError),
            "503": response("Redis does not answer, or does not allow it.", ApiError),
            **refusals,
        },
    }


def _page(operation: str, *parameters: Json) -> Json:
    files = {kind: {"schema": {"type": "string"}} for kind in ("text/html", "text/css", "text/javascript")}
    answers: Json = {"200": {"description": "A file, which holds no data.", "content": files}}
    if parameters:
        answers["404"] = response("There is no such file.", ApiError)
    return {
        "operationId": operation,
        "summary": "Return the live page",
        "security": [],
        "parameters": list(parameters),
        "responses": answers,
    }
