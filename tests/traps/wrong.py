"""Small Faust workers, each wrong in one way: `python -m tests.traps.wrong NAME`, settings in TRAP_* variables.

Each writes the value of a record to the file TRAP_DONE when it has done its work on it.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
from faust.types import StreamT, TopicT
from mode.supervisors import CrashingSupervisor

FAILING = b"13"
SKIPPED = b"7"
UNSENDABLE = b"5"

Worker = Callable[[faust.App, TopicT, TopicT], None]


def async_for(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T1: the failing record is acknowledged, the agent starts again behind it."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _fail(value)
            _done(value)


def take(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T2, T3: the failing batch is acknowledged, with what was drained meanwhile."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for values in stream.take(5, within=0.2):
            for value in values:
                _fail(value)
            for value in values:
                _done(value)


def noack_take(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T19: all is acknowledged by hand, yet what comes behind a failing batch is acknowledged by itself."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(1, within=0.05):
            for event in events:
                _fail(event.value)
            for event in events:
                await stream.ack(event)
                _done(event.value)


def unawaited(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T4: the broker refuses a record, nobody hears of it, its input is acknowledged."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(value=value if value != UNSENDABLE else os.urandom(50_000))
            _done(value)


def gap(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T5: all but one record are acknowledged, after a commit before it; the next commit jumps it."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(1, within=0.05):
            for event in events:
                if event.value == SKIPPED:
                    await asyncio.sleep(2.0)  # what came before is committed meanwhile
                    continue
                await stream.ack(event)
                _done(event.value)


def never_acknowledged(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T6: SIGTERM is not obeyed while a record is not acknowledged."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(5, within=0.05):
            for event in events:
                _done(event.value)


def paused(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T8: a batch longer than the poll interval, with a full buffer: the group is left for ever."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        first = True
        async for events in stream.noack_take(5, within=0.05):
            if first:
                await asyncio.sleep(float(os.environ["TRAP_PAUSE"]))
                first = False
            for event in events:
                await stream.ack(event)
                _done(event.value)


def awaited(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T12: each delivery awaited; what a broker that is away for long makes of it."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(5, within=0.05):
            producer: Any = app.producer
            sent = [await producer.send(sink.get_topic_name(), b"k", event.value, None, None, []) for event in events]
            await asyncio.gather(*sent)
            for event in events:
                await stream.ack(event)
                _done(event.value)


def expelled(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T9: the broker refuses the commit; the last number done is what Faust takes for committed."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, told.set)
        async for events in stream.noack_take(5, within=0.05):
            for event in events:
                await stream.ack(event)
                _done(event.value)
            if events[-1].value == os.environ["TRAP_LAST"].encode():
                break
        await told.wait()
        await app.consumer.commit()
        _done(b"%d" % sum(app.monitor.tp_committed_offsets.values()))
        await asyncio.sleep(1000)


def exactly_once(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T14: sent in a transaction, as it seems; a crash before its commit."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(key=value, value=value)
            _done(value)
            if value == FAILING and os.environ.get("TRAP_CRASH"):
                await app.producer.flush()
                os._exit(1)


def sending(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T16: each record sent on; by a thread of Faust's, if it is told so."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(value=value)
            _done(value)


def measuring(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T17: the length of each record."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _done(b"%d" % len(value))


def undecodable(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T11: a record that Faust itself cannot decode is acknowledged."""

    @app.agent(app.topic(source.get_topic_name(), value_type=int, value_serializer="json"))
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _done(b"%d" % value)


def main(name: str) -> None:
    """Runs one of them until it is stopped."""
    settings: dict[str, Any] = {
        "broker": f"kafka://{os.environ['TRAP_KAFKA']}",
        "datadir": tempfile.mkdtemp(prefix="trap-"),
        "key_serializer": "raw",
        "value_serializer": "raw",
        "autodiscover": False,
        "web_enabled": False,
        "topic_disable_leader": True,
        "table_standby_replicas": 0,
        "consumer_auto_offset_reset": "earliest",
        "broker_commit_interval": float(os.environ.get("TRAP_COMMIT_INTERVAL", "0.5")),
        "stream_buffer_maxsize": 16,
        "broker_max_poll_interval": float(os.environ.get("TRAP_POLL_INTERVAL", "1000")),
        "producer_request_timeout": float(os.environ.get("TRAP_REQUEST_TIMEOUT", "40")),
    }
    if os.environ.get("TRAP_GUARANTEE"):
        # Its transactions need Faust's own assignor, which needs standby replicas.
        settings |= {"processing_guarantee": os.environ["TRAP_GUARANTEE"], "table_standby_replicas": 1}
    if os.environ.get("TRAP_THREADED"):
        settings["producer_threaded"] = True
    if os.environ.get("TRAP_CRASHING"):
        settings["agent_supervisor"] = CrashingSupervisor
    app = faust.App(os.environ["TRAP_GROUP"], **settings)
    workers: dict[str, Worker] = {worker.__name__: worker for worker in WORKERS}
    source = app.topic(os.environ["TRAP_SOURCE"], key_type=bytes, value_type=bytes)
    sink = app.topic(os.environ["TRAP_SINK"], key_type=bytes, value_type=bytes)
    workers[name](app, source, sink)
    faust.Worker(app, loglevel="CRITICAL", quiet=True).execute_from_commandline()


WORKERS = (
    async_for,
    take,
    noack_take,
    unawaited,
    gap,
    never_acknowledged,
    paused,
    awaited,
    expelled,
    exactly_once,
    sending,
    measuring,
    undecodable,
)


def _done(value: bytes) -> None:
    with Path(os.environ["TRAP_DONE"]).open("ab") as done:
        done.write(value + b"\n")


def _fail(value: bytes) -> None:
    if value == FAILING:
        raise ZeroDivisionError


if __name__ == "__main__":
    main(sys.argv[1])
