"""Workers that do it wrong in ways that a harness must find out: `python -m tests.fault.wrong_loops PART ROLE`."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from mode.supervisors import OneForOneSupervisor

from schemas.record import Outgoing
from schemas.topics import SIGNATURES
from streams import describe
from streams.index import Admission, Admitted
from tests.fault.entry import busy, replace_part, run
from workers import app
from workers.delivery import Delivery, Step
from workers.redis_index import RedisIndex

INJECTED = "injected"
Loop = Callable[[Delivery, str, Step], Awaitable[None]]
_FAILING = 3  # the batch, or ten times the record, that fails once


def async_for() -> None:
    """As Faust's first idiom: a failing record is acknowledged all the same."""
    replace_part(Delivery, "run", _acknowledging_failures(1, 10 * _FAILING))
    _start_agents_again()


def take_events() -> None:
    """As Faust's second idiom: so is a failing batch."""
    replace_part(Delivery, "run", _acknowledging_failures(100, _FAILING))
    _start_agents_again()


def _acknowledging_failures(most: int, failing: int) -> Loop:
    """A loop over batches, of which one fails each time that it is started."""

    async def loop(self: Delivery, topic: str, step: Step) -> None:
        consumer: Any = self.app.consumer
        for number in count(1):
            async with consumer.batch(topic, most) as records:
                try:
                    if number == failing:
                        raise RuntimeError(INJECTED)
                    await self._send_all(await step.decide(records))
                finally:
                    consumer.acknowledge(records)

    return loop


def ack_first() -> None:
    """Acknowledges before it delivers, which takes a second."""

    async def loop(self: Delivery, topic: str, step: Step) -> None:
        consumer: Any = self.app.consumer
        while True:
            async with consumer.batch(topic, step.batch) as records:
                outgoing = await step.decide(records)
                consumer.acknowledge(records)
                await asyncio.sleep(1)
                await self._send_all(outgoing)

    replace_part(Delivery, "run", loop)


def swallow() -> None:
    """Forgets a batch of signatures that could not be delivered."""
    send_all, seen = Delivery._send_all, 0

    async def forgetful(self: Delivery, outgoing: Sequence[Outgoing]) -> None:
        nonlocal seen
        signed = bool(outgoing) and outgoing[0].topic.endswith(SIGNATURES.name)
        seen += signed
        if not signed or seen != 2:
            await send_all(self, outgoing)

    replace_part(Delivery, "_send_all", forgetful)


def look_up_first() -> None:
    """Asks the index, then tells it: meanwhile another worker may do both."""
    admit = RedisIndex.admit

    async def in_two_steps(self: RedisIndex, batch: Sequence[Admission]) -> Sequence[Admitted]:
        seen = [await self.look_up(admission.keys, self.address.limits.candidates) for admission in batch]
        await asyncio.sleep(0.1)
        done = await admit(self, batch)
        return [replace(answer, candidates=tuple(known)) for answer, known in zip(done, seen, strict=True)]

    replace_part(RedisIndex, "admit", in_two_steps)


def clock_in_id() -> None:
    """Gives two statements of one event two ids."""
    event_id = describe.event_id
    replace_part(describe, "event_id", lambda *fields: event_id(*fields[:-1], f"{fields[-1]}{time.time_ns()}"))


def hold_loop() -> None:
    """Works for half a second without giving the event loop a turn."""
    busy("0.5")


WRONG: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (async_for, take_events, ack_first, swallow, look_up_first, clock_in_id, hold_loop)
}


def _start_agents_again() -> None:
    """As Faust does by default when one has failed."""
    conf = app._conf
    replace_part(app, "_conf", lambda settings: conf(settings) | {"agent_supervisor": OneForOneSupervisor})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], WRONG))
