"""The live page: its files, the stream of events, and what they add up to."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from importlib.resources import files
from math import ceil
from typing import TypeVar

from aiohttp import web
from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.live.state import LiveState
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http import openapi_live
from nearstream.workers.http.access import Access, ForbiddenError
from nearstream.workers.http.live.details import Stored, document_of, pair_of
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.ring import Entry, Ring
from nearstream.workers.http.refusals import forbidden, not_looked_up
from nearstream.workers.http.requests import (
    ACCESS,
    SECURITY_HEADERS,
    any_name,
    ask_again,
    json_response,
    refusal,
)
from nearstream.workers.monitoring.metrics import SSE_DROPPED

log = logging.getLogger(__name__)

READERS = 64  # of the stream of events, at a time
RECENT = 1_000  # earlier events that a new reader may ask for
_COMMENT_SECONDS = 15.0
_LOOK_SECONDS = 1.0  # after which the place of a reader that has left is free
_BATCH = 500
_PAUSE_SECONDS = 0.04  # in which events of a busy stream gather to one write
_STUCK_SECONDS = 60.0  # after which the connection of a reader that takes nothing is cut
_LOOK_UP_SECONDS = 2.0
_FEED = web.AppKey("feed", Feed)
_STORED = web.AppKey("stored", Stored)
_Found = TypeVar("_Found")
_READERS = web.AppKey("readers", set[asyncio.Task[object]])
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def add_live_routes(app: web.Application, feed: Feed, stored: Stored) -> None:
    """Add the paths of the live page to an application."""
    app[_FEED], app[_STORED], app[_READERS] = feed, stored, set()
    app.on_shutdown.append(_end_streams)
    page = page_files()

    async def file(request: web.Request) -> web.Response:
        name = request.match_info.get("file", "index.html")
        if name not in page:
            raise web.HTTPNotFound
        headers = {**SECURITY_HEADERS, "Content-Type": _TYPES[name.rpartition(".")[2]]}
        return web.Response(body=page[name], headers=headers)

    for path in (openapi_live.PAGE_PATH, openapi_live.PAGE_FILE_PATH):
        app.router.add_get(any_name(path), file)
    for path, handler in (
        (openapi_live.EVENTS_PATH, _events),
        (openapi_live.LIVE_PATH, _state),
        (openapi_live.FAMILY_PATH, _family),
        (openapi_live.PAIR_PATH, _pair),
        (openapi_live.STATES_PATH, _document),
    ):
        app.router.add_get(any_name(path), handler)


def page_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    folder = files("nearstream.workers.http.live") / "page"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


def collections_of(access: Access, asked: str) -> frozenset[str]:
    """Return the collections that a reader gets, empty for all.

    Args:
        access: What the request may do.
        asked: The collection that it names. Empty: all that it may name.

    Raises:
        ForbiddenError: It may not name this collection.
    """
    if not asked:
        return access.collections
    access.require(asked)
    return frozenset((asked,))


async def _state(request: web.Request) -> web.Response:
    access = request[ACCESS]
    asked = request.query.get("collection", "") or min(access.collections, default="")
    try:
        collections_of(access, asked)
    except ForbiddenError:
        return forbidden()
    return json_response(_visible(request.app[_FEED].state(asked), access))


def _visible(state: LiveState, access: Access) -> LiveState:
    """Return a state without what belongs to no collection of the token."""
    if not access.collections:
        return state
    own = tuple(sorted(access.collections))
    alerts = tuple(alert for alert in state.alerts if alert.collection in access.collections)
    return replace_fields(state, collections=own, alerts=alerts, dead_letters_1h=None, workers=())


async def _family(request: web.Request) -> web.Response:
    """Answer from the verdicts in memory, or else from the index."""
    feed, own_id = request.app[_FEED], request.match_info["family"]
    detail = feed.family(own_id, request[ACCESS].collections)
    asked = request.query.get("collection", DEFAULT_COLLECTION), request.query.get("id", "")
    member = asked if asked[1] else feed.founder(own_id)
    if detail is None and member is not None:
        found = await _from_index(request, member[0], [request.app[_STORED].family(*member, feed.now_ms())])
        if isinstance(found, web.Response):
            return found
        detail = found[0]
    if detail is None:
        return refusal(404, "unknown_family", "expected a family that a document has joined of late, or id=ID of one")
    return json_response(detail)


async def _pair(request: web.Request) -> web.Response:
    collection = request.query.get("collection", DEFAULT_COLLECTION)
    names = [request.query.get(side, "") for side in ("newer", "older")]
    found = await _looked_up(request, collection, names)
    if isinstance(found, web.Response):
        return found
    one, other = found
    if not one or not other:
        return refusal(404, "unknown_document", "expected two documents that are stored")
    return json_response(pair_of(one[0], other[0], request.app[_STORED].deployment))


async def _document(request: web.Request) -> web.Response:
    collection, name = request.query.get("collection", DEFAULT_COLLECTION), request.query.get("id", "")
    found = await _looked_up(request, collection, [name])
    if isinstance(found, web.Response):
        return found
    verdict = request.app[_FEED].verdict(collection, name)
    if not found[0] and verdict is None:
        return refusal(404, "unknown_document", "expected a document that is stored, or whose verdict is in memory")
    return json_response(document_of(collection, name, verdict, found[0], request.app[_STORED].deployment))


async def _looked_up(
    request: web.Request, collection: str, names: Sequence[str]
) -> list[Sequence[Signature]] | web.Response:
    """Return the states of documents, or a refusal."""
    states = request.app[_STORED].states
    return await _from_index(request, collection, [states(document_key(collection, name)) for name in names])


async def _from_index(
    request: web.Request, collection: str, questions: Sequence[Coroutine[None, None, _Found]]
) -> list[_Found] | web.Response:
    """Return what the index answers about a collection, or a refusal."""
    try:
        request[ACCESS].require(collection)
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            return [await question for question in questions]
    except ForbiddenError:
        return forbidden()
    except (IndexUnavailableError, IndexLostError, SettingsError, TimeoutError) as error:
        log.info("a document was not looked up: %s", error)
        return not_looked_up()
    finally:
        for question in questions:
            question.close()  # those that were not asked


async def _events(request: web.Request) -> web.StreamResponse:
    """Send events as they arrive, until the reader leaves or the server stops."""
    feed, readers = request.app[_FEED], request.app[_READERS]
    try:
        wanted = collections_of(request[ACCESS], request.query.get("collection", ""))
    except ForbiddenError:
        return forbidden()
    recent = request.query.get("recent", "0")
    if not recent.isascii() or not recent.isdigit() or len(recent) > len(str(RECENT)) or int(recent) > RECENT:
        return refusal(400, "bad_request", f"expected recent=0 to recent={RECENT}")
    if len(readers) >= READERS:
        return ask_again(429, "busy", f"expected at most {READERS} readers of events at a time")
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
            if not await _arrived(request, ring, number):
                await _write(response, b": waiting\n\n")
                continue
            missed, entries = ring.after(number, _BATCH)
            if missed:
                SSE_DROPPED.inc(missed)
                await _write(response, b'event: missed\ndata: {"events":%d}\n\n' % missed)
            sent = b"".join(_form(entry) for entry in entries if not wanted or entry.collection in wanted)
            if sent:
                await _write(response, sent)
            number = entries[-1].number if entries else ring.last
            await asyncio.sleep(_PAUSE_SECONDS)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()  # a reader that takes nothing would delay the end of the connection
    return response


async def _arrived(request: web.Request, ring: Ring, number: int) -> bool:
    """Wait for an event after a number, and return whether there is one.

    Raises:
        ConnectionError: The reader has left.
    """
    for _ in range(ceil(_COMMENT_SECONDS / _LOOK_SECONDS)):
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError
        if await ring.wait(number, min(_LOOK_SECONDS, _COMMENT_SECONDS)):
            return True
    return False


async def _write(response: web.StreamResponse, data: bytes) -> None:
    """Write, and wait until the reader has taken most of it.

    Raises:
        TimeoutError: It has taken nothing for long.
        ConnectionError: It has left.
    """
    async with asyncio.timeout(_STUCK_SECONDS):
        await response.write(data)


def _form(entry: Entry) -> bytes:
    return b"id: " + entry.event_id.encode() + b"\ndata: " + entry.data + b"\n\n"


async def _end_streams(app: web.Application) -> None:
    """Let all readers end, because the server waits for them."""
    app[_FEED].ring.close()
    waiting = app[_READERS].copy()
    if waiting:
        _, stuck = await asyncio.wait(waiting, timeout=1.0)
        for task in stuck:
            task.cancel()
