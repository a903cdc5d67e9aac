"""Small Faust workers, each wrong in one way: `python -m tests.traps.wrong NAME`.

Their settings are TRAP_* variables. Each writes the value of a record to the file TRAP_DONE when it has processed it.
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
    """T1: Fail on a record. Faust acknowledges it and restarts the agent behind it."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _fail(value)
            _done(value)


def take(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T2, T3: Fail on a batch. Faust acknowledges it and the records drained meanwhile."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for values in stream.take(5, within=0.2):
            for value in values:
                _fail(value)
            for value in values:
                _done(value)


def noack_take(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T19: Acknowledge all by hand and fail on a batch.

    Faust acknowledges the records behind that batch by itself.
    """

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(1, within=0.05):
            for event in events:
                _fail(event.value)
            for event in events:
                await stream.ack(event)
                _done(event.value)


def unawaited(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T4: Send without waiting for the broker, which refuses a record.

    The error goes unnoticed, and the input is acknowledged.
    """

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(value=value if value != UNSENDABLE else os.urandom(50_000))
            _done(value)


def gap(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T5: Acknowledge all records but one.

    After a commit before that record, the next commit skips it.
    """

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(1, within=0.05):
            for event in events:
                if event.value == SKIPPED:
                    await asyncio.sleep(2.0)  # the records before it are committed meanwhile
                    continue
                await stream.ack(event)
                _done(event.value)


def never_acknowledged(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T6: Never acknowledge. Faust ignores SIGTERM while a record is unacknowledged."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for events in stream.noack_take(5, within=0.05):
            for event in events:
                _done(event.value)


def paused(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T8: Pause in a batch beyond the poll interval, with a full buffer.

    The worker leaves the group for ever.
    """

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
    """T12: Await each delivery, through a long outage of the broker."""

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
    """T9: Write the offset that Faust considers committed after the last number.

    The broker has refused the commit.
    """

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
    """T14: Send in what seems to be a transaction, and crash before its commit."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(key=value, value=value)
            _done(value)
            if value == FAILING and os.environ.get("TRAP_CRASH"):
                await app.producer.flush()
                os._exit(1)


def sending(app: faust.App, source: TopicT, sink: TopicT) -> None:
    """T16: Forward each record, by Faust's producer thread if TRAP_THREADED is set."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            await sink.send(value=value)
            _done(value)


def measuring(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T17: Write the length of each record."""

    @app.agent(source)
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _done(b"%d" % len(value))


def undecodable(app: faust.App, source: TopicT, _: TopicT) -> None:
    """T11: Read JSON. Faust acknowledges a record that it cannot decode."""

    @app.agent(app.topic(source.get_topic_name(), value_type=int, value_serializer="json"))
    async def agent(stream: StreamT) -> None:
        async for value in stream:
            _done(b"%d" % value)


def main(name: str) -> None:
    """Run one of the workers until it is stopped."""
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
        # Faust's transactions need its own assignor, which needs standby replicas.
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
