"""Serve the live page over made-up verdicts at a steady rate, in a process of its own."""

import asyncio
import sys
import time
from datetime import UTC, datetime

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef, Interval
from nearstream.schemas.verdicts.verdict import DocumentVerdict, FamilyRef
from nearstream.workers.config.settings import load
from nearstream.workers.http.application import application, listening
from nearstream.workers.http.live.details import Stored
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.pipeline.deployment import Deployment

_FAMILIES = 200
_TURN_SECONDS = 0.01


def verdict(number: int) -> DocumentVerdict:
    """Return the verdict on a document whose id begins with the time in milliseconds.

    Two of three are copies, of families of which one grows faster than the others.
    """
    now_ms = time.time_ns() // 1_000_000
    family = number * number % _FAMILIES if number % 3 else _FAMILIES + number
    is_copy, seen = family < _FAMILIES, datetime.fromtimestamp(now_ms / 1000 - 0.02, UTC)
    version, name = "31f8d0c4e6b2975a", f"https://agency.example/{family}"
    older = DocumentRef(id=name, version=version, observed_at=seen, characters=900)
    return DocumentVerdict(
        id=f"{now_ms}-{number}",
        version=version,
        observed_at=seen,
        characters=1000,
        url=f"https://site-{number % 40}.example/{number}",
        source="crawler",
        labels={"sender": f"relay-{number % 7}.example"},
        event_id=f"{number:032x}",
        collection="web",
        scheme="standard-1-u14-k0d3e89c8-5f1c2ab9",
        verdict="near_duplicate" if is_copy else "unique",
        of=older if is_copy else None,
        family=FamilyRef(
            id=f"{family:032x}",
            ordinal=2 + number if is_copy else 1,
            first_seen=from_milliseconds(now_ms),
            founder=older,
        ),
        events=int(is_copy),
        resemblance=Interval(0.93, 0.9, 0.96),
        degraded=(),
    )


async def run(rate: float, total: int) -> None:
    """Print the address, wait for a line on standard input, send all verdicts, then wait to be ended."""
    feed = Feed(lambda: time.time_ns() // 1_000_000)
    feed.why, feed.is_alerting = "", True

    async def nothing(_: str) -> list[object]:
        return []

    app = application("")
    add_live_routes(app, feed, Stored(Deployment.of(load({})), nothing))  # type: ignore[arg-type] # nothing is stored
    async with listening(app, "127.0.0.1:0") as address:
        print(address, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began, sent = time.monotonic(), 0
        while sent < total:
            due = min(int((time.monotonic() - began) * rate), total)
            for number in range(sent, due):
                feed.add(verdict(number), time.time_ns() // 1_000_000)
            sent = due
            await asyncio.sleep(_TURN_SECONDS)
        print("sent", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(run(float(sys.argv[1]), int(sys.argv[2])))
