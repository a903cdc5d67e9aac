"""Error pages: texts to which several pages of a host have turned."""

from array import array
from typing import NamedTuple

from msgspec.structs import replace as with_fields

from nearstream.streams.deciding.comparing import Parts, shows
from nearstream.streams.deciding.states import ErrorText, HostState, PageState, Turn

ERROR_PAGES = 3  # of a host that turn to one text
_TURN_MS = 12 * 3_600_000  # within which they turn
_TEXT_MS = 14 * 86_400_000  # after which a text that was not seen again is forgotten
_TURNS_MAX, _TEXTS_MAX = 16, 8
RETRY_SECONDS = 600  # after which an error page is fetched again, then twice as long each time
RETRY_MAX_SECONDS = 86_400


class Found(NamedTuple):
    """What a fetch says of the error texts of its host."""

    host: HostState
    text: ErrorText | None = None  # the one that the page shows
    pages: tuple[str, ...] = ()  # lineages that have turned to it before it was known


def find_error(host: HostState, came: Parts, turn: Turn, family: str) -> Found:
    """Find out whether a page shows a text to which pages of its host have turned.

    A page that has always had the text shows no error, but one that is fetched for the first time may, of which nothing
    is known to have turned.
    """
    known = next((text for text in host.texts if shows(came, text.forms)), None)
    if known is not None and turn.at_ms - known.at_ms <= _TEXT_MS:
        return Found(_with_text(host, with_fields(known, at_ms=turn.at_ms)), known)
    if not turn.forms:
        return Found(host)
    turns = [each for each in host.turns if each.lineage != turn.lineage and turn.at_ms - each.at_ms <= _TURN_MS]
    alike = [each for each in turns if shows(came, each.forms)]
    host = with_fields(host, turns=(*turns, turn)[-_TURNS_MAX:])
    if len(alike) < ERROR_PAGES - 1:
        return Found(host)
    common = {form for each in alike for form in array("I", each.forms)}
    forms = array("I", (form for form in array("I", turn.forms) if form in common)).tobytes()
    text = ErrorText(family, turn.at_ms, forms)
    return Found(_with_text(host, text), text, tuple(each.lineage for each in alike))


def _with_text(host: HostState, text: ErrorText) -> HostState:
    others = [each for each in host.texts if each.forms != text.forms]
    return with_fields(host, texts=(*others, text)[-_TEXTS_MAX:])


def error_page(content: PageState | None, fetched: PageState, text: ErrorText) -> PageState:
    """Return the state of a page that shows an error text."""
    wait = RETRY_SECONDS
    if content is None:
        content = with_fields(fetched, parts=b"", seen_ms=0)
    elif content.is_error_page:
        wait = min(2 * content.wait_seconds, RETRY_MAX_SECONDS)
    return with_fields(
        content,
        own=fetched.own,
        because="error_page",
        event_id=fetched.event_id,
        wait_seconds=wait,
        change_share=fetched.change_share,
        canonical=None,
        aliases=fetched.aliases,
        before=None,
        error_text=text.family,
        payload=fetched.payload,
        payload_ms=fetched.payload_ms,
        etag=fetched.etag,
        modified=fetched.modified,
    )


def found_out(state: PageState, text: ErrorText, event_id: bytes, at_ms: int) -> PageState:
    """Return the state of a page whose text is now known as an error text."""
    if state.before is None or state.is_error_page:
        return state
    found = error_page(state.before, with_fields(state, event_id=event_id), text)
    return with_fields(found, wait_seconds=max((at_ms - state.own.at_ms) // 1000, 0) + RETRY_SECONDS)
