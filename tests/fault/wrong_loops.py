"""Wrong workers that the harness must detect: `python -m tests.fault.wrong_loops PART ROLE`."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol import lane
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import Choice, choose
from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.matching.protocol.lane import Patience
from nearstream.streams.store.messages import Entry, FamilyView, View
from nearstream.streams.store.store import Store
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.step import Step
from tests.fault.entry import PARTS, busy, replace_part, run


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
        founders = [founder_of(decision) for decision in known if decision]
        return (founders[0], ()) if founders and choice == (0, ()) else choice

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
        ack_first,
        look_up_first,
        join_relatives,
        lower_thresholds,
        hold_loop,
    )
}


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], PARTS | WRONG))
