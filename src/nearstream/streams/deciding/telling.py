"""Decisions that change after news of another page."""

from typing import Any

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.labels.decision import Because
from nearstream.streams.deciding.states import (
    RETRY_SECONDS,
    SHORTEST_SECONDS,
    SKIP_SECONDS,
    Cause,
    PageState,
    Standing,
    later,
    name_of,
)


def told(follower: PageState, canonical: Standing, cause: Cause) -> PageState:
    """Return the state of a page after news of the page on which its decision rests.

    Without the content on which it rests, it is to be fetched again at once. If that page itself rests on another one
    with its content, so does this page.
    """
    decision = follower.decision
    if decision.action != "skip" or name_of(decision.canonical) != canonical.name:
        return follower
    if canonical.content != follower.rests_on:
        because: Because = "canonical_changed" if canonical.content else "canonical_gone"
        now = max(cause.at, decision.observed_at)
        fields = {"action": "refresh", "because": because, "until": now, "canonical": own_document(follower)}
        return with_fields(follower, decision=with_fields(decision, event_id=cause.event_id, **fields), rests_on="")
    if canonical.canonical is None:
        return follower
    moved = with_fields(decision, event_id=cause.event_id, canonical=canonical.canonical)
    return with_fields(follower, decision=moved, rests_on=canonical.rests_on)


def taken_over(state: PageState, by: PageState, cause: Cause) -> PageState:
    """Return the state of a canonical page after a better one with its content has arrived."""
    kept = state.decision.until if state.decision.action == "keep" else cause.at
    until = min(max(later(cause.at, SHORTEST_SECONDS), kept), later(cause.at, SKIP_SECONDS))
    fields: dict[str, Any] = {"action": "skip", "because": "copy", "canonical": own_document(by), "until": until}
    seconds = max(int((until - state.decision.observed_at).total_seconds()), 0)
    decision = with_fields(state.decision, event_id=cause.event_id, interval_seconds=seconds, **fields)
    return with_fields(state, decision=decision, rests_on=by.content)


def expected(ref: DocumentRef, by: PageState, cause: Cause) -> PageState:
    """Return the state of a page that a better one takes over before its own verdict is read.

    The verdict about this fetch of the page then changes nothing.
    """
    decision = with_fields(
        by.decision,
        lineage=ref.lineage or ref.id,
        action="keep",
        until=ref.observed_at,
        canonical=ref,
        observed_at=ref.observed_at,
        unchanged_since=ref.observed_at,
        unchanged=0,
        change_share=0.0,
    )
    return taken_over(PageState(decision, own=ref, content=ref.version, family=by.family), by, cause)


def found_out(state: PageState, family: str, cause: Cause) -> PageState:
    """Return the state of a page whose text is now known as an error text."""
    if state.family != family:
        return state
    if state.is_error_page:
        return with_fields(state, decision=with_fields(state.decision, event_id=cause.event_id, error_text=family))
    until = later(max(cause.at, state.decision.observed_at), RETRY_SECONDS)
    fields: dict[str, Any] = {"action": "refresh", "because": "error_page", "error_text": family, "until": until}
    decision = with_fields(
        state.decision,
        event_id=cause.event_id,
        interval_seconds=RETRY_SECONDS,
        canonical=own_document(state),
        **fields,
    )
    return with_fields(state, decision=decision, rests_on="")


def capped(state: PageState, seconds: int) -> PageState:
    """Return a state whose decision lasts no longer than this after its fetch."""
    decision = state.decision
    until = min(decision.until, later(decision.observed_at, seconds))
    return with_fields(state, decision=with_fields(decision, until=until))


def own_document(state: PageState) -> DocumentRef:
    """Return the document of the latest fetch of a page."""
    return state.own or state.decision.canonical
