"""Workers that do it wrong in ways that a harness must find out: `python -m tests.fault.wrong_loops PART ROLE`."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mode.supervisors import OneForOneSupervisor

from schemas.record import Outgoing
from streams import describe
from streams.index import Admission, Admitted
from tests.fault.entry import replace_part, run
from workers import app
from workers.delivery import BATCH_WAIT_SECONDS, Delivery, Step, _as_record
from workers.redis_index import RedisIndex

INJECTED = "injected"
_FAILING = 3  # the batch, or ten times the record, that fails once


def async_for() -> None:
    """Faust's first idiom: a failing event is acknowledged all the same."""

    async def loop(self: Delivery, stream: Any, step: Step) -> None:  # noqa: ANN401 - as Delivery.run
        seen = 0
        async for event in stream.events():
            seen += 1
            if seen == 10 * _FAILING:
                raise RuntimeError(INJECTED)
            await self._send_all(await step.decide([_as_record(event)]))

    replace_part(Delivery, "run", loop)
    _start_agents_again()


def take_events() -> None:
    """Faust's second idiom: so is a failing batch."""

    async def loop(self: Delivery, stream: Any, step: Step) -> None:  # noqa: ANN401 - as Delivery.run
        seen = 0
        async for events in stream.take_events(step.batch, within=BATCH_WAIT_SECONDS):
            seen += 1
            if seen == _FAILING:
                raise RuntimeError(INJECTED)
            await self._send_all(await step.decide([_as_record(event) for event in events]))

    replace_part(Delivery, "run", loop)
    _start_agents_again()


def ack_first() -> None:
    """Acknowledges before it delivers, which takes a second."""

    async def loop(self: Delivery, stream: Any, step: Step) -> None:  # noqa: ANN401 - as Delivery.run
        async for events in stream.noack_take(step.batch, within=BATCH_WAIT_SECONDS):
            outgoing = await step.decide([_as_record(event) for event in events])
            for event in events:
                await stream.ack(event)
            await asyncio.sleep(1)
            await self._send_all(outgoing)

    replace_part(Delivery, "run", loop)


def swallow() -> None:
    """Forgets a batch that could not be delivered."""
    send_all, seen = Delivery._send_all, 0

    async def forgetful(self: Delivery, outgoing: Sequence[Outgoing]) -> None:
        nonlocal seen
        seen += 1
        if seen != _FAILING:
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


WRONG: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (async_for, take_events, ack_first, swallow, look_up_first, clock_in_id)
}


def _start_agents_again() -> None:
    """As Faust does by default when one has failed."""
    conf = app._conf
    replace_part(app, "_conf", lambda settings: conf(settings) | {"agent_supervisor": OneForOneSupervisor})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], WRONG))
