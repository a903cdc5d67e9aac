"""A fetch of a page beside what was known before it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

from msgspec import UnsetType

from nearstream.schemas.documents.document import SURROUNDINGS_LABEL
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.resting import named
from nearstream.streams.deciding.states import RETRY_SECONDS, SKIP_SECONDS, Known, PageState, name_of
from nearstream.streams.estimates.frames import Frame, Part, has_stayed, learn, unpack_parts
from nearstream.streams.ingest.lineage import host_of

_RETRIES = 3
_OTHER_TEXT = 0.5  # share of the words that differ

COPIES = ("exact_duplicate", "near_duplicate")


@dataclass(frozen=True)
class Fetch:
    """A fetch beside what was known before it."""

    former: PageState | None
    verdict: DocumentVerdict
    page: PageFacts
    known: Known
    site_of: Callable[[str], str]

    @property
    def base(self) -> PageState | None:
        """The state with which the page is compared: the last one that was no error page."""
        return base_of(self.former)

    @property
    def has_turned(self) -> bool:
        """Whether the text is of another family than that of the state before."""
        return has_turned(self.base, self.verdict, self.page)

    @property
    def is_error_page(self) -> bool:
        """Whether the page is taken for an error page of its host.

        A text that the page has always had is no error. What repeats the text of another page of the host is suspected
        three times, and longer if that is known as an error text.
        """
        family = self.verdict.family.id
        was_error = self.former is not None and self.former.is_error_page and self.former.family == family
        if self.known.errors.holds(family):
            return was_error or self.base is None or self.has_turned
        if not self.has_turned or (was_error and self.retry_seconds > RETRY_SECONDS << (_RETRIES - 1)):
            return False
        host = host_of(self.verdict.url or self.verdict.lineage or "")
        others = (other for other in named(self.verdict) if self.verdict.verdict in COPIES or was_error)
        return bool(host) and (was_error or any(host_of(other.url or name_of(other)) == host for other in others))

    @property
    def retry_seconds(self) -> int:
        """How long to wait before an error page is fetched again."""
        former = self.former
        if former is None or not former.is_error_page or former.family != self.verdict.family.id:
            return RETRY_SECONDS
        return min(2 * former.decision.interval_seconds, SKIP_SECONDS)

    @cached_property
    def parts(self) -> tuple[list[Part], list[Part]]:
        """The parts of the page before and now."""
        return unpack_parts(self.base.parts) if self.base else [], unpack_parts(self.page.parts)

    @cached_property
    def frame(self) -> Frame:
        """The frame of the host, as learned with this fetch."""
        older, newer = self.parts
        if not older or not newer:
            return self.known.frame
        number = crc32((self.verdict.lineage or "").encode("utf-8", "surrogatepass"))
        return learn(self.known.frame, number, older, newer)

    @cached_property
    def is_equal(self) -> bool:
        """Whether all text that is seen is that of the state before."""
        verdict, base = self.verdict, self.base
        if base is not None and base.own is not None and _surroundings(base.own) != _surroundings(verdict):
            return False
        is_own = verdict.of is not None and verdict.of.lineage == verdict.lineage
        if base is not None and base.text and base.text == verdict.version:
            return True
        if verdict.verdict == "exact_duplicate" and is_own and base is self.former:
            return True
        return verdict.verdict == "unchanged" and (base is None or not base.text)

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether nothing but the frame has changed."""
        older, newer = self.parts
        return self.is_equal or bool(older and newer and has_stayed(self.frame, older, newer))

    def stays(self, name: str) -> bool:
        """Return whether nothing differs from another page of the site but its frame."""
        state = self.known.states.get(name)
        if state is None or not (state.parts and self.page.parts) or not self._is_own_site(name):
            return False
        return has_stayed(self.frame, unpack_parts(state.parts), self.parts[1])

    def _is_own_site(self, name: str) -> bool:
        own = self.site_of(self.verdict.url or self.verdict.lineage or "")
        return bool(own) and self.site_of(name) == own


def _surroundings(document: DocumentRef) -> str:
    return document.labels.get(SURROUNDINGS_LABEL, "")


def base_of(former: PageState | None) -> PageState | None:
    """Return the last state that was no error page."""
    return former.before if former is not None and former.is_error_page else former


def has_turned(base: PageState | None, verdict: DocumentVerdict, page: PageFacts) -> bool:
    """Return whether a text is another than that of the state before, and of another family.

    The family alone does not say it. One whose pages have all turned to another text is not the one that they are in
    when they come back, and a large frame may take a page from one to another.
    """
    if base is None or not base.family or base.family == verdict.family.id or base.text == verdict.version:
        return False
    older, newer = unpack_parts(base.parts), unpack_parts(page.parts)
    return not (older and newer) or share_of_parts(older, newer) > _OTHER_TEXT


def change_share(fetch: Fetch) -> float:
    """Return the share of a text that has changed, as far as it is known.

    The parts of the page say it, or else the verdict, where it compares with the state before.
    """
    base, verdict = fetch.base, fetch.verdict
    if base is None and fetch.former is None and not (verdict.of and verdict.of.lineage == verdict.lineage):
        return 0.0
    if fetch.is_unchanged:
        return 0.0
    is_own = verdict.of is not None and verdict.of.lineage == verdict.lineage
    if is_own and base is fetch.former and not isinstance(verdict.distance, UnsetType):
        longer = max(verdict.characters, verdict.of.characters if verdict.of else 0)
        return round(min(verdict.distance.value / max(longer, 1), 1.0), 4)
    older, newer = fetch.parts
    if older and newer:
        return share_of_parts(older, newer)
    if is_own and base is fetch.former and not isinstance(verdict.resemblance, UnsetType) and verdict.of:
        shorter, longer = sorted((verdict.characters, verdict.of.characters))
        return round(1.0 - min(verdict.resemblance.value, shorter / max(longer, 1)), 4)
    return 1.0


def share_of_parts(older: list[Part], newer: list[Part]) -> float:
    """Return the share of words in parts that only one of two fetches has."""
    before, now = set(older), set(newer)
    changed = max(sum(part.words for part in one - other) for one, other in ((before, now), (now, before)))
    words = max(sum(part.words for part in older), sum(part.words for part in newer), 1)
    return round(min(changed / words, 1.0), 4)
