"""What is kept of pages and of hosts."""

from datetime import timedelta

import msgspec

from nearstream.schemas.documents.document import LATEST, SURROUNDINGS_LABEL, Labels, from_milliseconds, to_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.labels.decision import Action, Because, Decision

ALIASES_MAX = 8
ACTIONS: dict[str, Action] = {"copy": "skip", "first": "keep", "unchanged": "keep"}  # the others: refresh


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A document, as it is kept."""

    id: str
    version: bytes
    at_ms: int
    characters: int
    url: str | None  # empty if the id is its URL
    lineage: str | None  # empty if the id is its lineage
    labels: Labels

    @property
    def name(self) -> str:
        """What names its page: its lineage, or else its id."""
        return self.lineage or self.id

    @property
    def address(self) -> str | None:
        """Its URL, if it has one."""
        return self.id if self.url == "" else self.url

    def is_equal(self, other: "Kept") -> bool:
        """Return whether all words that are seen of two documents are equal."""
        surroundings = (each.labels.get(SURROUNDINGS_LABEL) for each in (self, other))
        return self.version == other.version and len(set(surroundings)) == 1

    def ref(self) -> DocumentRef:
        """Return the document as decisions name it."""
        return DocumentRef(
            id=self.id,
            version=self.version.hex(),
            observed_at=from_milliseconds(self.at_ms),
            characters=self.characters,
            url=self.address,
            lineage=self.id if self.lineage == "" else self.lineage,
            labels=self.labels,
        )


def kept(ref: DocumentRef) -> Kept:
    """Return a document as it is kept."""
    return Kept(
        ref.id,
        bytes.fromhex(ref.version),
        to_milliseconds(ref.observed_at),
        ref.characters,
        "" if ref.url == ref.id else ref.url,
        "" if ref.lineage == ref.id else ref.lineage,
        ref.labels,
    )


class PageState(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a lineage between two fetches."""

    collection: str
    own: Kept  # the document of the latest fetch
    because: Because
    event_id: bytes  # of the event that decided
    wait_seconds: int  # how long the page need not be fetched after `own`
    since_ms: int  # when its content was fetched first
    unchanged: int = 0  # successive fetches that found no change
    change_share: float = 0.0
    canonical: Kept | None = None  # the page that has all words of this one
    seen_ms: int = 0  # When its content was fetched last. 0: every fetch has shown an error text.
    parts: bytes = b""  # The parts of its content, packed. Empty: they are not known.
    observed: bytes = b""  # what the latest fetches have shown, packed
    declared: str = ""  # the lineage of the page that it declares as its canonical one
    aliases: tuple[str, ...] = ()  # other names of the page, under which decisions are also sent, the newest last
    before: "PageState | None" = None  # the state before most of its text was replaced at the last fetch
    error_text: str = ""  # family of the error text that the latest fetch has shown
    is_wall: bool = False  # whether pages of its host have had one content when it was fetched
    payload: str = ""  # the digest of what the server sent, and the id of the first WARC record that holds it
    payload_ms: int = 0  # when that payload was first fetched
    etag: str = ""  # what the server sent as ETag at the latest fetch
    modified: str = ""  # and as Last-Modified

    @property
    def name(self) -> str:
        """Its lineage."""
        return self.own.name

    @property
    def is_error_page(self) -> bool:
        """Whether the latest fetch has shown an error text."""
        return self.because == "error_page"

    @property
    def decision(self) -> Decision:
        """What a crawler should do with the page."""
        own = self.own.ref()
        wait = timedelta(seconds=self.wait_seconds)
        return Decision(
            collection=self.collection,
            lineage=self.name,
            action=ACTIONS.get(self.because, "refresh"),
            because=self.because,
            until=own.observed_at + min(wait, LATEST - own.observed_at),
            canonical=self.canonical.ref() if self.canonical else own,
            event_id=self.event_id.hex(),
            observed_at=own.observed_at,
            unchanged_since=from_milliseconds(self.since_ms),
            interval_seconds=self.wait_seconds,
            unchanged=self.unchanged,
            change_share=self.change_share,
            error_text=self.error_text or None,
        )


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """What a page of a host has shown at its latest fetch."""

    page: int  # its number
    content: int  # hash of its main content
    hour: int  # since 1970
    is_proper: bool  # whether it has a URL and a name of its own
    parts: bytes  # 2 bytes of the hash of each of its parts


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """That most of the text of a page was replaced."""

    lineage: str
    at_ms: int
    forms: bytes  # of the largest new parts, 4 bytes each


class ErrorText(msgspec.Struct, frozen=True, array_like=True):
    """A text to which pages of a host have turned."""

    family: str  # id of the family of the page that showed it
    at_ms: int  # when it was last seen
    forms: bytes  # of its largest parts, 4 bytes each


class HostState(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a host."""

    shown: tuple[Shown, ...] = ()  # by the pages fetched last, the newest last
    rotates: bool = False  # whether its frame is known to change more than once
    frame: bytes = b""  # The hash of each part of its frame, and the day on which it last came or went.
    came: bytes = (
        b""  # Hashes of parts that came on several pages in place of others. One of them goes: the frame rotates.
    )
    noise: bytes = b""  # For each form with a number: its hash, how often it was compared, how often it had changed.
    sample: bytes = b""  # how often some of its pages have changed
    turns: tuple[Turn, ...] = ()  # the newest
    texts: tuple[ErrorText, ...] = ()  # the newest error texts
