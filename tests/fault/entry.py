"""A real worker with parts replaced: `python -m tests.fault.entry [PART[:ARGUMENT...]...] ROLE`.

The product has no hook for tests, so a part is replaced in the module or class that defines it. In every worker the
event loop is watched too, and SIGUSR1 prints the stacks of all threads.
"""

import asyncio
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.cli.main import main
from nearstream.workers.kafka import topics as kafka_topics
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.match import Matching

CRASHED = 9
STALL = "loop busy for"
_TICK_SECONDS = 0.05
_STALL_SECONDS = 0.2


def replace_part(room: object, name: str, part: object) -> None:
    """Replace an attribute of a module or class, which must exist."""
    assert hasattr(room, name), f"{room} has no {name}"
    setattr(room, name, part)


def crash(step: str, batch: str) -> None:
    """Exit at once before a step, `send` or `ack`, of a batch of events."""
    send_all, batches = Delivery._send_all, 0

    async def crashing(self: Delivery, outgoing: Sequence[ProducerRecord]) -> None:
        nonlocal batches
        has_events = bool(outgoing) and not outgoing[0].topic.endswith(SIGNATURES.name)
        batches += has_events
        dies = has_events and batches == int(batch)  # another lane may send while this one does
        if dies and step == "send":
            os._exit(CRASHED)
        await send_all(self, outgoing)
        if dies:
            os._exit(CRASHED)

    replace_part(Delivery, "_send_all", crashing)


def freeze(key: str) -> None:
    """Let the worker stop itself by SIGSTOP before it first sends a record with this key."""
    send_all, frozen = Delivery._send_all, False

    async def freezing(self: Delivery, outgoing: Sequence[ProducerRecord]) -> None:
        nonlocal frozen
        if not frozen and any(sent.key == key.encode() for sent in outgoing):
            frozen = True
            os.kill(os.getpid(), signal.SIGSTOP)
        await send_all(self, outgoing)

    replace_part(Delivery, "_send_all", freezing)


def busy(seconds: str) -> None:
    """Block the event loop in each batch for these seconds of its processor time."""
    decide = Matching.decide

    async def blocking(self: Matching, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        until = time.thread_time() + float(seconds)
        while time.thread_time() < until:
            pass
        return await decide(self, records)

    replace_part(Matching, "decide", blocking)


def endless() -> None:
    """Let the first batch never end."""

    async def sleeping(_: Matching, __: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        sys.stderr.write("batch without end\n")
        await asyncio.Event().wait()
        raise AssertionError

    replace_part(Matching, "decide", sleeping)


def unchecked_broker() -> None:
    """Skip the checks of topic settings, which a mock broker does not report."""

    async def unchecked(*_: object) -> list[str]:
        return []

    replace_part(kafka_topics, "require", unchecked)


def watch_loop() -> None:
    """Log each step in which the event loop used the processor for too long.

    It measures processor time, since other processes may keep the machine busy, and only while the loop runs: a worker
    runs it to claim its deployment, then creates its app, then runs it again.
    """
    make = asyncio.new_event_loop

    def watched() -> asyncio.AbstractEventLoop:
        loop = make()
        run_forever, before = loop.run_forever, 0.0

        def look() -> None:
            nonlocal before
            seconds = time.thread_time() - before
            if seconds > _STALL_SECONDS:
                sys.stderr.write(f"{STALL} {1000 * seconds:.0f} ms\n")
            before = time.thread_time()

        def tick() -> None:
            look()
            loop.call_later(_TICK_SECONDS, tick)

        def run() -> None:
            nonlocal before
            before = time.thread_time()
            try:
                run_forever()
            finally:
                look()

        loop.call_soon(tick)
        replace_part(loop, "run_forever", run)
        return loop

    replace_part(asyncio, "new_event_loop", watched)


PARTS: dict[str, Callable[..., None]] = {
    part.__name__: part for part in (crash, freeze, busy, endless, unchecked_broker)
}


def run(parts: Sequence[str], known: dict[str, Callable[..., None]]) -> int:
    """Run a worker with these parts replaced and return its exit code.

    The last argument is the worker's role.
    """
    *named, role = parts
    faulthandler.register(signal.SIGUSR1)
    watch_loop()
    for part in named:
        name, *arguments = part.split(":")
        known[name](*arguments)
    return main(["worker", role])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], PARTS))
