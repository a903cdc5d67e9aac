"""Serve the HTTP API until a signal."""

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial

from nearstream.schemas.documents.document import EPOCH, Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.live.state import WorkerState
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, SILENCES
from nearstream.streams.ingest.charset import decode
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.config.reloading import reload_on_hangup
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.http.application import application, listening
from nearstream.workers.http.check import AskedIndex, Checker
from nearstream.workers.http.labels import add_label_routes
from nearstream.workers.http.learning import Learner, Outbox, Sends, connected
from nearstream.workers.http.live.details import States
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.sources import fed_by_kafka, watching_redis
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.http.operator import Replay, add_operator_routes, replay_reason
from nearstream.workers.http.pages import Pages, add_page_routes
from nearstream.workers.http.requests import Gate
from nearstream.workers.http.routes import Workers, add_routes, add_waiting_routes
from nearstream.workers.http.standalone import Standalone
from nearstream.workers.monitoring.metrics import GroupMetrics, register
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.kept.label_guards import Guards, LabelGuards
from nearstream.workers.redis.kept.worker_states import worker_states
from nearstream.workers.redis.reading.inspect import inspect_document
from nearstream.workers.redis.server.client import until_answered

# Of the time for an answer, for a process and then for the text: an answer that waits for longer would come too late.
_HTML_SHARE = 2 / 3
_READERS = 8
_WAIT_SECONDS = 0.5  # between looks for an index that is not made yet
# How long a thread that reads a mail keeps the interpreter from the event loop, which needs it some ten times for an
# answer. With the 5 ms of Python, three large mails at a time delayed all other answers by half a second.
_SWITCH_SECONDS = 0.0005
# A text that is not ASCII. The tables that the first one needs take half a second to build.
_FIRST = Document(id="first", text="Grüße", observed_at=EPOCH)
_STRANGE = b"\xe9"  # in no declared charset, so that what detects charsets is loaded before the first question

log = logging.getLogger(__name__)


async def serve(deployment: Deployment, wait_seconds: float) -> None:
    """Serve the HTTP API and the live page until SIGINT or SIGTERM, once Redis has answered in time.

    Raises:
        SettingsError: The address cannot be used, or the index has another scheme or key.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
    """
    stopped, gate = until_signal(), Gate(deployment.settings.api_token)
    reload_on_hangup(asyncio.get_running_loop(), lambda settings: gate.take(settings.api_token))
    index = await _opened(deployment, wait_seconds, stopped, gate)
    if index is None:
        return
    # What was loaded until here stays. To look through it again takes a full garbage collection 50 ms.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    settings = deployment.settings
    feed = Feed(lambda: time.time_ns() // 1_000_000)
    register(GroupMetrics(feed.known_lags, feed.known_workers))
    try:
        async with (
            connected(settings) as outbox,
            fed_by_kafka(settings, feed),
            serving(deployment, shared(deployment, index, outbox, feed), feed, gate) as address,
        ):
            log.info("API: http://%s/v1/check, live page: http://%s/", address, address)
            await stopped.wait()
    finally:
        await index.close()
    log.info("stopped")


def until_signal() -> asyncio.Event:
    """Return what SIGINT or SIGTERM sets."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


async def _opened(deployment: Deployment, wait_seconds: float, stopped: asyncio.Event, gate: Gate) -> RedisIndex | None:
    """Open the index, or return None if the server is stopped before there is one.

    Until a worker has made it, every question is answered with 503, and `/readyz` says what is waited for.
    """
    opening = partial(RedisIndex.open_to_read, deployment.index_address())
    try:
        return await until_answered(opening, wait_seconds)
    except IndexLostError as error:
        why, settings = str(error), deployment.settings
    app = application(gate)
    add_waiting_routes(app, why)
    async with listening(app, settings.api) as address:
        log.warning("http://%s/readyz says not ready until a worker has made the index: %s", address, why)
        while not stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _WAIT_SECONDS)
            with suppress(IndexLostError, IndexUnavailableError):
                return await until_answered(opening, wait_seconds)
    return None


async def serve_alone(deployment: Deployment, path: str) -> None:
    """Serve the HTTP API and the live page over the index in a file, until a signal.

    Raises:
        SettingsError: The address cannot be used, or the file is no index of this scheme, or is open elsewhere.
    """
    stopped, gate = until_signal(), Gate(deployment.settings.api_token)
    reload_on_hangup(asyncio.get_running_loop(), lambda settings: gate.take(settings.api_token))
    feed = Feed(lambda: time.time_ns() // 1_000_000, "file")
    with deployment.index_file(path) as file:
        standalone = Standalone(deployment, file, feed)
        storing = asyncio.create_task(standalone.run())
        index, pages = standalone.index, standalone.pages
        alone = Backend(index, _NoGuards(), pages, index.states, standalone, _no_workers, None, nullcontext())
        async with serving(deployment, alone, feed, gate) as address:
            log.info("API: http://%s/v1/check, live page: http://%s/, index: %s", address, address, path)
            await asyncio.wait({storing, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if storing.done():
            storing.result()  # it ends by a bug alone
        storing.cancel()
    log.info("stopped")


class _NoGuards:
    """Suspends no label, since nothing watches floods."""

    async def read(self, _collection: str, _family: str) -> None:
        """Return that nothing was decided."""


async def _no_workers() -> list[WorkerState]:
    return []


@dataclass(frozen=True)
class Backend:
    """Where an API finds what it answers, and leaves what it takes."""

    index: AskedIndex  # the documents
    guards: Guards  # labels that are suspended
    pages: DecisionStore  # the states of pages
    states: States  # returns the states of a document key, the last one first
    outbox: Sends  # takes documents, removals, labels and silences
    workers: Workers  # reads the states of workers
    replay: Replay | None  # sends dead letters again, None: nothing does
    beside: AbstractAsyncContextManager[object]  # what runs while the API does


def shared(deployment: Deployment, index: RedisIndex, outbox: Outbox, feed: Feed) -> Backend:
    """Return what workers share on Kafka and Redis."""
    namespace = deployment.settings.namespace
    guards = LabelGuards(index.connection, namespace)
    return Backend(
        index,
        guards,
        DecisionStore(index.connection, namespace, deployment.settings.crawl_freshness),
        partial(_states, index),
        outbox,
        partial(worker_states, index.connection, namespace),
        partial(replay_reason, deployment),
        watching_redis(index.connection, namespace, guards, feed),
    )


@asynccontextmanager
async def serving(deployment: Deployment, backend: Backend, feed: Feed, gate: Gate) -> AsyncIterator[str]:
    """Serve the HTTP API in the block, and yield its address. At the end the requests in work are answered."""
    settings = deployment.settings
    with (
        closing(HtmlProcesses(deadline_seconds=_HTML_SHARE * settings.api_seconds)) as html,
        ThreadPoolExecutor(_READERS, "read") as readers,
        ThreadPoolExecutor(1, "read-large") as large,
        ThreadPoolExecutor(1, "sign") as cpu,
    ):
        if html.is_available():
            await asyncio.to_thread(html.start)
        app = application(gate)
        pages = PageReader(settings.html_content, settings.max_text_bytes, html, deployment.key)
        signer = deployment.signer()
        signer.sign(_FIRST)
        decode(_STRANGE)
        index = backend.index
        checker = Checker(deployment, signer, index, backend.guards, html, pages, readers, large, cpu)
        learner = Learner(
            backend.outbox, deployment.topic(DOCUMENTS), deployment.topic(SIGNATURES), deployment.document_limits, cpu
        )
        add_routes(app, checker, learner, backend.workers)
        add_page_routes(app, Pages(backend.pages, settings.api_seconds))
        add_label_routes(app, deployment.scheme, learner, index, backend.guards)
        add_live_routes(app, feed, deployment, backend.states, index)
        add_operator_routes(app, feed, backend.outbox, deployment.topic(SILENCES), backend.replay)
        async with backend.beside, listening(app, settings.api) as address:
            yield address


async def _states(index: RedisIndex, document_key: str) -> list[Signature]:
    """Return the states of a document that can be found, the last one first."""
    return [state.signature for state in await inspect_document(index, document_key) if not state.expired]
