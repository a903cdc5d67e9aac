"""Show the live page over a made-up day, in this process or through a real Kafka and Redis."""

import argparse
import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.codec import decode_document, encode_json
from nearstream.schemas.topics.table import ALL, DOCUMENTS
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.http.demo import serve_demo
from nearstream.workers.http.live.day import BEGIN_MS, Happening, hours
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.kafka_source import fed_by_kafka
from nearstream.workers.http.live.replay import WARM_UP_MS
from nearstream.workers.http.outbox import connected
from nearstream.workers.http.server import serving
from nearstream.workers.kafka.client import admin
from nearstream.workers.kafka.records import SendAll, sender
from nearstream.workers.kafka.topics import create_missing
from nearstream.workers.operations.terminal import print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.document_records import removal_of
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.schemes import delete_keys
from nearstream.workers.redis.server.client import open_client, until_answered

_ANY_PORT = "127.0.0.1:0"
_ROLES = ("all", "alert")
_START_SECONDS = 120.0
_STOP_SECONDS = 45.0
_POLL_SECONDS = 0.2
_BATCH = 200


def show_day(settings: Settings, folder: Path, options: argparse.Namespace) -> Exit:
    """Serve the live page over a made-up day until it is stopped.

    Without `NEARSTREAM_API` it listens on a free port, beside a server that runs.

    Raises:
        OSError: The folder has no documents.
    """
    if settings.api == load({}).api:
        settings = replace(settings, api=_ANY_PORT)
    lines = (folder / "documents.jsonl").read_bytes().splitlines()
    examples = [decode_document(line) for line in lines if line.strip()]

    def opened(address: str) -> None:
        print_line(f"live page: {address}  (Ctrl-C ends it)", flush=True)
        if not options.no_open and _has_a_screen():
            webbrowser.open(address)

    if options.stack:
        asyncio.run(_serve_on_servers(_own_deployment(settings), _with_text(examples), options, opened))
    else:
        print_message("matching the first half hour of a made-up day")
        asyncio.run(serve_demo(Deployment.of(settings), _with_text(examples), options.speed, opened))
    return Exit.OK


def _with_text(documents: list[Document]) -> list[Document]:
    return [document for document in documents if document.text and document.id]


def _has_a_screen() -> bool:
    """Return whether a browser would open a window, and not take over this terminal."""
    named = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and (bool(named) or sys.platform == "darwin")


def _own_deployment(settings: Settings) -> Settings:
    """Return settings with topics, a group and keys of their own.

    Its topics have one partition, so its index has one slot.
    """
    name = f"demo-{secrets.token_hex(4)}"
    own = replace(settings, topic_prefix=f"{name}.", group=name, namespace=name, status="off", verdicts="all")
    return replace(own, index_slots=1)


async def _serve_on_servers(
    settings: Settings, examples: Sequence[Document], options: argparse.Namespace, opened: Callable[[str], None]
) -> None:
    """Send the day through Kafka to workers, and serve the live page, until SIGINT or SIGTERM.

    At the end the topics and the keys are deleted.

    Args:
        settings: The settings of a deployment of its own.
        examples: Documents with texts, from which the day is made.
        options: Its speed, and how long to wait for servers.
        opened: Called with the address of the page once it answers.

    Raises:
        KafkaUnreachableError: No broker answered.
        IndexUnavailableError: Redis did not answer.
        SettingsError: A topic cannot be created, or the address cannot be used.
        IndexLostError: No worker has made the index in time.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    deployment, feed = Deployment.of(settings), Feed(_now_ms)
    async with _created(settings):
        print_message(f"starting workers on Kafka at {settings.kafka}")
        with _workers(settings):
            index = await _index_of_workers(deployment)
            try:
                async with (
                    connected(settings) as outbox,
                    fed_by_kafka(settings, feed, 0),
                    serving(deployment, index, outbox, feed) as address,
                    sender(settings, _START_SECONDS) as send_all,
                ):
                    opened(f"http://{address}/")
                    sending = asyncio.create_task(_send_day(settings, examples, options.speed, send_all))
                    waiting = asyncio.create_task(stopped.wait())
                    done, _ = await asyncio.wait({sending, waiting}, return_when=asyncio.FIRST_COMPLETED)
                    sending.cancel()
                    if sending in done:
                        sending.result()
            finally:
                await index.close()


@asynccontextmanager
async def _created(settings: Settings) -> AsyncIterator[None]:
    """Create the topics for the block, and delete them with all keys at its end."""
    await create_missing(settings, 1, _START_SECONDS)
    try:
        yield
    finally:
        async with admin(settings, _START_SECONDS) as client:
            await client.delete_topics([settings.topic_prefix + topic.name for topic in ALL])
        async with open_client(Deployment.of(settings).index_address().connection) as redis:
            await delete_keys(redis, f"{{{settings.namespace}[:}}]*")


@contextmanager
def _workers(settings: Settings) -> Iterator[None]:
    """Run a process of each role for the block."""
    names = ("topic_prefix", "group", "namespace", "status", "verdicts", "index_slots")
    given = {f"NEARSTREAM_{name.upper()}": str(getattr(settings, name)) for name in names}
    running = [
        subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "nearstream", "worker", role],
            env=os.environ | given | {"NEARSTREAM_LOG_LEVEL": "warning"},
            start_new_session=True,  # so that Ctrl-C ends this process first
        )
        for role in _ROLES
    ]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _index_of_workers(deployment: Deployment) -> RedisIndex:
    """Return the index to read, once a worker has made it."""
    opening = partial(RedisIndex.open_to_read, deployment.index_address())
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return await until_answered(opening, _START_SECONDS)
        except IndexLostError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_POLL_SECONDS)


async def _send_day(settings: Settings, examples: Sequence[Document], speed: float, send_all: SendAll) -> None:
    """Send the first half hour at once, and the rest at its speed."""
    topic, began, batch = settings.topic_prefix + DOCUMENTS.name, 0.0, list[ProducerRecord]()
    for happening in hours(examples):
        is_early = happening.at_ms < BEGIN_MS + WARM_UP_MS
        if not is_early and not began:
            began = time.monotonic()
        due = began + (happening.at_ms - BEGIN_MS - WARM_UP_MS) / 1000 / speed
        is_due = is_early or due <= time.monotonic()
        if len(batch) >= _BATCH or not is_due:
            await send_all(batch)
            batch = []
        if not is_early and due > time.monotonic():
            await asyncio.sleep(due - time.monotonic())
        batch.append(_record(topic, happening))


def _record(topic: str, happening: Happening) -> ProducerRecord:
    """Return what happens as a record of `documents`, observed when it is sent."""
    if happening.document is not None:
        document = replace_fields(happening.document, observed_at=None)
        return ProducerRecord(topic, (document.id or "").encode(), encode_json(document), [])
    if happening.unreadable:
        return ProducerRecord(topic, None, happening.unreadable, [])
    collection, _, name = happening.removed.partition("/")
    return removal_of(topic, name, collection)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
