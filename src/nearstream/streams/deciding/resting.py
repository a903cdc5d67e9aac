"""Choose the canonical page of a content, and what its twins rest on."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from msgspec import UNSET

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.states import Known, PageState, name_of

# Parameters that name a visit and no page. Those that `canonical_url` removes are not here.
_VISIT = re.compile(
    r"(?:.{0,16}[_-])?(?:s|sess|session|visit|visitor|click|track|tracking|auth)[_-]?(?:id|key|token)?"
    r"|(?:.{0,16}[_-])?(?:sid|token|ref|referer|referrer|source|src|from|campaign|affiliate|aff|partner|cid|pk_.{1,16})",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"(?=.{0,64}\d)(?=.{0,64}[a-z])[0-9a-z_-]{20,}", re.IGNORECASE)
_SESSION_IN_PATH = re.compile(r";[^/]{0,64}(?:sid|sess)[^/]{0,16}=|/\(S\([0-9a-z]+\)\)/", re.IGNORECASE)
_FORM = r"print|printable|printer|amp|mobile|mobil|m|text-only|textonly"
_EXTENSION = r"(?:\.[a-z]{2,5})?"
_FORM_OF_PATH = re.compile(rf"(?:{_FORM}){_EXTENSION}|.{{1,200}}[._-](?:print|printable|amp|mobile){_EXTENSION}")
_FORM_NAME = re.compile(rf"(?:{_FORM})(?:able|_?view|_?version)?")
_FORM_VALUE = re.compile(r"print|printable|printer|amp|mobile|text-only|textonly")
_COPIES = ("exact_duplicate", "near_duplicate")


class Candidate(NamedTuple):
    """A page that has all of the content of another one."""

    ref: DocumentRef  # the page
    is_twin: bool  # its own content is all in the other one too
    content: str  # its content, on which a decision would rest


class Choice(NamedTuple):
    """The canonical page of a content."""

    rests_on: Candidate | None = None  # Another page. None: the page itself.
    takes_over: tuple[DocumentRef, ...] = ()  # pages that now rest on the page itself


class Fetched(NamedTuple):
    """A page as it was fetched, beside its state before."""

    verdict: DocumentVerdict  # about its text
    declared: str  # the lineage of the page that it declares as its canonical one
    former: PageState | None  # its state before, if its content has not changed since
    stays: Callable[[str], bool]  # returns whether nothing differs from a page of this name but the frame of the site


def named(verdict: DocumentVerdict) -> list[DocumentRef]:
    """Return the documents of other lineages whose content a document may repeat.

    They are its nearest copy and the founder of its family, which `unchanged` says too.
    """
    founder = verdict.family.founder
    has_copied = verdict.verdict in _COPIES or is_redundant(verdict)
    pages = [verdict.of if has_copied else None, founder]
    own = name_of(verdict)
    return [page for page in pages if page is not None and name_of(page) != own and page.id != verdict.id]


def choose(page: Fetched, known: Known) -> Choice:
    """Choose the canonical page of the content of a page.

    Declared pages come first where the texts agree, then those whose URL has no session and no tracking, no print, AMP
    or mobile form, then the shortest path, then the oldest. A better page that arrives later takes over from those
    whose content is all in it.
    """
    candidates = list(_candidates(page, known))
    if not candidates:
        return Choice()
    names = {name_of(candidate.ref) for candidate in candidates} | {name_of(page.verdict)}
    states = (known.states.get(name) for name in names)
    declared = names & {page.declared, *(state.declared for state in states if state)}
    best = min(candidates, key=lambda candidate: rank(candidate.ref, declared))
    if rank(page.verdict, declared) >= rank(best.ref, declared):
        return Choice(rests_on=best)
    twins = {name_of(each.ref): each.ref for each in candidates if each.is_twin}
    return Choice(takes_over=tuple(twins[name] for name in sorted(twins)))


def _candidates(page: Fetched, known: Known) -> Iterator[Candidate]:
    """Yield the living pages that have all of the content of a page."""
    for ref in named(page.verdict):
        is_twin = ref.version == page.verdict.version or page.stays(name_of(ref))
        if is_twin or _is_inside(page, ref):
            yield from _living(page.verdict, ref, known, is_twin=is_twin)
    former = page.former
    if former is None or former.decision.action != "skip":
        return
    canonical = former.decision.canonical
    state = known.states.get(name_of(canonical))
    if state is None or (state.may_be_canonical and state.content == former.rests_on):
        yield Candidate(canonical, canonical.version == page.verdict.version, former.rests_on)


def _is_inside(page: Fetched, ref: DocumentRef) -> bool:
    """Return whether all of a page is in the document that its verdict names."""
    return ref == page.verdict.of and is_redundant(page.verdict)


def _living(verdict: DocumentVerdict, ref: DocumentRef, known: Known, *, is_twin: bool) -> Iterator[Candidate]:
    """Yield the page of a document, or the one on which it rests, if it lives."""
    state = known.states.get(name_of(ref))
    if state is None:
        yield Candidate(ref, is_twin, ref.version)
    elif state.decision.action == "skip":
        canonical = state.decision.canonical
        behind = known.states.get(name_of(canonical))
        is_alive = behind is None or (behind.may_be_canonical and behind.content == state.rests_on)
        if name_of(canonical) != name_of(verdict) and state.text == ref.version and is_alive:
            yield Candidate(canonical, canonical.version == verdict.version, state.rests_on)
    elif state.may_be_canonical and not known.errors.holds(state.family):
        if state.text == ref.version:
            yield Candidate(ref, is_twin, state.content)
        elif state.decision.observed_at <= ref.observed_at:  # its own verdict is on its way
            yield Candidate(ref, is_twin, ref.version)


def form_of(url: str) -> tuple[bool, bool, int]:
    """Return how good a URL is as the name of a page, as a sort key, the best first. A text that is no URL is a path.

    Returns:
        Whether the URL has a session id or a parameter of tracking, whether it is the print, AMP or mobile form of a
        page, and the length of its path with the query.
    """
    try:
        parts = urlsplit(url[:4096])
        query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
    except ValueError:
        return True, False, len(url)
    has_visit = bool(_SESSION_IN_PATH.search(parts.path)) or any(_is_visit(*field) for field in query)
    labels = (parts.hostname or "").split(".")
    segments = [segment.lower() for segment in parts.path.split("/")]
    is_variant = (
        labels[0] in ("m", "amp", "mobile", "print")
        or any(_FORM_OF_PATH.fullmatch(segment) for segment in segments)
        or any(_is_form(name.lower(), value.lower()) for name, value in query)
    )
    return has_visit, is_variant, len(parts.path.rstrip("/")) + len(parts.query)


def rank(ref: DocumentRef, declared: Collection[str]) -> tuple[bool, tuple[bool, bool, int], float, int, str]:
    """Return the sort key of pages with one content, the canonical one first.

    The lineages are those that pages with this content declare as canonical.
    """
    name = name_of(ref)
    url = name if "://" in name else ref.url or name  # a page that others redirect to has the URL of one of them
    return name_of(ref) not in declared, form_of(url), ref.observed_at.timestamp(), len(url), ref.id


def _is_visit(name: str, value: str) -> bool:
    return bool(_VISIT.fullmatch(name) or _RANDOM.fullmatch(value))


def _is_form(name: str, value: str) -> bool:
    return bool(_FORM_NAME.fullmatch(name) or _FORM_VALUE.fullmatch(value))


def is_redundant(verdict: DocumentVerdict) -> bool:
    """Return whether all of a document is in the earlier one that its verdict names.

    Verdicts of former releases do not say it, but know equal texts.
    """
    return verdict.redundant is True or (verdict.redundant is UNSET and verdict.verdict == "exact_duplicate")
