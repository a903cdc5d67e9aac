"""Decisions made after each event, from what is known of pages."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.copies import named
from nearstream.streams.deciding.deciding import Fetch, Known, Outcome, decide_page, renewed
from nearstream.streams.deciding.errors import found_out
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.deciding.states import ALIASES_MAX, HostState, PageState
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of


class Needs(NamedTuple):
    """What is to be known before some events, each by collection and name."""

    pages: set[tuple[str, str]]  # their own, and those that they may repeat
    hosts: set[tuple[str, str]]
    folders: set[tuple[str, str]]


def needs(events: Iterable[Event]) -> Needs:
    """Return what is to be known before some events."""
    found = Needs(set(), set(), set())
    for event in events:
        collection = event.collection
        if isinstance(event, Retraction):
            found.pages.add((collection, event.document_id))
        elif isinstance(event, DocumentVerdict) and event.lineage is not None:
            names = [event.lineage, *(each.name for each in named(event))]
            found.pages.update((collection, name) for name in names)
            host, folder = _places(event)
            found.hosts.add((collection, host))
            found.folders.add((collection, folder))
    return found


def _ignore(_: str, __: str) -> None:
    pass


class Said(NamedTuple):
    """A decision to be sent. None: the page was removed."""

    collection: str
    name: str
    decision: Decision | None


@dataclass(frozen=True)
class Decider:
    """Makes decisions about the page of a verdict, and about pages that change with it."""

    store: MemoryDecisions  # what is known, and will be
    site_of: Callable[[str], str]  # returns the site of a URL, empty if it has none
    freshness: float = 0.8  # from which likelihood on that a page has not changed it need not be fetched
    # Takes the host and the family of each text that has become known as an error text.
    notice: Callable[[str, str], None] = _ignore

    async def asked(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page with its current wait, None without a state."""
        state = await self.store.read_state(collection, name)
        if state is None:
            return None
        _, folder = places_of(state.own.address or name)
        return renewed(state, self.store.folders.get((collection, folder), b""), self.freshness)

    async def after_verdict(self, verdict: DocumentVerdict, page: PageFacts) -> list[Said]:
        """Return the decisions that a verdict gives, that about its own page first.

        A verdict that is delivered again gives them again.
        """
        if verdict.lineage is None:
            return []
        former = await self.store.read_state(verdict.collection, verdict.lineage)
        known = await self._known(former, verdict)
        outcome = decide_page(Fetch(former, verdict, page, known), self.site_of, self.freshness)
        changed = [*(await self._turned(verdict, outcome)), *([outcome.worse] if outcome.worse else [])]
        for state in changed:
            await self.store.write(state)
        own = await self._named(outcome.state, verdict)  # of an older fetch that comes late too
        if own == former:
            again = [state for state in known.others.values() if state.event_id.hex() == verdict.event_id]
            return _said([former, *again])
        host, folder = _places(verdict)
        if host:
            self.store.hosts[verdict.collection, host] = outcome.known.host
            self.store.folders[verdict.collection, folder] = outcome.known.folder
        await self.store.write(own)
        return _said([own, *changed])

    async def after_removal(self, retraction: Retraction) -> list[Said]:
        """Return the decisions that end with the removal of a document."""
        collection, name = retraction.collection, retraction.document_id
        former = await self.store.read_state(collection, name)
        if former is None or former.own.at_ms > to_milliseconds(retraction.removed_at):
            return _said([former] if former else [])
        await self.store.forget(collection, name)
        if former.name == name:
            return [Said(collection, each, None) for each in (name, *former.aliases)]
        left = tuple(each for each in former.aliases if each != name)  # names under which the page lives on
        await self.store.write(with_fields(former, aliases=left))
        return [Said(collection, name, None)]

    async def _known(self, former: PageState | None, verdict: DocumentVerdict) -> Known:
        """Read what is known of a host, and of pages that a page may repeat."""
        others: dict[str, PageState] = {}
        names = {each.name for each in named(verdict)} | _behind([former])
        for _ in range(2):
            for name in sorted(names - others.keys() - {verdict.lineage}):
                state = await self.store.read_state(verdict.collection, name)
                if state is not None and state.name != verdict.lineage:
                    others[name] = state
            names = _behind(others.values())
        host, folder = ((verdict.collection, place) for place in _places(verdict))
        return Known(self.store.hosts.get(host, HostState()), self.store.folders.get(folder, b""), others)

    async def _turned(self, verdict: DocumentVerdict, outcome: Outcome) -> list[PageState]:
        """Return the new states of pages whose text has become known as an error text."""
        if outcome.error is None:
            return []
        states = [await self.store.read_state(verdict.collection, name) for name in outcome.turned]
        cause = outcome.state.event_id, outcome.state.own.at_ms
        self.notice(_places(verdict)[0], outcome.error.family)
        return [found_out(state, outcome.error, *cause) for state in states if state and state.before]

    async def _named(self, state: PageState, verdict: DocumentVerdict) -> PageState:
        """Return the state with the URL of this fetch as an alias."""
        alias = name_of_page(verdict.url) if verdict.url else verdict.lineage
        if alias is None or alias == verdict.lineage or alias in state.aliases:
            return state
        await self.store.write_alias(verdict.collection, alias, state.name)
        return with_fields(state, aliases=(*state.aliases, alias)[-ALIASES_MAX:])


def _places(verdict: DocumentVerdict) -> tuple[str, str]:
    return places_of(verdict.url or verdict.lineage or "")


def places_of(url: str) -> tuple[str, str]:
    """Return the host of a page, and the host with the first segment of its path."""
    host = host_of(url)
    segments = urlsplit(url).path.split("/") if host else []
    return host, f"{host}/{segments[1]}" if len(segments) > 2 else f"{host}/"


def _behind(states: Iterable[PageState | None]) -> set[str]:
    """Return the names of the pages on which pages rest."""
    return {state.canonical.name for state in states if state and state.canonical}


def _said(states: Iterable[PageState]) -> list[Said]:
    return [
        Said(state.collection, name, decision)
        for state in states
        for decision in [state.decision]
        for name in (state.name, *state.aliases)
    ]
