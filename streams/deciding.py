"""From verdicts to decisions: what a crawler should do with the pages of a lineage."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from zlib import crc32

from msgspec import UnsetType

from nearstream.schemas.decision import Action, Decision
from nearstream.schemas.document import LATEST
from nearstream.schemas.evidence import DocumentRef
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.estimates.frames import Frame, has_stayed, learn
from nearstream.streams.fingerprints.page_parts import unpack_parts

SHORTEST_SECONDS = 3_600  # after a change
LONGEST_SECONDS = 30 * 86_400
SKIP_SECONDS = 7 * 86_400

_COPIES = ("exact_duplicate", "near_duplicate")


class PageState(NamedTuple):
    """What is kept of a lineage between two fetches.

    Attributes:
        decision: The newest one.
        parts: The hashes of the parts of the page at that fetch, packed. Empty: the document was no page.
    """

    decision: Decision
    parts: bytes = b""


def decide_page(
    former: PageState | None, frame: Frame, verdict: DocumentVerdict, parts: bytes, alike: Mapping[str, bytes]
) -> tuple[PageState | None, Frame]:
    """Update the state of a lineage and the frame of its host after a verdict.

    A page whose other parts are as before has not changed, whatever its frame shows now. A page is no copy of one of
    its site if they differ in more than the frame, because the frame may be most of what both have.

    Args:
        former: The state before. None for a first fetch.
        frame: The frame of its host, as learned so far.
        verdict: About a document of this lineage.
        parts: The hashes of the parts of the page, packed. Empty: the document is no page.
        alike: By lineage the hashes of the parts of the pages `to_compare`, packed. Empty: they are not known.

    Returns:
        No state if the document has no lineage. A verdict about a fetch that is no later than the one that decided
        gives the former state and frame.
    """
    if former is not None and verdict.observed_at <= former.decision.observed_at:
        return former, frame
    older, newer = unpack_parts(former.parts) if former else [], unpack_parts(parts)
    is_unchanged = False
    if older and newer:
        frame = learn(frame, crc32((verdict.lineage or "").encode("utf-8", "surrogatepass")), older, newer)
        is_unchanged = has_stayed(frame, older, newer)
    others = {lineage: unpack_parts(packed) for lineage, packed in alike.items()}
    differing = {lineage for lineage, other in others.items() if not (other and has_stayed(frame, other, newer))}
    decision = decide(former.decision if former else None, verdict, is_unchanged=is_unchanged, differing=differing)
    return (PageState(decision, parts) if decision else None), frame


def to_compare(verdict: DocumentVerdict, site_of: Callable[[str], str]) -> set[str]:
    """Return the lineages whose frame may be all that a document repeats.

    They are those of its own site of which it looks like a copy.

    Args:
        verdict: About the document.
        site_of: Returns the site of a URL, empty if it has none.
    """
    own = site_of(verdict.url or verdict.lineage or "")
    equal = verdict.of if verdict.verdict == "exact_duplicate" else None
    others = (other for other in _candidates(verdict) if other != equal)
    return {other.lineage for other in others if own and other.lineage and site_of(other.url or other.lineage) == own}


def decide(
    former: Decision | None,
    verdict: DocumentVerdict,
    *,
    is_unchanged: bool = False,
    differing: Collection[str | None] = (),
) -> Decision | None:
    """Return the decision about the lineage of a document after a verdict.

    A verdict about a fetch that is no later than the one that decided changes nothing. So a verdict that is delivered
    again gives an equal decision, and of fetches in another order the latest decides.

    Args:
        former: The decision before. None for a first fetch.
        verdict: About a document of this lineage.
        is_unchanged: Whether the page has not changed, though its text may have.
        differing: Lineages of which the document is no copy, though it looks like one.

    Returns:
        None if the document has no lineage.
    """
    if verdict.lineage is None:
        return None
    if former is not None and verdict.observed_at <= former.observed_at:
        return former
    other = _copied(verdict, differing)
    if other is not None:
        return _decision(verdict, "skip", other, seconds=SKIP_SECONDS)
    is_equal = verdict.verdict == "unchanged" or (verdict.verdict == "exact_duplicate" and _is_own(verdict))
    if is_equal or is_unchanged:
        return _unchanged(former, verdict)
    if former is None and not _is_own(verdict):
        return _decision(verdict, "keep", _itself(verdict), seconds=0)
    lasted = _seconds(former.unchanged_since if former else verdict.observed_at, verdict)
    seconds = max(lasted // 2, SHORTEST_SECONDS)
    return _decision(verdict, "refresh", _itself(verdict), seconds=seconds, change_share=_change_share(verdict))


def may_skip(decision: Decision, at_ms: int) -> bool:
    """Return whether a page need not be fetched at a time.

    Args:
        decision: About the lineage of the page.
        at_ms: The time, in milliseconds since 1970.
    """
    return decision.action != "refresh" and at_ms < decision.until.timestamp() * 1000


def _unchanged(former: Decision | None, verdict: DocumentVerdict) -> Decision:
    """Return the decision about a page that has not changed.

    A text that has stayed for a time is expected to stay for as long again. A copy of another page remains one.
    """
    count = 1 if former is None else former.unchanged + 1
    since = verdict.observed_at if former is None else former.unchanged_since
    if former is not None and former.action == "skip":
        return _decision(
            verdict, "skip", former.canonical, seconds=SKIP_SECONDS, unchanged=count, unchanged_since=since
        )
    seconds = _seconds(since, verdict)
    return _decision(verdict, "keep", _itself(verdict), seconds=seconds, unchanged=count, unchanged_since=since)


def _copied(verdict: DocumentVerdict, differing: Collection[str | None]) -> DocumentRef | None:
    """Return the document of another lineage whose content a document repeats.

    It is the one that was observed first, then the one with the shortest URL, then the smallest id.
    """
    known = [other for other in _candidates(verdict) if other.lineage not in differing]
    return min(known, key=lambda one: (one.observed_at, len(one.url or ""), one.id), default=None)


def _candidates(verdict: DocumentVerdict) -> list[DocumentRef]:
    """Return the documents of other lineages that a document may repeat.

    They are the founder of its family and its nearest copy. A founder is never a copy, even after a change.
    """
    founder = verdict.family.founder
    if verdict.verdict not in _COPIES or (founder is not None and founder.id == verdict.id):
        return []
    return [one for one in (founder, verdict.of) if one is not None and one.lineage != verdict.lineage]


def _is_own(verdict: DocumentVerdict) -> bool:
    """Return whether a verdict compares a document with a state of its own lineage."""
    return verdict.of is not None and verdict.of.lineage == verdict.lineage


def _change_share(verdict: DocumentVerdict) -> float:
    """Return the share of a text that has changed, as far as the verdict knows."""
    if verdict.of is None or not (_is_own(verdict) or verdict.verdict in _COPIES):
        return 1.0
    shorter, longer = sorted((verdict.characters, verdict.of.characters))
    if not isinstance(verdict.distance, UnsetType):
        return round(min(verdict.distance.value / max(longer, 1), 1.0), 4)
    if isinstance(verdict.resemblance, UnsetType):
        return 1.0
    return round(1.0 - min(verdict.resemblance.value, shorter / max(longer, 1)), 4)


def _decision(
    verdict: DocumentVerdict,
    action: Action,
    canonical: DocumentRef,
    *,
    seconds: int,
    unchanged: int = 0,
    unchanged_since: datetime | None = None,
    change_share: float = 0.0,
) -> Decision:
    return Decision(
        collection=verdict.collection,
        lineage=verdict.lineage or "",
        action=action,
        until=verdict.observed_at + min(timedelta(seconds=seconds), LATEST - verdict.observed_at),
        canonical=canonical,
        event_id=verdict.event_id,
        observed_at=verdict.observed_at,
        unchanged_since=unchanged_since or verdict.observed_at,
        interval_seconds=seconds,
        unchanged=unchanged,
        change_share=change_share,
    )


def _itself(verdict: DocumentVerdict) -> DocumentRef:
    return DocumentRef(**{name: getattr(verdict, name) for name in DocumentRef.__struct_fields__})


def _seconds(since: datetime, verdict: DocumentVerdict) -> int:
    return min(int((verdict.observed_at - since).total_seconds()), LONGEST_SECONDS)
