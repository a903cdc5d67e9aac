"""What a crawler should do with a page after a verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from zlib import crc32

from msgspec import UnsetType
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.labels.decision import Because, Decision
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding import comparing, waits
from nearstream.streams.deciding.comparing import Change
from nearstream.streams.deciding.copies import COPY_SECONDS, Page, better_of, worse_of
from nearstream.streams.deciding.errors import Found, error_page, find_error
from nearstream.streams.deciding.host import (
    Frame,
    changed_frame,
    is_noise,
    is_wall,
    shown_parts,
    with_noise,
    with_page,
)
from nearstream.streams.deciding.naming import is_proper
from nearstream.streams.deciding.states import ErrorText, HostState, Kept, PageState, Shown, Turn, kept
from nearstream.streams.estimates.frames import Part

_WALL_SECONDS = 39_600  # that they wait at most, so that a crawl each 12 hours finds them due
_EXPLORED = 10  # pages of a new host that may be fetched again at any time


@dataclass(frozen=True)
class Known:
    """What is known when a verdict arrives."""

    host: HostState = field(default_factory=HostState)  # of its URL
    folder: bytes = b""  # how common each rate is in its folder, and how often some pages of it have changed
    others: Mapping[str, PageState] = field(default_factory=dict)  # pages that it may repeat, by name


class Outcome(NamedTuple):
    """What a verdict changes."""

    state: PageState  # of the lineage
    known: Known  # of its host and folder
    worse: PageState | None = None  # another page that now rests on it
    error: ErrorText | None = None  # a text that has become known as an error text
    turned: tuple[str, ...] = ()  # the lineages that have turned to it before


@dataclass(frozen=True)
class Fetch:
    """A fetch beside what was known before it."""

    former: PageState | None
    verdict: DocumentVerdict
    page: PageFacts
    known: Known

    @cached_property
    def at_ms(self) -> int:
        """When the page was fetched."""
        return to_milliseconds(self.verdict.observed_at)

    @cached_property
    def number(self) -> int:
        """The number of the page."""
        return crc32((self.verdict.lineage or "").encode("utf-8", "surrogatepass"))

    @cached_property
    def own(self) -> Kept:
        """The document."""
        return kept(self.verdict)

    @cached_property
    def older(self) -> list[Part]:
        """The parts of the content before."""
        kept = self.former.parts if self.former else b""
        return self.newer if kept == self.parts else comparing.lengthened(kept)

    @cached_property
    def parts(self) -> bytes:
        """The parts of the page now, as they are kept."""
        return comparing.shortened(self.page.parts)

    @cached_property
    def newer(self) -> list[Part]:
        """The parts of the page now."""
        return comparing.lengthened(self.parts)

    @cached_property
    def change(self) -> Change:
        """The parts that came or went, none if they are not known."""
        is_known = self.former is not None and self.former.parts != self.parts and self.older and self.newer
        return comparing.compare(self.older, self.newer) if is_known else Change([], [])

    @cached_property
    def has_turned(self) -> bool:
        """Whether most of the main content was replaced."""
        return any(self.change) and comparing.has_turned(self.older, self.newer)

    @cached_property
    def error(self) -> Found:
        """What the fetch says of the error texts of its host."""
        if not self.newer or (self.older and not self.has_turned):
            return Found(self.known.host)
        came = comparing.fresh(self.older, self.newer)
        forms = comparing.mark_of(came) if self.has_turned else b""
        turn = Turn(self.verdict.lineage or "", self.at_ms, forms)
        return find_error(self.known.host, came, turn, self.verdict.family.id)

    @cached_property
    def shown(self) -> Shown:
        """What the host has shown with this fetch."""
        name = self.verdict.lineage or ""
        parts, content = shown_parts(self.newer), comparing.content_of(self.newer)
        return Shown(self.number, content, self.at_ms // 3_600_000, is_proper(name, self.page.declared), parts)

    @cached_property
    def frame(self) -> Frame:
        """The parts that came or went and are frame."""
        return changed_frame(self.known.host, self.shown, self.change)

    @cached_property
    def rest(self) -> Change:
        """The parts that came or went and are no frame."""
        return Change(*([part for part in parts if part.exact not in self.frame.parts] for parts in self.change))

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether nothing but the frame differs from the content before."""
        if self.former is None or not self.former.seen_ms:
            return False
        if self.older and self.newer:
            return not any(self.rest)
        return not self.former.is_error_page and self.former.own.is_equal(self.own)

    @property
    def counts(self) -> bool:
        """Whether the change says something of the rate of the page, as numbers that always change do not."""
        parts = [*self.rest.came, *self.rest.went]
        return not self.is_unchanged and not (parts and all(is_noise(self.known.host, part) for part in parts))

    @cached_property
    def is_wall(self) -> bool:
        """Whether pages of the host that are no forms of each other have this content."""
        return self.shown.is_proper and is_wall(self.known.host, self.shown, comparing.fresh([], self.newer))

    def observed(self) -> bytes:
        """Return the latest observations of the page."""
        former = self.former
        if former is None or not former.seen_ms or (former.is_wall and self.has_turned):
            return b""  # a wall says nothing of the page behind it
        return waits.observed(former.observed, (self.at_ms - former.seen_ms) / 60_000, has_changed=self.counts)


def decide_page(fetch: Fetch, site_of: Callable[[str], str], freshness: float) -> Outcome:
    """Update what is known of a page and its host after a verdict.

    A verdict about a fetch that is no later than the one that decided changes nothing. So a verdict that is delivered
    again gives an equal decision, and of fetches in another order the latest decides. An older fetch may still name the
    WARC record of the payload.
    """
    former, known = fetch.former, fetch.known
    if former is not None and fetch.at_ms <= former.own.at_ms:
        payload, payload_ms = _payload(fetch)
        has_equal = payload.partition(" ")[0] == former.payload.partition(" ")[0]
        return Outcome(with_fields(former, payload=payload, payload_ms=payload_ms) if has_equal else former, known)
    host, text, turned = fetch.error
    if text is not None:
        state = error_page(former, _fetched(fetch), text)
        return Outcome(state, Known(host, known.folder), None, text if turned else None, turned)
    page = Page(_fetched(fetch), fetch.newer, fetch.shown, known.host, known.others)
    better = better_of(page, fetch.verdict, site_of) if not fetch.is_wall else None
    worse = worse_of(page, fetch.verdict, site_of) if not better and not fetch.is_wall else None
    observed = fetch.observed()
    known = _learned(fetch, host, observed)
    because: Because = "copy" if better else page.state.because
    state = with_fields(page.state, because=because, canonical=better, observed=observed)
    is_new = not known.folder and len(known.host.shown) <= _EXPLORED
    wait = (COPY_SECONDS if better else 0) if is_new else wait_of(state, known.folder, freshness)
    return Outcome(with_fields(state, wait_seconds=wait), known, worse)


def _learned(fetch: Fetch, host: HostState, observed: bytes) -> Known:
    """Return what is known of the host and the folder after a fetch."""
    if fetch.newer:
        frame = fetch.frame.host
        host = with_fields(host, rotates=frame.rotates, came=frame.came, frame=frame.frame)
        host = with_page(host, fetch.shown)
    if fetch.older and fetch.newer:
        host = with_noise(host, fetch.older, fetch.change)
    folder = fetch.known.folder
    if observed:
        likely = waits.likelihood(observed)
        host = with_fields(host, sample=waits.sampled(host.sample, fetch.number, likely))
        folder = waits.in_folder(folder or bytes(len(likely)), fetch.number, likely)
    folder = waits.with_common(folder, host.sample) if host.sample else folder
    return Known(host, folder, fetch.known.others)


def wait_of(state: PageState, folder: bytes, freshness: float) -> int:
    """Return how many seconds a page waits after its latest fetch."""
    number = crc32(state.name.encode("utf-8", "surrogatepass"))
    seconds = waits.jittered(waits.wait_seconds(state.observed, folder, freshness), number, state.own.at_ms)
    return min(seconds, _WALL_SECONDS) if state.is_wall else seconds


def renewed(state: PageState, folder: bytes, freshness: float) -> PageState:
    """Return the state of a page with its current wait."""
    if state.is_error_page or not folder:
        return state
    return with_fields(state, wait_seconds=wait_of(state, folder, freshness))


def _fetched(fetch: Fetch) -> PageState:
    """Return the state of a page without a decision about its wait."""
    former, verdict, page = fetch.former, fetch.verdict, fetch.page
    content = former if former is not None and former.seen_ms else None
    is_unchanged = fetch.is_unchanged
    because: Because = "first" if content is None else "unchanged" if is_unchanged else "changed"
    payload, payload_ms = _payload(fetch)
    return PageState(
        collection=verdict.collection,
        own=fetch.own,
        because=because,
        event_id=bytes.fromhex(verdict.event_id),
        wait_seconds=0,
        since_ms=content.since_ms if content and is_unchanged else fetch.at_ms,
        unchanged=content.unchanged + 1 if content and is_unchanged else 0,
        change_share=_share(fetch) if content else 0.0,
        canonical=former.canonical if former else None,
        seen_ms=fetch.at_ms,
        parts=fetch.parts,
        declared=page.declared,
        aliases=former.aliases if former else (),
        before=with_fields(content, before=None) if content and fetch.has_turned else None,
        is_wall=fetch.is_wall,
        payload=payload,
        payload_ms=payload_ms,
        etag=page.etag,
        modified=page.modified,
    )


def _share(fetch: Fetch) -> float:
    """Return the share of a text that changed, as far as it is known.

    Parts say it, and the verdict if it compares with the fetch before: of a long paragraph one word may have changed.
    """
    if fetch.is_unchanged:
        return 0.0
    share = comparing.share(fetch.rest, fetch.older, fetch.newer) if fetch.older and fetch.newer else 1.0
    of, distance = fetch.verdict.of, fetch.verdict.distance
    if of is None or of.lineage != fetch.verdict.lineage or isinstance(distance, UnsetType) or not distance.value:
        return share
    return min(share, round(distance.value / max(fetch.verdict.characters, of.characters, 1), 4))


def _payload(fetch: Fetch) -> tuple[str, int]:
    """Return the payload of this fetch, and when it was fetched first.

    An equal payload has the time and the WARC record of the first fetch that a record holds, else of the first one.
    """
    former, payload = fetch.former, fetch.page.payload
    digest, _, record = payload.partition(" ")
    before, _, record_before = former.payload.partition(" ") if former else ("", "", "")
    if former is not None and digest and before == digest and (record_before or not record):
        return former.payload, former.payload_ms
    return payload, fetch.at_ms if payload else 0


def may_skip(decision: Decision, at_ms: int) -> bool:
    """Return whether a page need not be fetched at a time."""
    return at_ms < decision.until.timestamp() * 1000
