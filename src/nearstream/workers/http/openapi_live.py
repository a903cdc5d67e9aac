"""The paths of the live page in the OpenAPI description."""

import msgspec

from nearstream.schemas.live import details, state
from nearstream.workers.http.openapi_parts import Json, error, header, in_path, in_query, operation, response, text

PAGE_PATH, PAGE_FILE_PATH = "/", "/page/{file}"
EVENTS_PATH, LIVE_PATH, FAMILY_PATH = "/v1/events", "/v1/live", "/v1/families/{family}"
PAIR_PATH, STATES_PATH = "/v1/pair", "/v1/document"
LETTERS_PATH, LETTER_PATH, REPLAY_PATH = "/v1/dead-letters", "/v1/dead-letters/{id}", "/v1/replay"
SETTINGS_PATH, SILENCES_PATH = "/v1/settings", "/v1/silences"

# Each message of the page and each part of one has a name that begins so.
LIVE_MESSAGES = tuple(
    each for module in (state, details) for name, each in vars(module).items() if name.startswith("Live")
)

_REFUSED = "401 403 429 431"
_REFUSED_WITH_BODY = "400 401 403 408 413 429 431"


def live_paths() -> Json:
    """Return the description of each path of the live page."""
    return {
        EVENTS_PATH: {"get": _events()},
        LIVE_PATH: {
            "get": operation(
                "live",
                "Return the last hour of the stream of events",
                {"200": response("The last hour.", state.LiveState)},
                in_query("collection", "Only events of this collection."),
                refused=_REFUSED,
            )
        },
        FAMILY_PATH: {"get": _family()},
        PAIR_PATH: {"get": _stored("pair", "Show what two documents share", details.LivePair, "newer", "older")},
        STATES_PATH: {"get": _stored("document", "Show a document with its states", details.LiveDocument, "id")},
        LETTERS_PATH: {
            "get": operation(
                "dead_letters",
                "Return the newest dead letters",
                {"200": response("The newest dead letters.", state.LiveLetters)},
                refused=_REFUSED,
            )
        },
        LETTER_PATH: {
            "get": operation(
                "dead_letter",
                "Return a dead letter with the beginning of its record",
                {
                    "200": response("The dead letter.", state.LiveLetterDetail),
                    "404": error("It is none of the newest."),
                },
                in_path("id", "The id of the dead letter."),
                refused=_REFUSED,
            )
        },
        REPLAY_PATH: {"post": _replay()},
        SILENCES_PATH: {"post": _silence()},
        SETTINGS_PATH: {
            "get": operation(
                "settings",
                "Return the settings of the server, and the way of a record through the topics",
                {"200": response("Settings and roles.", state.LiveDeployment)},
                refused=_REFUSED,
            )
        },
        PAGE_PATH: {"get": operation("page", "Return the live page", _FILE, is_open=True)},
        PAGE_FILE_PATH: {
            "get": operation(
                "page_file",
                "Return the live page",
                {**_FILE, "404": error("There is no such file.")},
                in_path("file", "Name of a file of the page."),
                is_open=True,
            )
        },
    }


_FILE = {"200": text("A file, which holds no data.", "text/html", "text/css", "text/javascript")}


def _events() -> Json:
    meaning = (
        "Each message has the `event_id` as its id, and the event with `detected_at` as its data. A message of the "
        "type `missed` counts events that have left the memory of the server."
    )
    return operation(
        "events",
        "Send verdicts, relation events and retractions as they arrive, as server-sent events",
        {"200": text(meaning, "text/event-stream")},
        in_query("collection", "Only events of this collection."),
        in_query("recent", "Begin with so many earlier events, by default 0, at most 1,000."),
        header("Last-Event-ID", "Go on after this event."),
        refused=f"400 {_REFUSED}",
    )


def _family() -> Json:
    return operation(
        "family",
        "Return a family of copies with its newest members",
        {
            "200": response("The family.", state.LiveFamilyDetail),
            "404": error("Neither the memory of the server nor the index has it."),
            "503": error("Redis does not answer."),
        },
        in_path("family", "The id of the family."),
        in_query("collection", "The collection of a member. It is asked for if no verdict is in memory."),
        in_query("id", "The id of this member. By default that of the first document, if an alert names it."),
        refused=_REFUSED,
    )


def _silence() -> Json:
    return operation(
        "silence",
        "Say that an alert was seen, or keep its subject silent",
        {
            "200": response("The last hour, with the silence.", state.LiveState),
            "503": error("Kafka has not confirmed it."),
        },
        takes=state.LiveSilenceRequest,
        refused=_REFUSED_WITH_BODY,
    )


def _replay() -> Json:
    return operation(
        "replay",
        "Send the records again that were refused for a reason, each once",
        {
            "200": response("What became of them.", state.LiveReplay),
            "409": error("The log of replays is full."),
            "503": error("Kafka or Redis does not answer, or does not allow it."),
        },
        takes=state.LiveReplayRequest,
        refused=_REFUSED_WITH_BODY,
    )


def _stored(name: str, summary: str, message: type[msgspec.Struct], *ids: str) -> Json:
    return operation(
        name,
        summary,
        {
            "200": response("What their signatures say.", message),
            "404": error("It is not stored."),
            "503": error("Redis does not answer, or does not allow it."),
        },
        in_query("collection", "The tenant, by default `default`."),
        *(in_query(each, "Id of a document, percent-encoded.", required=True) for each in ids),
        refused=_REFUSED,
    )
