"""Answer crawlers: need a page be fetched, and, as a CDX server does, has this content of a URL been stored before."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

import msgspec
from aiohttp import web

from nearstream.schemas.checks.check import SkipAnswer, SkipReason
from nearstream.schemas.documents.document import Document
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_document
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import PageState
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.application import add_handlers
from nearstream.workers.http.requests import ACCESS, SECURITY_HEADERS, RefusedError, json_response, require
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


@dataclass(frozen=True)
class Pages:
    """Answers from the states of pages in Redis."""

    store: DecisionStore  # the states
    seconds: float  # how long an answer may take

    async def skip(self, url: str, collection: str) -> SkipAnswer:
        """Return whether a page need not be fetched now.

        In doubt it is to be fetched: without a decision, and if Redis does not answer in time. Tracking parameters and
        the like in its URL are ignored.
        """
        lineage = name_of_page(url)
        state = await self._state(lineage, collection)
        if isinstance(state, str):
            return SkipAnswer(skip=False, lineage=lineage, degraded=True, reason=state)
        return SkipAnswer(skip=False, lineage=lineage) if state is None else _skip_answer(lineage, state.decision)

    async def cdx(self, url: str, collection: str, asked: Mapping[str, str]) -> tuple[str, Mapping[str, str], bool]:
        """Return the line of the content that a URL had at its last fetch, or no line.

        In doubt there is none, so that a crawler stores the page. A page without a known WARC record has a line only if
        `stored` is `any`. Headers about the decision follow, and whether there are no lines because Redis did not
        answer in time.

        Raises:
            RefusedError: A name in `fl` is unknown, or `stored` is another word.
        """
        names = asked["fl"].split(",") if asked.get("fl") else list(FIELDS)
        if not FIELDS.keys() >= set(names):
            raise RefusedError(400, "bad_request", f"expected fl of {', '.join(FIELDS)}")
        if asked.get("stored", "any") != "any":
            raise RefusedError(400, "bad_request", "expected stored=any, or no such parameter")
        header = " CDX " + " ".join(FIELDS[name] for name in names) + "\n" if asked.get("header") == "1" else ""
        state = await self._state(name_of_page(url), collection)
        if state is None or isinstance(state, str):
            return header, {}, state is not None
        fields = _fields(state, url)
        if fields.get("recordid") == _UNKNOWN and "stored" not in asked:
            fields = {}
        wanted = asked.get("filter", "").removeprefix("=")
        is_other = wanted.startswith(_DIGEST_FILTER) and wanted.removeprefix(_DIGEST_FILTER) != fields.get("digest")
        line = " ".join(fields[name] for name in names) + "\n" if fields and not is_other else ""
        return header + line, _decision_headers(state), False

    async def _state(self, lineage: str, collection: str) -> PageState | SkipReason | None:
        """Return the state of a page, None if it has none, or why that is not known."""
        try:
            async with asyncio.timeout(self.seconds):
                return await self.store.read_state(collection, lineage)
        except TimeoutError:
            return "deadline"
        except IndexUnavailableError:
            return "index_unavailable"
        except SettingsError:
            return "index_refused"


def add_page_routes(app: web.Application, pages: Pages) -> None:
    """Let questions of crawlers be answered."""
    add_handlers(app, {"skip": partial(_skip, pages), "cdx": partial(_cdx, pages)})


async def _skip(pages: Pages, request: web.Request) -> web.Response:
    asked = _page_asked(request, frozenset())
    answer = await pages.skip(asked.url or "", asked.collection)
    SKIPS.labels("degraded" if answer.degraded else "skip" if answer.skip else "fetch").inc()
    return json_response(answer)


async def _cdx(pages: Pages, request: web.Request) -> web.Response:
    asked = _page_asked(request, _CDX_PARAMETERS)
    text, headers, is_degraded = await pages.cdx(asked.url or "", asked.collection, request.query)
    SKIPS.labels("degraded" if is_degraded else "cdx").inc()
    return web.Response(text=text, headers={**SECURITY_HEADERS, **headers})


def _page_asked(request: web.Request, others: frozenset[str]) -> Document:
    """Return the URL and the collection of a question."""
    given = request.query
    if "url" not in given or given.keys() - {"url", "collection"} - others:
        raise RefusedError(400, "bad_request", "expected url=, and perhaps collection=, each percent-encoded")
    named = {name: given[name] for name in ("url", "collection") if name in given}
    asked = decode_document(msgspec.json.encode(named))
    require(request[ACCESS], asked.collection)
    return asked


def _skip_answer(lineage: str, decision: Decision) -> SkipAnswer:
    return SkipAnswer(
        skip=may_skip(decision, time.time_ns() // 1_000_000),
        lineage=lineage,
        action=decision.action,
        because=decision.because,
        until=decision.until,
        canonical=decision.canonical.url or decision.canonical.id,
    )


def _fields(state: PageState, url: str) -> dict[str, str]:
    """Return the fields of the line, none without the digest of what the URL itself had sent."""
    digest, _, record = state.payload.partition(" ")
    if not digest or state.payload_at is None or state.own is None or state.own.url != url:
        return {}
    known = {
        "urlkey": _sort_key(url),
        "timestamp": f"{state.payload_at:%Y%m%d%H%M%S}",
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


def _decision_headers(state: PageState) -> dict[str, str]:
    decision = state.decision
    named = {
        "nearstream-action": decision.action,
        "nearstream-because": decision.because,
        "nearstream-canonical": decision.canonical.url or decision.canonical.id,
    }
    words = {name: _in_one_word(value) for name, value in named.items() if value}
    return {name: value.encode("ascii", "backslashreplace").decode() for name, value in words.items()}
