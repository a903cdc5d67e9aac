"""Decisions in a store, made after each event."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.verdicts.events import Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.deciding import Outcome, decide_page, may_be_error_page
from nearstream.streams.deciding.resting import named
from nearstream.streams.deciding.states import (
    ALIASES_MAX,
    FOLLOWERS_MAX,
    SHORTEST_SECONDS,
    Cause,
    HostErrors,
    Known,
    PageState,
    Standing,
    name_of,
    standing_of,
)
from nearstream.streams.deciding.telling import capped, expected, found_out, taken_over, told
from nearstream.streams.estimates.frames import Frame
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of


class Decisions(Protocol):
    """The states of pages, by the collection and the name of a page."""

    async def read_state(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page, or None if it has none."""

    async def write(self, state: PageState) -> None:
        """Store the state of a page, in place of the one before."""

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name."""

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page."""

    async def read_frame(self, collection: str, host: str) -> Frame:
        """Return what is known of the frame of a host."""

    async def write_frame(self, collection: str, host: str, frame: Frame) -> None:
        """Store what is known of the frame of a host."""

    async def read_errors(self, collection: str, host: str) -> HostErrors:
        """Return what is known of the error pages of a host."""

    async def write_errors(self, collection: str, host: str, errors: HostErrors) -> None:
        """Store what is known of the error pages of a host."""

    async def follow(self, collection: str, canonical: str, follower: str) -> bool:
        """List a page that rests on another one. Return whether there was room for it."""

    async def followers(self, collection: str, canonical: str) -> list[str]:
        """Return the pages that rest on a page, or have rested on it."""

    async def leave(self, collection: str, canonical: str, follower: str) -> None:
        """Take a page from the list of those that rest on another one."""


def _ignore(_: str, __: str) -> None:
    pass


class Said(NamedTuple):
    """A decision to be sent. None: the page was removed."""

    collection: str
    name: str
    decision: Decision | None


@dataclass(frozen=True)
class Decider:
    """Makes decisions.

    A page is listed at the one on which it rests before that one is read. That one is stored before its list is read.
    So of two workers at one moment at least one sees the other.
    """

    store: Decisions  # the states of pages
    site_of: Callable[[str], str]  # returns the site of a URL, empty if it has none
    kept_seconds: int = 0  # How long a document stays in the index after a fetch. 0: forever.
    # Takes the host and the family of each text that has become known as an error text.
    notice: Callable[[str, str], None] = _ignore

    async def after_verdict(self, verdict: DocumentVerdict, page: PageFacts) -> list[Said]:
        """Return the decisions that a verdict gives, that about its own page first.

        A verdict that is delivered again gives them again.
        """
        cause = Cause(verdict.event_id, verdict.observed_at)
        if verdict.lineage is None:
            return await self._tell(verdict.collection, Standing(verdict.id, verdict.version), cause)
        former = await self.store.read_state(verdict.collection, verdict.lineage)
        known = await self._known(former, verdict, page)
        outcome = decide_page(former, verdict, page, known, self.site_of)
        await self._learn(verdict, known, outcome)
        state = await self._named(outcome.state, verdict)
        is_new = state != former
        if is_new:
            state = await self._stored(state, cause)
        said = _said(state)
        for ref in outcome.takes_over:
            said += await self._take_over(ref, state, cause)
        for name in outcome.turned:
            said += await self._find_out(verdict, name, cause)
        if not is_new or former is None or standing_of(former) != standing_of(state):
            said += await self._tell(verdict.collection, standing_of(state), cause)
        return said

    async def after_removal(self, retraction: Retraction) -> list[Said]:
        """Return the decisions that fall with the removal of a document, its own included."""
        collection, name = retraction.collection, retraction.document_id
        former = await self.store.read_state(collection, name)
        if former is not None and former.decision.observed_at > retraction.removed_at:
            return _said(former)
        said = []
        if former is not None:
            await self.store.forget(collection, name)
            said = [Said(collection, each, None) for each in (name, *former.aliases)]
        cause = Cause(retraction.event_id, retraction.removed_at)
        return said + await self._tell(collection, Standing(name, ""), cause)

    async def _known(self, former: PageState | None, verdict: DocumentVerdict, page: PageFacts) -> Known:
        """Read what is known of the pages that a verdict names, and of its host."""
        states: dict[str, PageState] = {}
        await self._read(verdict, states, {name_of(ref) for ref in named(verdict)} | _behind(former))
        await self._read(verdict, states, {name for state in states.values() for name in _behind(state)})
        host = host_of(verdict.url or verdict.lineage or "")
        frame: Frame = {}
        if page.parts and any(state and state.parts for state in (former, *states.values())):
            frame = await self.store.read_frame(verdict.collection, host)
        errors = HostErrors()
        if host and may_be_error_page(former, verdict, page):
            errors = await self.store.read_errors(verdict.collection, host)
        return Known(states, frame, errors, self.kept_seconds)

    async def _read(self, verdict: DocumentVerdict, states: dict[str, PageState], names: set[str]) -> None:
        for name in names - states.keys() - {verdict.lineage}:
            state = await self.store.read_state(verdict.collection, name)
            if state is not None:
                states[name] = state

    async def _learn(self, verdict: DocumentVerdict, known: Known, outcome: Outcome) -> None:
        host = host_of(verdict.url or verdict.lineage or "")
        if outcome.frame != known.frame:
            await self.store.write_frame(verdict.collection, host, outcome.frame)
        if outcome.errors != known.errors:
            await self.store.write_errors(verdict.collection, host, outcome.errors)
        if outcome.errors.texts != known.errors.texts:
            self.notice(host, verdict.family.id)

    async def _named(self, state: PageState, verdict: DocumentVerdict) -> PageState:
        """Return the state with the URL of this fetch as an alias."""
        alias = name_of_page(verdict.url) if verdict.url else verdict.lineage
        if alias is None or alias == verdict.lineage or alias in state.aliases:
            return state
        await self.store.write_alias(verdict.collection, alias, state.decision.lineage)
        return with_fields(state, aliases=(*state.aliases, alias)[-ALIASES_MAX:])

    async def _stored(self, state: PageState, cause: Cause) -> PageState:
        """Store a state, and check the page on which it rests."""
        decision = state.decision
        if decision.action != "skip":
            await self.store.write(state)
            return state
        canonical = name_of(decision.canonical)
        if not await self.store.follow(decision.collection, canonical, decision.lineage):
            state = capped(state, SHORTEST_SECONDS)  # it would not learn that the other page has changed
        await self.store.write(state)
        behind = await self.store.read_state(decision.collection, canonical)
        checked = told(state, standing_of(behind), cause) if behind else state
        if checked == state:
            return state
        if checked.decision.action == "skip":  # it has moved on, which may happen once
            await self.store.follow(decision.collection, name_of(checked.decision.canonical), decision.lineage)
        await self.store.write(checked)
        return checked

    async def _tell(self, collection: str, canonical: Standing, cause: Cause) -> list[Said]:
        """Update the decisions that rest on a page, and return those of this cause."""
        said = []
        async for name, state in self._following(collection, canonical.name):
            now = told(state, canonical, cause)
            if now != state:
                now = await self._stored(now, cause)
            if now.decision.event_id == cause.event_id:
                said += _said(now)
            elif now.decision.action != "skip" or name_of(now.decision.canonical) != canonical.name:
                await self.store.leave(collection, canonical.name, name)
        return said

    async def _following(self, collection: str, name: str) -> AsyncIterator[tuple[str, PageState]]:
        for follower in (await self.store.followers(collection, name))[: 2 * FOLLOWERS_MAX]:
            state = await self.store.read_state(collection, follower)
            if state is None:
                await self.store.leave(collection, name, follower)
            else:
                yield follower, state

    async def _take_over(self, ref: DocumentRef, by: PageState, cause: Cause) -> list[Said]:
        """Let a page rest on a better one, and with it all that rest on it."""
        collection = by.decision.collection
        state = await self.store.read_state(collection, name_of(ref))
        if not by.may_be_canonical or (state is not None and not state.may_be_canonical) or ref.lineage is None:
            return []
        now = await self._stored(taken_over(state, by, cause) if state else expected(ref, by, cause), cause)
        return _said(now) + await self._tell(collection, standing_of(now), cause)

    async def _find_out(self, verdict: DocumentVerdict, name: str, cause: Cause) -> list[Said]:
        """Take a page for an error page whose text has become known as one."""
        state = await self.store.read_state(verdict.collection, name)
        now = found_out(state, verdict.family.id, cause) if state else None
        if now is None or now == state:
            return []
        await self.store.write(now)
        return _said(now) + await self._tell(verdict.collection, standing_of(now), cause)


def _behind(state: PageState | None) -> set[str]:
    """Return the names of the pages on which a page rests or rested."""
    states = (state, state.before) if state else ()
    return {name_of(each.decision.canonical) for each in states if each and each.decision.action == "skip"}


def _said(state: PageState) -> list[Said]:
    decision = state.decision
    return [Said(decision.collection, name, decision) for name in (decision.lineage, *state.aliases)]
