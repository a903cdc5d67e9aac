"""The live page: its files, the stream of events, and what they add up to."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key
from nearstream.schemas.live.state import LiveState
from nearstream.workers.config.tokens import ApiToken
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.live.details import States, document_of, pair_of
from nearstream.workers.http.live.families import family_in_index
from nearstream.workers.http.live.feed import Feed, Ring
from nearstream.workers.http.requests import (
    ACCESS,
    SECURITY_HEADERS,
    RefusedError,
    json_response,
    looking_up,
    require,
)
from nearstream.workers.monitoring.metrics import SSE_DROPPED
from nearstream.workers.operations.checks import public_sentence, standing_still
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.reading.members import Index

log = logging.getLogger(__name__)

READERS = 64  # of the stream of events, at a time
RECENT = 1_000  # earlier events that a new reader may ask for
_COMMENT_SECONDS = 15.0  # after which the place of a reader that has left is free too
_BATCH = 500
_PAUSE_SECONDS = 0.04  # in which events of a busy stream gather to one write
_STUCK_SECONDS = 60.0  # after which the connection of a reader that takes nothing is cut
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def add_live_routes(app: web.Application, feed: Feed, deployment: Deployment, states: States, index: Index) -> None:
    """Let the live page be served, with the events and the documents that it shows.

    `states` returns the states of a document key, the last one first.
    """
    readers: set[asyncio.Task[object]] = set()
    app.on_shutdown.append(partial(_end_streams, feed, readers))
    file = partial(_file, page_files())
    handlers: dict[str, Handler] = {
        "page": file,
        "page_file": file,
        "events": partial(_events, feed, readers),
        "live": partial(_state, feed),
        "family": partial(_family, feed, index),
        "pair": partial(_pair, deployment, states),
        "document": partial(_document, feed, deployment, states),
    }
    add_handlers(app, handlers)


async def _file(page: Mapping[str, bytes], request: web.Request) -> web.Response:
    name = request.match_info.get("file", "index.html")
    if name not in page:
        raise web.HTTPNotFound
    headers = {**SECURITY_HEADERS, "Content-Type": _TYPES[name.rpartition(".")[2]]}
    return web.Response(body=page[name], headers=headers)


def page_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    folder = files("nearstream.workers.http.live") / "page"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


def collections_of(access: ApiToken, asked: str) -> frozenset[str]:
    """Return the collections that a reader gets: the one that it names, else all that it may name. Empty: all."""
    if not asked:
        return access.collections
    require(access, asked)
    return frozenset((asked,))


async def _state(feed: Feed, request: web.Request) -> web.Response:
    access = request[ACCESS]
    asked = request.query.get("collection", "") or min(access.collections, default="")
    collections_of(access, asked)
    state = feed.state(asked)
    return json_response(_visible(state, feed, access.collections) if access.collections else state)


def _visible(state: LiveState, feed: Feed, collections: frozenset[str]) -> LiveState:
    """Hide hosts, groups, topics and other collections from a token for some collections."""
    unread = ("records wait that no worker reads",) if any(feed.unread.values()) else ()
    return replace_fields(
        state,
        collections=tuple(sorted(collections)),
        alerts=tuple(each for each in state.alerts if each.collection in collections),
        silences=tuple(each for each in state.silences if each.collection in collections),
        dead_letters_1h=None,
        why="" if state.connected else "the server gets no events now",
        troubles=(*dict.fromkeys(map(public_sentence, standing_still(feed.workers))), *unread),
        workers=(),
    )


async def _family(feed: Feed, index: Index, request: web.Request) -> web.Response:
    """Answer from the verdicts in memory, or else from the index."""
    own_id = request.match_info["family"]
    detail = feed.growth.detail(own_id, feed.now_ms(), request[ACCESS].collections)
    asked = request.query.get("collection", DEFAULT_COLLECTION), request.query.get("id", "")
    member = asked if asked[1] else feed.alarms.founder(own_id)
    if detail is None and member is not None:
        async with looking_up(request, member[0]):
            detail = await family_in_index(index, *member, feed.now_ms())
    if detail is None:
        expected = "expected a family that a document has joined of late, or id=ID of one"
        raise RefusedError(404, "unknown_family", expected)
    return json_response(detail)


async def _pair(deployment: Deployment, states: States, request: web.Request) -> web.Response:
    collection = request.query.get("collection", DEFAULT_COLLECTION)
    names = [request.query.get(side, "") for side in ("newer", "older")]
    async with looking_up(request, collection):
        one, other = [await states(document_key(collection, name)) for name in names]
    if not one or not other:
        raise RefusedError(404, "unknown_document", "expected two documents that are stored")
    return json_response(pair_of(one[0], other[0], deployment))


async def _document(feed: Feed, deployment: Deployment, states: States, request: web.Request) -> web.Response:
    collection, name = request.query.get("collection", DEFAULT_COLLECTION), request.query.get("id", "")
    async with looking_up(request, collection):
        known = await states(document_key(collection, name))
    verdict = feed.verdict(collection, name)
    if not known and verdict is None:
        expected = "expected a document that is stored, or whose verdict is in memory"
        raise RefusedError(404, "unknown_document", expected)
    return json_response(document_of(collection, name, verdict, known, deployment))


async def _events(feed: Feed, readers: set[asyncio.Task[object]], request: web.Request) -> web.StreamResponse:
    wanted = collections_of(request[ACCESS], request.query.get("collection", ""))
    recent = request.query.get("recent", "0")
    if not recent.isascii() or not recent.isdigit() or len(recent) > len(str(RECENT)) or int(recent) > RECENT:
        raise RefusedError(400, "bad_request", f"expected recent=0 to recent={RECENT}")
    if len(readers) >= READERS:
        raise RefusedError(429, "busy", f"expected at most {READERS} readers of events at a time", again=True)
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a request is handled in a task")
    readers.add(task)
    try:
        return await _stream(request, feed.ring, wanted, _begin(feed.ring, request, int(recent)))
    finally:
        readers.discard(task)


def _begin(ring: Ring, request: web.Request, recent: int) -> int:
    """Return the number of the event after which a reader begins.

    A reader that comes again with an event that has left the ring gets all that is there.
    """
    last_id = request.headers.get("Last-Event-ID")
    if last_id is None:
        return max(ring.last - recent, 0)
    return ring.number_of(last_id) or 0


async def _stream(request: web.Request, ring: Ring, wanted: frozenset[str], number: int) -> web.StreamResponse:
    headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    try:
        await _write(response, b"retry: 1000\n\n")
        while not ring.is_closed:
            if not await ring.wait(number, _COMMENT_SECONDS):
                await _write(response, b": waiting\n\n")
                continue
            missed, entries = ring.after(number, _BATCH)
            if missed:
                SSE_DROPPED.inc(missed)
                await _write(response, b'event: missed\ndata: {"events":%d}\n\n' % missed)
            sent = b"".join(
                b"id: %b\ndata: %b\n\n" % (entry.event_id.encode(), entry.data)
                for entry in entries
                if not wanted or entry.collection in wanted
            )
            if sent:
                await _write(response, sent)
            number = entries[-1].number if entries else ring.last
            await asyncio.sleep(_PAUSE_SECONDS)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()  # a reader that takes nothing would delay the end of the connection
    return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    """Write, and wait until the reader has taken most of it."""
    async with asyncio.timeout(_STUCK_SECONDS):
        await response.write(data)


async def _end_streams(feed: Feed, readers: set[asyncio.Task[object]], _: web.Application) -> None:
    """Let all readers end, because the server waits for them."""
    feed.ring.close()
    waiting = readers.copy()
    if waiting:
        stuck = (await asyncio.wait(waiting, timeout=1.0))[1]
        for task in stuck:
            task.cancel()
