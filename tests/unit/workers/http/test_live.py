"""The stream of events resumes, is bounded, and shows a token only its collections."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from msgspec import structs
from yarl import URL

from nearstream.schemas.alerts.alert import Silence, silence_key
from nearstream.schemas.documents.document import EPOCH, from_milliseconds
from nearstream.schemas.live.state import WorkerState
from nearstream.workers.http import live_routes
from nearstream.workers.http.live.feed import Feed, Ring
from tests.support.live import NOW_MS, Server, alert, live_server, new_feed, verdict

MAIL, ALL_TOKEN = "a-token-for-mail-only", "a-token-for-all-of-them"
TOKENS = f"{MAIL} mail\n{ALL_TOKEN} *"


@asynccontextmanager
async def _stream(server: Server, query: str = "", **headers: str) -> AsyncIterator[aiohttp.StreamReader]:
    url = f"http://{server.address}/v1/events?{query}"
    async with server.session.get(url, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert await response.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
        yield response.content


async def _messages(content: aiohttp.StreamReader, count: int) -> list[dict[str, str]]:
    found = []
    async with asyncio.timeout(60):
        while len(found) < count:
            lines = (await content.readuntil(b"\n\n")).decode().splitlines()
            if lines[0][:1] != ":":
                found.append(dict(line.split(": ", 1) for line in lines if line))
    return found


async def test_a_reader_gets_what_comes_and_as_many_earlier_events_as_it_asks_for_and_misses_none() -> None:
    feed = new_feed()
    events = [verdict(f"d{number}") for number in range(40)]
    for event in events[:19]:
        feed.add(event, NOW_MS)
    async with live_server(feed) as server:
        async with _stream(server, "recent=19") as content:
            first = await _messages(content, 19)
            assert json.loads(first[18]["data"])["id"] == "d18"
            feed.add(events[19], NOW_MS)
            (message,) = await _messages(content, 1)
            assert message["id"] == events[19].event_id
        for event in events[20:]:
            feed.add(event, NOW_MS)
        async with _stream(server, **{"Last-Event-ID": first[6]["id"]}) as content:
            again = [each["id"] for each in await _messages(content, 33)]
        assert again == [event.event_id for event in events[7:]]
        for wrong in ("1001", "-1", "many", "99999999999999999999"):
            assert (await server.get(f"/v1/events?recent={wrong}"))[0] == 400


async def test_a_reader_that_was_away_for_too_long_learns_how_much_it_missed() -> None:
    feed = new_feed()
    feed.ring = Ring(events=10)
    for number in range(25):
        feed.add(verdict(f"d{number}"), NOW_MS)
    async with live_server(feed) as server, _stream(server, **{"Last-Event-ID": "gone"}) as content:
        missed, first = await _messages(content, 2)
    assert (missed["event"], missed["data"]) == ("missed", '{"events":15}')
    assert json.loads(first["data"])["id"] == "d15"


async def test_f22_a_reader_that_never_reads_loses_only_its_own_events() -> None:
    feed = new_feed()
    feed.ring = Ring(events=500)
    async with live_server(feed) as server, _stream(server) as stuck, _stream(server) as content:
        del stuck  # nobody reads it: what the sockets do not take stays in the ring
        seen = 0
        for number in range(5_000):
            feed.add(verdict(f"d{number}", reason="x" * 100), NOW_MS)
            if number % 250 == 249:
                seen += len(await _messages(content, 250))
        assert seen == 5_000
        assert feed.ring.last == 5_000
        assert len(feed.ring.after(0, 9_999)[1]) == 500


async def test_a_silent_stream_sends_comments_and_ends_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_routes, "_COMMENT_SECONDS", 0.01)
    async with aiohttp.ClientSession() as session, asyncio.timeout(60):
        async with live_server(new_feed()) as server:
            response = await session.get(f"http://{server.address}/v1/events")
            assert await response.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
            assert await response.content.readuntil(b"\n\n") == b": waiting\n\n"
        await response.content.read()


async def test_the_number_of_readers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_routes, "READERS", 2)
    async with live_server(new_feed()) as server, _stream(server), _stream(server):
        assert (await server.get("/v1/events"))[0] == 429


@pytest.fixture
def two_collections() -> Feed:
    feed = new_feed()
    feed.add(verdict("page", "a family of news", 2), NOW_MS)
    feed.add(verdict("letter", "a family of mail", 2, collection="mail"), NOW_MS)
    return feed


async def test_a_token_shows_only_its_collections(two_collections: Feed) -> None:
    authorized = {"Authorization": f"Bearer {MAIL}"}
    gone = WorkerState(worker="news:7", group="g-news", role="all", state="gone", since=EPOCH, why="Kafka at news:9092")
    halted = structs.replace(gone, role="decide", state="halted", why="4 dead letters in a row")
    two_collections.workers = [gone, halted]
    two_collections.unread = {"g-news": ("no worker of group g-news runs",)}
    two_collections.away = {"Redis": "Error 111 connecting to news:6379"}
    two_collections.alarms.add(alert("news", name="dead_letters", collection="*"))
    seen = Silence(collection="*", name="dead_letters", subject="news", since=from_milliseconds(NOW_MS), until=None)
    two_collections.alarms.said.say(silence_key("*", "dead_letters", "news"), seen)
    async with live_server(two_collections, TOKENS) as server:
        status, state = await server.get("/v1/live", **authorized)
        told = ["worker all is gone without a stop", "worker decide is halted: 4 dead letters in a row"]
        assert state["troubles"] == [*told, "records wait that no worker reads"]
        assert (state["connected"], state["why"]) == (False, "the server gets no events now")
        assert (status, state["collection"], state["collections"]) == (200, "mail", ["mail"])
        assert "news" not in json.dumps(state)
        assert (await server.get("/v1/live?collection=news", **authorized))[0] == 403
        assert (await server.get("/v1/events?collection=news", **authorized))[0] == 403
        assert (await server.get("/v1/families/a%20family%20of%20news", **authorized))[0] == 404
        assert (await server.get("/v1/families/a%20family%20of%20mail", **authorized))[0] == 200
        async with _stream(server, "recent=10", **authorized) as content:
            two_collections.add(verdict("second", collection="mail"), NOW_MS)
            assert [json.loads(each["data"])["id"] for each in await _messages(content, 2)] == ["letter", "second"]
        status, state = await server.get("/v1/live", Authorization=f"Bearer {ALL_TOKEN}")
        assert (state["collection"], state["collections"]) == ("", ["mail", "news"])


async def test_data_need_the_token_and_the_page_does_not(two_collections: Feed) -> None:
    async with live_server(two_collections, TOKENS) as server:
        for path in ("/v1/live", "/v1/events", "/v1/families/a%20family%20of%20mail"):
            assert (await server.get(path))[0] == 401
        for name in ("", *(f"page/{file}" for file in live_routes.page_files())):
            async with server.session.get(f"http://{server.address}/{name}") as response:
                assert response.status == 200
                assert "script-src 'self'" in response.headers["Content-Security-Policy"]
                assert "unsafe" not in response.headers["Content-Security-Policy"]
                assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert (await server.get("/page/server.py"))[0] == 404
        async with server.session.get(URL(f"http://{server.address}/page/..%2fring.py", encoded=True)) as response:
            assert response.status == 404


def test_s04_the_page_loads_nothing_from_elsewhere_and_writes_no_markup() -> None:
    for name, content in live_routes.page_files().items():
        text = content.decode()
        assert name.endswith(("js", "css", "svg")) or "//" not in text.replace("http://www.w3.org/", "")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in text, f"{name}: {forbidden}"
        assert "cdn" not in text.lower()
