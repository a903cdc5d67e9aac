"""Which page has all words of another one."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace as with_fields

from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.comparing import Parts, lengthened, main_words
from nearstream.streams.deciding.host import frame_of
from nearstream.streams.deciding.naming import rank
from nearstream.streams.deciding.states import HostState, Kept, PageState, Shown, kept
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of

_WORDS_MIN = 8  # of a page that may be a copy
COPY_SECONDS = 3_600  # that a copy waits of which no rate is known
_COPIES = ("exact_duplicate", "near_duplicate")


class Page(NamedTuple):
    """A page as it was fetched, beside what is known of others."""

    state: PageState  # with what was fetched
    parts: Parts
    shown: Shown
    host: HostState
    others: Mapping[str, PageState]  # by name, those that its verdict names and those on which these rest


def named(verdict: DocumentVerdict) -> list[Kept]:
    """Return the documents of other lineages whose content a document may repeat.

    They are its nearest copy and the founder of its family, which `unchanged` says too. What a URL showed that now
    redirects to the page is not there any more.
    """
    refs = [verdict.of if verdict.verdict in _COPIES else None, verdict.family.founder]
    found = [kept(ref) for ref in refs if ref is not None]
    own = {verdict.id, verdict.lineage}
    if verdict.url and verdict.url not in own:
        own.add(name_of_page(verdict.url))
    return [each for each in found if own.isdisjoint((each.name, each.id))]


def better_of(page: Page, verdict: DocumentVerdict, site_of: Callable[[str], str]) -> Kept | None:
    """Return the page that has all words of a page and a better name.

    Between sites it is the older one of two pages that are equal in all that is seen.
    """
    if 0 < main_words(page.parts) < _WORDS_MIN:
        return None
    for other in _of_site(page, verdict, site_of):
        if _is_better(other, page.state) and _is_within(page, page.parts, lengthened(other.parts), other):
            return other.own
    unread = _unread(page, verdict, site_of)
    if unread and _is_better_name(unread, unread.at_ms, page.state):
        return unread
    equal = [each for each in named(verdict) if _is_older_copy(page, each, site_of)]
    return min(equal, key=lambda each: each.at_ms, default=None)


def worse_of(page: Page, verdict: DocumentVerdict, site_of: Callable[[str], str]) -> PageState | None:
    """Return a page of the host with a worse name and no other words."""
    if 0 < main_words(page.parts) < _WORDS_MIN:
        return None
    for other in _of_site(page, verdict, site_of):
        if host_of(other.name) != host_of(page.state.name) or _is_better(other, page.state):
            continue
        if _is_within(page, lengthened(other.parts), page.parts, other):
            return with_fields(
                other,
                because="copy",
                canonical=page.state.own,
                event_id=page.state.event_id,
                wait_seconds=other.wait_seconds or COPY_SECONDS,
            )
    unread = _unread(page, verdict, site_of)
    if unread is None or host_of(unread.name) != host_of(page.state.name):
        return None
    return PageState(
        page.state.collection,
        unread,
        "copy",
        page.state.event_id,
        COPY_SECONDS,
        unread.at_ms,
        canonical=page.state.own,
        seen_ms=unread.at_ms,
        parts=page.state.parts,
    )


def _unread(page: Page, verdict: DocumentVerdict, site_of: Callable[[str], str]) -> Kept | None:
    """Return an equal page of the site whose own verdict is still on its way.

    The verdict about that fetch then changes nothing.
    """
    if verdict.of is None or verdict.verdict not in _COPIES:
        return None
    other, own = kept(verdict.of), page.state.own
    if other not in named(verdict) or other.name in page.others or not other.is_equal(own):
        return None
    sites = {site_of(each.address or each.name) for each in (own, other)}
    return other if len(sites) == 1 and sites != {""} else None


def _of_site(page: Page, verdict: DocumentVerdict, site_of: Callable[[str], str]) -> Iterator[PageState]:
    """Yield the living pages of the site that a page may repeat."""
    own, former = page.state.name, page.state.canonical
    for name in {each.name: None for each in (*named(verdict), *([former] if former else []))}:
        other = page.others.get(name)
        if other is None or other.name == own or _rests_on(other, own):
            continue
        behind = page.others.get(other.canonical.name) if other.canonical else None
        other = behind if behind and _is_living(behind) and not _rests_on(behind, own) else other
        site = site_of(other.own.address or other.name)
        if _is_living(other) and other.name != own and site and site == site_of(page.state.own.address or own):
            yield other


def _is_living(state: PageState) -> bool:
    """Return whether a page shows its own content.

    What it has just turned to may be an error text.
    """
    return not state.is_error_page and not state.is_wall and state.before is None


def _rests_on(state: PageState, name: str) -> bool:
    return state.canonical is not None and state.canonical.name == name


def _is_better(other: PageState, page: PageState) -> bool:
    return _is_better_name(other.own, other.since_ms, page, other.declared)


def _is_better_name(other: Kept, since_ms: int, page: PageState, declared_there: str = "") -> bool:
    declared = {other.name, page.name} & {declared_there, page.declared}
    return rank(other, since_ms, declared) < rank(page.own, page.since_ms, declared)


def _is_within(page: Page, inner: Parts, outer: Parts, other: PageState) -> bool:
    """Return whether one page has all words of the other one but those of the frame."""
    if not inner or not outer:
        return page.state.own.is_equal(other.own)
    known = {part.exact for part in outer}
    extra = [part for part in inner if part.exact not in known and part.words]
    return len(frame_of(page.host, page.shown, extra)) == len({part.exact for part in extra})


def _is_older_copy(page: Page, other: Kept, site_of: Callable[[str], str]) -> bool:
    """Return whether another site had an equal page before."""
    own, state = page.state.own, page.others.get(other.name)
    sites = {site_of(each.address or each.name) for each in (own, other)}
    if (len(sites) == 1 and sites != {""}) or not own.is_equal(other) or other.at_ms >= page.state.since_ms:
        return False
    return state is None or (_is_living(state) and state.own.is_equal(own) and not _rests_on(state, page.state.name))
