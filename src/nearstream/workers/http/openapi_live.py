"""The paths of the live page in the OpenAPI description."""

import msgspec

from nearstream.schemas.checks.check import ApiError
from nearstream.schemas.live.details import LiveDocument, LivePair
from nearstream.schemas.live.state import (
    LiveDeployment,
    LiveFamily,
    LiveFamilyDetail,
    LiveInput,
    LiveLag,
    LiveLetter,
    LiveLetterDetail,
    LiveLetters,
    LiveMark,
    LiveMember,
    LiveNewText,
    LiveReason,
    LiveReplay,
    LiveReplayRequest,
    LiveRole,
    LiveSetting,
    LiveSilenceRequest,
    LiveState,
    LiveWorker,
)
from nearstream.workers.http.openapi_parts import REFUSALS, TOKEN, Json, header, in_path, in_query, reference, response

PAGE_PATH, PAGE_FILE_PATH = "/", "/page/{file}"
EVENTS_PATH, LIVE_PATH, FAMILY_PATH = "/v1/events", "/v1/live", "/v1/families/{family}"
PAIR_PATH, STATES_PATH = "/v1/pair", "/v1/document"
LETTERS_PATH, LETTER_PATH, REPLAY_PATH = "/v1/dead-letters", "/v1/dead-letters/{id}", "/v1/replay"
SETTINGS_PATH, SILENCES_PATH = "/v1/settings", "/v1/silences"

LIVE_MESSAGES = (
    *(
        LiveState,
        LiveFamilyDetail,
        LiveFamily,
        LiveLag,
        LiveNewText,
        LiveWorker,
        LiveMark,
        LiveMember,
        LivePair,
        LiveDocument,
    ),
    *(LiveLetters, LiveLetter, LiveReason, LiveLetterDetail, LiveReplay, LiveReplayRequest),
    LiveSilenceRequest,
    *(LiveDeployment, LiveRole, LiveInput, LiveSetting),
)


def live_paths() -> Json:
    """Return the description of each path of the live page."""
    return {
        EVENTS_PATH: {"get": _events()},
        LIVE_PATH: {"get": _live()},
        FAMILY_PATH: {"get": _family()},
        PAIR_PATH: {"get": _stored("pair", "Show what two documents share", LivePair, "newer", "older")},
        STATES_PATH: {"get": _stored("document", "Show a document with its states", LiveDocument, "id")},
        LETTERS_PATH: {"get": _letters()},
        LETTER_PATH: {"get": _letter()},
        REPLAY_PATH: {"post": _replay()},
        SILENCES_PATH: {"post": _silence()},
        SETTINGS_PATH: {"get": _settings()},
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
            **_refused(*refused),
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
            **_refused(*refused),
        },
    }


def _family() -> Json:
    refusals = _refused("401", "403", "429", "431")
    return {
        "operationId": "family",
        "summary": "Return a family of copies with its newest members",
        "security": TOKEN,
        "parameters": [
            in_path("family", "The id of the family."),
            in_query("collection", "The collection of a member. It is asked for if no verdict is in memory."),
            in_query("id", "The id of this member. By default that of the first document, if an alert names it."),
        ],
        "responses": {
            "200": response("The family.", LiveFamilyDetail),
            "404": response("Neither the memory of the server nor the index has it.", ApiError),
            "503": response("Redis does not answer.", ApiError),
            **refusals,
        },
    }


def _letters() -> Json:
    return {
        "operationId": "dead_letters",
        "summary": "Return the newest dead letters",
        "security": TOKEN,
        "responses": {"200": response("The newest dead letters.", LiveLetters), **_refused("401", "403", "429", "431")},
    }


def _settings() -> Json:
    return {
        "operationId": "settings",
        "summary": "Return the settings of the server, and the way of a record through the topics",
        "security": TOKEN,
        "responses": {"200": response("Settings and roles.", LiveDeployment), **_refused("401", "403", "429", "431")},
    }


def _letter() -> Json:
    return {
        "operationId": "dead_letter",
        "summary": "Return a dead letter with the beginning of its record",
        "security": TOKEN,
        "parameters": [in_path("id", "The id of the dead letter.")],
        "responses": {
            "200": response("The dead letter.", LiveLetterDetail),
            "404": response("It is none of the newest.", ApiError),
            **_refused("401", "403", "429", "431"),
        },
    }


def _silence() -> Json:
    return {
        "operationId": "silence",
        "summary": "Say that an alert was seen, or keep its subject silent",
        "security": TOKEN,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference(LiveSilenceRequest)}},
        },
        "responses": {
            "200": response("The last hour, with the silence.", LiveState),
            "503": response("Kafka has not confirmed it.", ApiError),
            **_refused("400", "401", "403", "408", "413", "429", "431"),
        },
    }


def _replay() -> Json:
    return {
        "operationId": "replay",
        "summary": "Send the records again that were refused for a reason, each once",
        "security": TOKEN,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference(LiveReplayRequest)}},
        },
        "responses": {
            "200": response("What became of them.", LiveReplay),
            "409": response("The log of replays is full.", ApiError),
            "503": response("Kafka or Redis does not answer, or does not allow it.", ApiError),
            **_refused("400", "401", "403", "408", "413", "429", "431"),
        },
    }


def _refused(*statuses: str) -> Json:
    return {status: response(REFUSALS[status], ApiError) for status in statuses}


def _stored(operation: str, summary: str, message: type[msgspec.Struct], *names: str) -> Json:
    refusals = _refused("401", "403", "429", "431")
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
