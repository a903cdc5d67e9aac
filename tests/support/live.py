"""Verdicts and a server for tests of the live page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, cast

import aiohttp

from nearstream.schemas.alerts.alert import Alert, AlertName, alert_id
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef, Interval
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.dead_letter import (
    DeadLetter,
    Reason,
    StoredDeadLetter,
    outgoing,
    read_dead_letter,
)
from nearstream.schemas.verdicts.events import Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict, FamilyRef, VerdictKind
from nearstream.workers.config.settings import load
from nearstream.workers.http.application import application, listening
from nearstream.workers.http.learning import Sends
from nearstream.workers.http.live.details import States
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.http.operator import Replay, add_operator_routes
from nearstream.workers.http.requests import Gate
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.reading.members import Index

HOSTILE_KEY = b"<img src=x onerror=alert(1)>\xff"
NOW_MS = 1_772_440_200_000  # in the middle of a minute of the live page
SCHEME = "fine-1-u14-k0d3e89c8-547a5fec"


def ref(name: str, at_ms: int = NOW_MS) -> DocumentRef:
    """Return a document as events name it."""
    return DocumentRef(id=name, version="31f8d0c4e6b2975a", observed_at=from_milliseconds(at_ms), characters=1000)


def verdict(
    name: str,
    family: str = "",
    ordinal: int = 1,
    *,
    kind: VerdictKind = "unique",
    founder: str | None = "first",
    collection: str = "news",
    at_ms: int = NOW_MS,
    url: str | None = None,
    **labels: str,
) -> DocumentVerdict:
    """Return a verdict, of a copy of `founder` unless its ordinal is 1."""
    is_copy = ordinal > 1
    return DocumentVerdict(
        id=name,
        version="31f8d0c4e6b2975a",
        observed_at=from_milliseconds(at_ms),
        characters=1000,
        url=url,
        source="crawler",
        labels=labels,
        event_id=f"{abs(hash((name, collection, ordinal, at_ms))):032x}"[:32],
        collection=collection,
        scheme=SCHEME,
        verdict="near_duplicate" if is_copy and kind == "unique" else kind,
        of=ref(founder) if is_copy and founder else None,
        family=FamilyRef(
            id=family or f"{abs(hash(name)):032x}",
            ordinal=ordinal,
            first_seen=from_milliseconds(NOW_MS - 60_000),
            founder=ref(founder) if founder else None,
        ),
        events=int(is_copy),
        resemblance=Interval(0.93, 0.9, 0.96),
        degraded=(),
    )


def removal(name: str, collection: str = "news") -> Retraction:
    """Return the removal of a document."""
    return Retraction(
        event_id=f"removal of {name}",
        collection=collection,
        scheme=SCHEME,
        document_id=name,
        removed_at=from_milliseconds(NOW_MS),
    )


def alert(
    family: str,
    state: Literal["firing", "resolved"] = "firing",
    *,
    name: AlertName = "duplicate_storm",
    since_ms: int = NOW_MS,
    collection: str = "news",
    founder: str = "first",
) -> Alert:
    """Return an alert about a family, or about dead letters."""
    return Alert(
        event_id=alert_id(collection, name, family, state, since_ms, SCHEME),
        collection=collection,
        scheme=SCHEME,
        name=name,
        state=state,
        subject=family,
        value=30.0,
        limit=20.0,
        window_seconds=600,
        since=from_milliseconds(since_ms),
        until=None if state == "firing" else from_milliseconds(since_ms + 1),
        events=(),
        size=31,
        founder=founder,
    )


def dead_letter(
    value: bytes, offset: int = 0, *, reason: Reason = Reason.NOT_JSON, written_ms: int = NOW_MS
) -> StoredDeadLetter:
    """Return a dead letter about a record with this value, as it is read from its topic."""
    refused = ConsumerRecord("nearstream.documents.v1", 0, offset, NOW_MS, HOSTILE_KEY, value, [("x", None)])
    sent = outgoing(DeadLetter(refused, "decode", reason, "expected JSON"), "dead", "nearstream/1 sign", "full", 10**6)
    stored = read_dead_letter(ConsumerRecord("dead", 0, offset, written_ms, sent.key, sent.value, sent.headers))
    assert stored is not None
    return stored


def new_feed() -> Feed:
    """Return a feed whose time is `NOW_MS`."""
    feed = Feed(lambda: NOW_MS)
    feed.why = ""
    return feed


async def no_states(_: str) -> list[Signature]:
    """Return that nothing is stored."""
    return []


@dataclass(frozen=True)
class Server:
    """A server of the live page alone."""

    address: str  # its `host:port`
    session: aiohttp.ClientSession  # a client without a token

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, object]]:
        """Return the status and the JSON of a path."""
        async with self.session.get(f"http://{self.address}{path}", headers=headers) as response:
            return response.status, await response.json()


class Sent:
    """Takes records, and keeps them."""

    def __init__(self) -> None:
        self.records: list[ProducerRecord] = []

    async def send(self, record: ProducerRecord, _seconds: float) -> None:
        """Take a record."""
        self.records.append(record)


class _NothingStored:
    """An index without documents."""

    async def current_number(self, _document_key: str) -> int:
        """Return that the document is not known."""
        return 0


@asynccontextmanager
async def live_server(
    feed: Feed,
    tokens: str = "",
    address: str = "127.0.0.1:0",
    states: States = no_states,
    replay: Replay | None = None,
    outbox: Sends | None = None,
) -> AsyncIterator[Server]:
    """Serve the live page of a feed for the block."""
    app = application(Gate(tokens))
    add_live_routes(app, feed, Deployment.of(load({})), states, cast(Index, _NothingStored()))
    add_operator_routes(app, feed, outbox or Sent(), "silences", replay)
    timeout = aiohttp.ClientTimeout(60)
    async with listening(app, address) as listened, aiohttp.ClientSession(timeout=timeout) as session:
        yield Server(listened, session)
