"""What is kept of pages and of hosts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from nearstream.schemas.documents.document import LATEST
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.labels.decision import Decision
from nearstream.streams.estimates.frames import Frame

SHORTEST_SECONDS = 3_600  # after a change, and of the first skip
LONGEST_SECONDS = 30 * 86_400
SKIP_SECONDS = 7 * 86_400  # at most
RETRY_SECONDS = 600  # of a page that is suspected to be an error page, then twice as long each time
TURNS_MAX = 64  # of a host
TEXTS_MAX = 16
FOLLOWERS_MAX = 1_000
ALIASES_MAX = 8
ERROR_PAGES = 3  # of a host that turn to one text within an hour
ERROR_MS = 3_600_000


class PageState(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a lineage between two fetches."""

    decision: Decision  # the newest one
    own: DocumentRef | None = None  # The document of the latest fetch. None: it is not known.
    content: str = ""  # Version of the text with which its content began. It stays while only the frame changes.
    family: str = ""  # id of the family of its text
    rests_on: str = ""  # content of the canonical page on which a skip rests
    parts: bytes = b""  # The hashes of the parts of the page, packed. Empty: the document was no page.
    declared: str = ""  # the lineage of the page that it declares as its canonical one
    aliases: tuple[str, ...] = ()  # other names of the page, under which decisions are also sent, the newest last
    before: "PageState | None" = None  # the state before the text turned to one of another family
    payload: str = ""  # the digest of what the server sent, and the id of the first WARC record that holds it
    payload_at: datetime | None = None  # when that payload was first fetched
    etag: str = ""  # what the server sent as ETag at the latest fetch
    modified: str = ""  # and as Last-Modified

    @property
    def text(self) -> str:
        """Version of its text at the latest fetch. Empty: it is not known."""
        return self.own.version if self.own else ""

    @property
    def is_error_page(self) -> bool:
        """Whether the page is taken for an error page."""
        return self.decision.because == "error_page"

    @property
    def may_be_canonical(self) -> bool:
        """Whether decisions about other pages may rest on it."""
        return self.decision.action != "skip" and not self.is_error_page


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """That the text of a page turned to one of another family."""

    family: str
    lineage: str
    at_ms: int


class ErrorText(msgspec.Struct, frozen=True, array_like=True):
    """A text to which pages of a host have turned."""

    family: str  # id of its family
    event_id: str  # of the verdict that showed it


class HostErrors(msgspec.Struct, frozen=True, array_like=True):
    """What is known of the error pages of a host."""

    turns: tuple[Turn, ...] = ()  # the newest turns, at most `TURNS_MAX`
    texts: tuple[ErrorText, ...] = ()  # the newest error texts, at most `TEXTS_MAX`

    def holds(self, family: str) -> bool:
        """Return whether a family is an error text of the host."""
        return any(text.family == family for text in self.texts)

    def after(self, turn: Turn, event_id: str) -> "HostErrors":
        """Return what is known after another page has turned."""
        others = [each for each in self.turns if (each.family, each.lineage) != (turn.family, turn.lineage)]
        turns = (*others, turn)[-TURNS_MAX:]
        near = {each.lineage for each in turns if _is_one_text(each, turn)}
        if len(near) < ERROR_PAGES or self.holds(turn.family):
            return HostErrors(turns, self.texts)
        return HostErrors(turns, (*self.texts, ErrorText(turn.family, event_id))[-TEXTS_MAX:])

    def turned_to(self, family: str) -> list[str]:
        """Return the lineages that have turned to a family."""
        return [each.lineage for each in self.turns if each.family == family]


def _is_one_text(one: Turn, other: Turn) -> bool:
    return one.family == other.family and abs(one.at_ms - other.at_ms) <= ERROR_MS


@dataclass(frozen=True)
class Known:
    """What is known when a verdict arrives."""

    # By name the states of the pages that the verdict names, and of those on which these rest.
    states: dict[str, PageState]
    frame: Frame = field(default_factory=dict)  # the frame of the host
    errors: HostErrors = field(default_factory=HostErrors)  # the error pages of the host
    kept_seconds: int = 0  # How long a document stays in the index after a fetch. 0: forever.


class Standing(NamedTuple):
    """What has become of a page on which other decisions rest."""

    name: str  # its lineage, or else its id
    content: str  # Version of the text with which its content began. Empty: it was removed, or is an error page.
    canonical: DocumentRef | None = None  # The page on which its own decision rests. None: on none.
    rests_on: str = ""  # content of that page


class Cause(NamedTuple):
    """The event that changes a decision, and its time."""

    event_id: str
    at: datetime


def standing_of(state: PageState) -> Standing:
    """Return what decisions that rest on a page need to know of it."""
    decision = state.decision
    if state.is_error_page:
        return Standing(decision.lineage, "")
    if decision.action == "skip":
        return Standing(decision.lineage, state.content, decision.canonical, state.rests_on)
    return Standing(decision.lineage, state.content)


def name_of(ref: DocumentRef) -> str:
    """Return what names the page of a document: its lineage, or else its id."""
    return ref.lineage or ref.id


def later(time: datetime, seconds: int) -> datetime:
    """Return a time that is later by these seconds, at most the last one."""
    return time + min(timedelta(seconds=seconds), LATEST - time)
