"""A real worker with parts replaced: `python -m tests.fault.entry [PART[:ARGUMENT...]...] ROLE`.

The product has no hook for tests: what is replaced is named by the room that it stands in. Whatever is asked for, the
event loop is watched too, and SIGUSR1 prints the stacks of all threads.
"""

import asyncio
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo

from schemas.record import Outgoing, Record
from schemas.topics import SIGNATURES
from workers import kafka_rights, kafka_topics, matching
from workers.cli import main
from workers.delivery import Delivery
from workers.matching import Matching

CRASHED = 9
STALL = "loop busy for"
_TICK_SECONDS = 0.05
_STALL_SECONDS = 0.2


def replace_part(room: object, name: str, part: object) -> None:
    """Fails where there is no such part any more."""
    assert hasattr(room, name), f"{room} has no {name}"
    setattr(room, name, part)


def crash(step: str, batch: str) -> None:
    """Ends at once before that step, `send` or `ack`, of that batch of events."""
    send_all, batches = Delivery._send_all, 0

    async def crashing(self: Delivery, outgoing: Sequence[Outgoing]) -> None:
        nonlocal batches
        batches += bool(outgoing) and not outgoing[0].topic.endswith(SIGNATURES.name)
        if batches == int(batch) and step == "send":
            os._exit(CRASHED)
        await send_all(self, outgoing)
        if batches == int(batch):
            os._exit(CRASHED)

    replace_part(Delivery, "_send_all", crashing)


def busy(seconds: str) -> None:
    """The event loop is blocked in each batch, for seconds of its own processor time."""
    decide = Matching.decide

    async def blocking(self: Matching, records: Sequence[Record]) -> list[Outgoing]:
        until = time.thread_time() + float(seconds)
        while time.thread_time() < until:
            pass
        return await decide(self, records)

    replace_part(Matching, "decide", blocking)


def endless() -> None:
    """The first batch never ends."""

    async def sleeping(_: Matching, __: Sequence[Record]) -> list[Outgoing]:
        sys.stderr.write("batch without end\n")
        await asyncio.Event().wait()
        raise AssertionError

    replace_part(Matching, "decide", sleeping)


def clock(seconds: str) -> None:
    """The time of day is off by so much; the monotonic clock is right."""
    now, off = time.time, timedelta(seconds=float(seconds))

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + off

    replace_part(time, "time", lambda: now() + off.total_seconds())
    replace_part(matching, "datetime", Shifted)


def unchecked_broker() -> None:
    """For a broker that tells neither its topics' settings nor our rights."""

    async def unchecked(*_: object) -> list[str]:
        return []

    replace_part(kafka_topics, "require", unchecked)
    replace_part(kafka_rights, "require", unchecked)


def watch_loop() -> None:
    """One line for each step in which the loop kept the processor too long; the machine may be busy besides."""
    make = asyncio.new_event_loop

    def watched() -> asyncio.AbstractEventLoop:
        loop = make()

        def tick(before: float) -> None:
            seconds = time.thread_time() - before
            if seconds > _STALL_SECONDS:
                sys.stderr.write(f"{STALL} {1000 * seconds:.0f} ms\n")
            loop.call_later(_TICK_SECONDS, tick, time.thread_time())

        loop.call_soon(tick, time.thread_time())
        return loop

    replace_part(asyncio, "new_event_loop", watched)


PARTS: dict[str, Callable[..., None]] = {
    part.__name__: part for part in (crash, busy, endless, clock, unchecked_broker)
}


def run(parts: Sequence[str], known: dict[str, Callable[..., None]]) -> int:
    """The exit code of a worker in the role that stands last, after the parts."""
    *named, role = parts
    faulthandler.register(signal.SIGUSR1)
    watch_loop()
    for part in named:
        name, *arguments = part.split(":")
        known[name](*arguments)
    return main(["worker", role])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], PARTS))
