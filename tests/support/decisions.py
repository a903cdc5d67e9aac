"""Decisions about pages, as the worker that decides leaves them in Redis."""

from datetime import UTC, datetime, timedelta

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.labels.decision import Action, Decision
from nearstream.streams.deciding.states import PageState
from nearstream.workers.redis.kept.decisions import DecisionStore
from tests.support.api import Api

NOW = datetime.now(UTC)


def decision(lineage: str, action: Action, days: int, collection: str = "default") -> Decision:
    """Return a decision that ends in so many days."""
    return Decision(
        collection=collection,
        lineage=lineage,
        action=action,
        until=NOW + timedelta(days=days),
        canonical=DocumentRef(id="first", version="0" * 16, observed_at=NOW, characters=9, url="https://b.example/"),
        event_id="e" * 32,
        observed_at=NOW,
        unchanged_since=NOW,
        interval_seconds=0,
        unchanged=0,
        change_share=0.0,
        because="copy" if action == "skip" else "unchanged",
    )


async def write(api: Api, *decisions: Decision) -> None:
    """Store decisions where the API reads them."""
    store = DecisionStore(api.index.client, api.deployment.settings.namespace)
    for each in decisions:
        await store.write(PageState(each))
