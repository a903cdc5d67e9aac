"""States of pages, as the worker that decides leaves them in Redis."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.labels.decision import Because
from nearstream.streams.deciding.decider import Needs
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.deciding.states import PageState, kept
from nearstream.workers.redis.kept.decisions import DecisionStore
from tests.support.api import Api

NOW = datetime.now(UTC).replace(microsecond=0)
_BEFORE = timedelta(days=10)


def page_state(lineage: str, because: Because, days: int, collection: str = "default") -> PageState:
    """Return the state of a page that was fetched ten days ago and waits until so many days from now."""
    at = NOW - _BEFORE
    own, other = (
        DocumentRef(id=name, version="0" * 16, observed_at=at, characters=9, url=url, lineage=name)
        for name, url in ((lineage, lineage if "://" in lineage else None), ("first", "https://b.example/"))
    )
    return PageState(
        collection,
        own=kept(own),
        because=because,
        event_id=b"e" * 16,
        wait_seconds=int((_BEFORE + timedelta(days=days)).total_seconds()),
        since_ms=to_milliseconds(at),
        canonical=kept(other) if because == "copy" else None,
        seen_ms=to_milliseconds(at),
    )


async def write(api: Api, *states: PageState) -> None:
    """Store states where the API reads them."""
    await store_states(DecisionStore(api.index.client, api.deployment.settings.namespace), *states)


async def store_states(store: DecisionStore, *states: PageState, aliases: Mapping[str, str] | None = None) -> None:
    """Store states, and other names of pages."""
    known = MemoryDecisions()
    for each in states:
        await known.write(each)
    for alias, name in (aliases or {}).items():
        await known.write_alias("default", alias, name)
    await store.save(MemoryDecisions(), known)


async def forget(store: DecisionStore, name: str) -> None:
    """Remove the state of a page, or one of its other names."""
    before = await store.load(Needs({("default", name)}, set(), set()))
    after = before.copy()
    await after.forget("default", name)
    await store.save(before, after)
