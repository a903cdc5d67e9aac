"""What a crawler should do with a page after a verdict."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.labels.decision import Action, Because, Decision
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.fetch import COPIES, Fetch, base_of, change_share, has_turned
from nearstream.streams.deciding.resting import Choice, Fetched, choose
from nearstream.streams.deciding.states import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    SKIP_SECONDS,
    HostErrors,
    Known,
    PageState,
    Turn,
    later,
    name_of,
)
from nearstream.streams.estimates.frames import Frame
from nearstream.streams.ingest.lineage import host_of


class Outcome(NamedTuple):
    """What a verdict changes."""

    state: PageState  # of the lineage
    frame: Frame  # of its host
    errors: HostErrors  # of its host
    takes_over: tuple[DocumentRef, ...] = ()  # pages that now rest on the page
    turned: tuple[str, ...] = ()  # lineages that are now known as error pages


def decide_page(
    former: PageState | None,
    verdict: DocumentVerdict,
    page: PageFacts,
    known: Known,
    site_of: Callable[[str], str],
) -> Outcome:
    """Update what is known of a page and its host after a verdict.

    A verdict about a fetch that is no later than the one that decided changes nothing. So a verdict that is delivered
    again gives an equal decision, and of fetches in another order the latest decides.
    """
    if former is not None and verdict.observed_at <= former.decision.observed_at:
        return Outcome(former, known.frame, known.errors)
    errors = _errors(former, verdict, page, known)
    fetch = Fetch(former, verdict, page, replace(known, errors=errors), site_of)
    newly = errors.texts != known.errors.texts
    turned = tuple(name for name in errors.turned_to(verdict.family.id) if newly and name != verdict.lineage)
    if fetch.is_error_page:
        return Outcome(_with_payload(_error_page(fetch), fetch), known.frame, errors, turned=turned)
    choice = choose(_fetched(fetch), fetch.known)
    decision = _decide(fetch, choice)
    state = PageState(
        decision,
        own=own_ref(verdict),
        content=(fetch.base.content if fetch.base and fetch.is_unchanged else "") or verdict.version,
        family=verdict.family.id,
        rests_on=choice.rests_on.content if choice.rests_on else "",
        parts=page.parts,
        declared=page.declared,
        aliases=former.aliases if former else (),
        before=with_fields(fetch.base, before=None) if fetch.base and fetch.has_turned else None,
    )
    return Outcome(_with_payload(state, fetch), fetch.frame, errors, choice.takes_over, turned)


def _with_payload(state: PageState, fetch: Fetch) -> PageState:
    """Return a state with what the server sent at this fetch.

    An equal payload has the time and the WARC record of the first fetch that a record holds, else of the first one.
    """
    former, payload = fetch.former, fetch.page.payload
    state = with_fields(state, etag=fetch.page.etag, modified=fetch.page.modified)
    digest, _, record = payload.partition(" ")
    before, _, record_before = former.payload.partition(" ") if former else ("", "", "")
    if former is not None and digest and before == digest and (record_before or not record):
        return with_fields(state, payload=former.payload, payload_at=former.payload_at)
    return with_fields(state, payload=payload, payload_at=fetch.verdict.observed_at if payload else None)


def may_be_error_page(former: PageState | None, verdict: DocumentVerdict, page: PageFacts) -> bool:
    """Return whether the error pages of the host have to be known for a decision."""
    if former is None:
        return verdict.verdict in COPIES
    return former.is_error_page or has_turned(former, verdict, page)


def may_skip(decision: Decision, at_ms: int) -> bool:
    """Return whether a page need not be fetched at a time."""
    waits = decision.action != "refresh" or decision.because == "error_page"
    return waits and at_ms < decision.until.timestamp() * 1000


def _fetched(fetch: Fetch) -> Fetched:
    former = fetch.base if fetch.is_unchanged else None
    return Fetched(fetch.verdict, fetch.page.declared, former, fetch.stays)


def _errors(former: PageState | None, verdict: DocumentVerdict, page: PageFacts, known: Known) -> HostErrors:
    """Return what is known of the error pages of the host after this fetch."""
    if not has_turned(base_of(former), verdict, page) or not host_of(verdict.url or verdict.lineage or ""):
        return known.errors
    turn = Turn(verdict.family.id, verdict.lineage or "", to_milliseconds(verdict.observed_at))
    return known.errors.after(turn, verdict.event_id)


def _error_page(fetch: Fetch) -> PageState:
    verdict, former, base = fetch.verdict, fetch.former, fetch.base
    is_known = fetch.known.errors.holds(verdict.family.id)
    lasts = former is not None and former.is_error_page and former.family == verdict.family.id
    decision = _decision(
        fetch,
        "refresh",
        "error_page",
        own_ref(verdict),
        fetch.retry_seconds,
        unchanged_since=former.decision.unchanged_since if former and lasts else verdict.observed_at,
        error_text=verdict.family.id if is_known else None,
        change_share=0.0 if lasts else change_share(fetch),
    )
    return PageState(
        decision,
        own=own_ref(verdict),
        content=verdict.version,
        family=verdict.family.id,
        parts=fetch.page.parts,
        declared=fetch.page.declared,
        aliases=former.aliases if former else (),
        before=base and with_fields(base, before=None),
    )


def _decide(fetch: Fetch, choice: Choice) -> Decision:
    verdict, base = fetch.verdict, fetch.base
    since = base.decision.unchanged_since if base and fetch.is_unchanged else verdict.observed_at
    count = (base.decision.unchanged if base else 0) + 1 if fetch.is_unchanged else 0
    share = change_share(fetch)
    lasting: dict[str, Any] = {"unchanged": count, "unchanged_since": since, "change_share": share}
    if choice.rests_on is not None:
        seconds = _trusted_seconds(fetch, choice)
        return _decision(fetch, "skip", "copy", choice.rests_on.ref, seconds, **lasting)
    own = own_ref(verdict)
    if fetch.is_unchanged:
        return _decision(fetch, "keep", "unchanged", own, _seconds(since, verdict), **lasting)
    is_own = verdict.of is not None and verdict.of.lineage == verdict.lineage
    if base is None and not is_own:
        return _decision(fetch, "keep", "first", own, 0, **lasting)
    before = base.decision.unchanged_since if base else verdict.observed_at
    seconds = max(_seconds(before, verdict) // 2, SHORTEST_SECONDS)
    return _decision(fetch, "refresh", "changed", own, seconds, **lasting)


def _trusted_seconds(fetch: Fetch, choice: Choice) -> int:
    """Return how long a page may be skipped.

    It is an hour at first, then twice as long with each confirmation. A page that has stayed for longer is
    trusted for as long again, as if it were no copy. The time is not longer than the canonical page stays in the index
    if it is not fetched again.
    """
    base = fetch.base if fetch.is_unchanged else None
    seconds = SHORTEST_SECONDS
    if base is not None:
        confirmed = 2 * base.decision.interval_seconds if base.decision.action == "skip" else 0
        stayed = _seconds(base.decision.unchanged_since, fetch.verdict)
        seconds = min(max(confirmed, stayed, SHORTEST_SECONDS), SKIP_SECONDS)
    if not fetch.known.kept_seconds or choice.rests_on is None:
        return seconds
    state = fetch.known.states.get(name_of(choice.rests_on.ref))
    seen = state.decision.observed_at if state else choice.rests_on.ref.observed_at
    left = (seen - fetch.verdict.observed_at).total_seconds() + fetch.known.kept_seconds
    return max(min(seconds, int(left)), 0)


def _decision(
    fetch: Fetch,
    action: Action,
    because: Because,
    canonical: DocumentRef,
    seconds: int,
    **fields: Any,  # noqa: ANN401
) -> Decision:
    verdict = fetch.verdict
    return Decision(
        **{"unchanged": 0, **fields},
        collection=verdict.collection,
        lineage=verdict.lineage or "",
        action=action,
        because=because,
        until=later(verdict.observed_at, seconds),
        canonical=canonical,
        event_id=verdict.event_id,
        observed_at=verdict.observed_at,
        interval_seconds=seconds,
    )


def own_ref(verdict: DocumentVerdict) -> DocumentRef:
    """Return the document that a verdict is about."""
    return DocumentRef(**{name: getattr(verdict, name) for name in DocumentRef.__struct_fields__})


def _seconds(since: datetime, verdict: DocumentVerdict) -> int:
    return min(int((verdict.observed_at - since).total_seconds()), LONGEST_SECONDS)
