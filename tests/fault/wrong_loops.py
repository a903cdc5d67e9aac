"""Wrong workers that the harness must detect: `python -m tests.fault.wrong_loops PART ROLE`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from mode.supervisors import OneForOneSupervisor

from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol import lane
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import Choice, choose
from nearstream.streams.matching.protocol.lane import Patience
from nearstream.streams.store.messages import Entry, FamilyView, View
from nearstream.streams.store.store import Store
from nearstream.workers.pipeline import faust_runtime
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.step import Step
from nearstream.workers.worker import topology as app
from tests.fault.entry import PARTS, busy, replace_part, run

INJECTED = "injected"
Loop = Callable[[Delivery, str, Step], Awaitable[None]]
_FAILING = 3  # the number of the batch that fails once, or a tenth of that of the record


def async_for() -> None:
    """Acknowledge a failing record, as Faust's `async for` idiom does."""
    replace_part(Delivery, "run", _acknowledging_failures(1, 10 * _FAILING))
    _start_agents_again()


def _acknowledging_failures(most: int, failing: int) -> Loop:
    """Return a loop over batches in which one batch fails after each start."""

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
    """Acknowledge a batch a second before its results are delivered."""

    async def loop(self: Delivery, topic: str, step: Step) -> None:
        consumer: Any = self.app.consumer
        while True:
            async with consumer.batch(topic, step.batch) as records:
                outgoing = await step.decide(records)
                consumer.acknowledge(records)
                await asyncio.sleep(1)
                await self._send_all(outgoing)

    replace_part(Delivery, "run", loop)


def look_up_first() -> None:
    """Read buckets first and enter them later, so that another worker may come between."""
    enter = Store.enter

    async def in_two_steps(self: Store, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        seen = await self.peek(batch)
        await asyncio.sleep(0.1)
        await enter(self, batch)
        return seen

    replace_part(Store, "enter", in_two_steps)


def join_relatives() -> None:
    """Let a document join the family of a relative, though it may be no copy."""

    def joining(case: Case, views: Mapping[int, View], families: Mapping[int, FamilyView]) -> Choice:
        choice = choose(case, views, families)
        known = [views[number].decision for number in case.compared if number in views]
        founders = [lane.founder_of(decision) for decision in known if decision]
        return Choice(founders[0]) if founders and choice == Choice(0) else choice

    replace_part(lane, "choose", joining)


def lower_thresholds() -> None:
    """Find relations where there are none."""
    matcher = Deployment.matcher

    def lenient(self: Deployment, store: Store, patience: Patience | None = None) -> Matcher:
        return matcher(replace(self, thresholds=replace(self.thresholds, distance_ratio_max=0.5)), store, patience)

    replace_part(Deployment, "matcher", lenient)


def hold_loop() -> None:
    """Block the event loop for half a second per batch."""
    busy("0.5")


WRONG: dict[str, Callable[[], None]] = {
    part.__name__: part
    for part in (
        async_for,
        ack_first,
        look_up_first,
        join_relatives,
        lower_thresholds,
        hold_loop,
    )
}


def _start_agents_again() -> None:
    """Restart failed agents, as Faust does by default."""
    conf = faust_runtime.faust_settings
    replace_part(app, "faust_settings", lambda settings: conf(settings) | {"agent_supervisor": OneForOneSupervisor})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], PARTS | WRONG))
