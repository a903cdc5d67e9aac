"""Answer crawlers: need a page be fetched, and, as a CDX server does, has this content of a URL been stored before."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import SKIPS_MAX, SkipAnswer, SkipAnswers, SkipReason, SkipRequest
from nearstream.schemas.documents.document import DEFAULT_COLLECTION, Document, from_milliseconds
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document, decode_json
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import PageState
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.requests import (
    ACCESS,
    SECURITY_HEADERS,
    RefusedError,
    is_whole,
    json_response,
    named,
    read_body,
    require,
)
from nearstream.workers.monitoring.metrics import SKIPS
from nearstream.workers.redis.kept.decisions import DecisionStore

# By name the letter of each field in the header of a CDX file.
FIELDS = {
    "urlkey": "N",
    "timestamp": "b",
    "original": "a",
    "mimetype": "m",
    "statuscode": "s",
    "digest": "k",
    "length": "S",
    "recordid": "u",
}
_UNKNOWN = "-"
_DIGEST_FILTER = "digest:"
_CDX_PARAMETERS = frozenset({"fl", "filter", "header", "limit", "stored"})
_BODY_BYTES = 1024 * 1024  # of a question about many pages
MANY_AT_ONCE = 16  # questions about many pages that are in work or wait
_SECONDS_EACH = 0.001  # for an answer, for each page beyond the first
_HOST_CHARACTERS = 253
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Pages:
    """Answers from the states of pages."""

    store: DecisionStore  # the states
    seconds: float  # how long an answer may take
    # Turns of questions about many pages, and places of those that wait for one.
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MANY_AT_ONCE))

    async def skip(self, url: str, collection: str) -> SkipAnswer:
        """Return whether a page need not be fetched now.

        In doubt it is to be fetched: without a decision, and if Redis does not answer in time. Tracking parameters and
        the like in its URL are ignored.
        """
        lineage = name_of_page(url)
        state, why = await self._answer(self.store.read_state(collection, lineage), self.seconds)
        return _skip_answer(lineage, state, why)

    async def skips(self, urls: Sequence[str], collection: str) -> SkipAnswers:
        """Return for each of many pages whether it need not be fetched now."""
        async with self._turn():
            lineages = await asyncio.to_thread(lambda: [name_of_page(url) for url in urls])
            seconds = self.seconds + _SECONDS_EACH * len(urls)
            states, why = await self._answer(self.store.read_states(collection, lineages), seconds)
            pairs = zip(lineages, states or [None] * len(urls), strict=True)
            answers = tuple(_skip_answer(lineage, state, why) for lineage, state in pairs)
        return SkipAnswers(pages=answers, degraded=bool(why), reason=why)

    async def due(self, host: str, collection: str, most: int) -> SkipAnswers:
        """Return pages of a host that should be fetched now."""
        async with self._turn():
            seconds = self.seconds + _SECONDS_EACH * most
            states, why = await self._answer(self.store.due(collection, host, most), seconds)
            answers = tuple(_skip_answer(state.decision.lineage, state, "") for state in states or ())
        return SkipAnswers(pages=answers, degraded=bool(why), reason=why)

    async def cdx(self, url: str, collection: str, asked: Mapping[str, str]) -> tuple[str, bool]:
        """Return the line of the content that a URL had at its last fetch, or no line.

        In doubt the page has no line, so that a crawler stores the page. A page without a known WARC record has a line
        only if `stored` is `any`. The second value says whether there is no line because Redis did not answer in time.

        Raises:
            RefusedError: A name in `fl` is unknown, or `stored` is another word.
        """
        names = asked["fl"].split(",") if asked.get("fl") else list(FIELDS)
        if not FIELDS.keys() >= set(names):
            raise RefusedError(400, "bad_request", f"expected fl of {', '.join(FIELDS)}")
        if asked.get("stored", "any") != "any":
            raise RefusedError(400, "bad_request", "expected stored=any, or no such parameter")
        header = " CDX " + " ".join(FIELDS[name] for name in names) + "\n" if asked.get("header") == "1" else ""
        state, why = await self._answer(self.store.read_state(collection, name_of_page(url)), self.seconds)
        if state is None:
            return header, bool(why)
        fields = _fields(state, url)
        if fields.get("recordid") == _UNKNOWN and "stored" not in asked:
            fields = {}
        wanted = asked.get("filter", "").removeprefix("=")
        is_other = wanted.startswith(_DIGEST_FILTER) and wanted.removeprefix(_DIGEST_FILTER) != fields.get("digest")
        line = " ".join(fields[name] for name in names) + "\n" if fields and not is_other else ""
        return header + line, False

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a question about many pages, unless too many wait."""
        if self.places.locked():
            raise RefusedError(429, "busy", f"expected at most {MANY_AT_ONCE} such requests at a time", again=True)
        async with self.places, self.turns:
            yield

    async def _answer(self, asked: Awaitable[_Found], seconds: float) -> tuple[_Found | None, SkipReason]:
        """Return what Redis answers, or None and why it does not."""
        try:
            async with asyncio.timeout(seconds):
                return await asked, ""
        except TimeoutError:
            return None, "deadline"
        except IndexUnavailableError:
            return None, "index_unavailable"
        except SettingsError:
            return None, "index_refused"


def add_page_routes(app: web.Application, pages: Pages) -> None:
    """Let questions of crawlers be answered."""
    handlers = {"skip": _skip, "skip_many": _skip_many, "due": _due, "cdx": _cdx}
    add_handlers(app, {name: partial(handler, pages) for name, handler in handlers.items()})


async def _skip(pages: Pages, request: web.Request) -> web.Response:
    asked = _page_asked(request, frozenset())
    _require_page(asked.url or "", "url")
    answer = await pages.skip(asked.url or "", asked.collection)
    _count(answer)
    return json_response(answer)


async def _skip_many(pages: Pages, request: web.Request) -> web.Response:
    asked = decode_json(SkipRequest, await read_body(request, _BODY_BYTES))
    require(request[ACCESS], asked.collection)
    for place, url in enumerate(asked.urls):
        _require_page(url, f"$.urls[{place}]")
    answer = await pages.skips(asked.urls, asked.collection)
    for page in answer.pages:
        _count(page)
    return json_response(answer)


def _require_page(url: str, place: str) -> None:
    """Refuse what names no page, such as a path without its host."""
    if not host_of(url) or "://" not in url:
        detail = f"expected the whole address of a page, such as https://a.example/flood - at `{place}`"
        raise InvalidMessageError(Reason.INVALID_MESSAGE, detail)


async def _due(pages: Pages, request: web.Request) -> web.Response:
    given = request.query
    host, limit = host_of("//" + given.get("host", "")), given.get("limit", "100")
    is_host = host and len(host) <= _HOST_CHARACTERS and not set("/?#@\\") & set(given["host"])
    if (
        given.keys() - {"host", "limit", "collection"}
        or not is_host
        or not is_whole(limit, SKIPS_MAX)
        or not int(limit)
    ):
        raise RefusedError(400, "bad_request", f"expected host=, limit=1 to {SKIPS_MAX}, and perhaps collection=")
    collection = named(request, collection=given.get("collection", DEFAULT_COLLECTION))
    answer = await pages.due(host, collection, int(limit))
    SKIPS.labels("degraded" if answer.degraded else "due").inc()
    return json_response(answer)


def _count(answer: SkipAnswer) -> None:
    SKIPS.labels("degraded" if answer.degraded else "skip" if answer.skip else "fetch").inc()


async def _cdx(pages: Pages, request: web.Request) -> web.Response:
    asked = _page_asked(request, _CDX_PARAMETERS)
    text, is_degraded = await pages.cdx(asked.url or "", asked.collection, request.query)
    SKIPS.labels("degraded" if is_degraded else "cdx").inc()
    return web.Response(text=text, headers=SECURITY_HEADERS)


def _page_asked(request: web.Request, others: frozenset[str]) -> Document:
    given = request.query
    if "url" not in given or given.keys() - {"url", "collection"} - others:
        raise RefusedError(400, "bad_request", "expected url=, and perhaps collection=, each percent-encoded")
    named = {name: given[name] for name in ("url", "collection") if name in given}
    asked = decode_document(msgspec.json.encode(named))
    require(request[ACCESS], asked.collection)
    return asked


def _skip_answer(lineage: str, state: PageState | None, why: SkipReason) -> SkipAnswer:
    if state is None:
        return SkipAnswer(skip=False, lineage=lineage, degraded=bool(why), reason=why)
    decision = state.decision
    return SkipAnswer(
        skip=may_skip(decision, time.time_ns() // 1_000_000),
        lineage=decision.lineage,
        action=decision.action,
        because=decision.because,
        until=decision.until,
        canonical=decision.canonical.url or decision.canonical.id,
        url=state.own.address,
        etag=state.etag or None,
        last_modified=state.modified or None,
    )


def _fields(state: PageState, url: str) -> dict[str, str]:
    """Return the fields of the line, none without the digest of what the URL itself had sent."""
    digest, _, record = state.payload.partition(" ")
    if not digest or state.own.address != url:
        return {}
    known = {
        "urlkey": _sort_key(url),
        "timestamp": f"{from_milliseconds(state.payload_ms):%Y%m%d%H%M%S}",
        "original": _in_one_word(url),
        "statuscode": "200",
        "digest": digest,
        "recordid": record or _UNKNOWN,
    }
    return {name: known.get(name, _UNKNOWN) for name in FIELDS}


def _sort_key(url: str) -> str:
    """Return a URL with its host reversed, as CDX files are sorted."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as http://[
        return _UNKNOWN
    path = parts.path + ("?" + parts.query if parts.query else "")
    return _in_one_word(",".join(reversed(host_of(url).split("."))) + ")" + path.lower())


def _in_one_word(text: str) -> str:
    """Return a text with what would end a word or a line as it is in URLs, such as %20."""
    return "".join(each if each.isprintable() and each != " " else quote(each) for each in text)
