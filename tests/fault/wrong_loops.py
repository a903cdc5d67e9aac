"""Wrong workers that the harness must detect: `python -m tests.fault.wrong_loops PART ROLE`."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from mode.supervisors import OneForOneSupervisor

from nearstream.schemas.record import ProducerRecord
from nearstream.schemas.topics import RELATION_TOPICS, SIGNATURES
from nearstream.streams import counterpart
from nearstream.streams.index.family import Settled, Settlement
from nearstream.streams.matcher import Matcher
from nearstream.streams.relations import describe
from nearstream.streams.store.limits import Admission, Admitted, Index
from nearstream.workers import app
from nearstream.workers.pipeline import faust_runtime
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.step import Step
from nearstream.workers.redis_index.index import RedisIndex
from tests.fault.entry import PARTS, busy, replace_part, run

INJECTED = "injected"
Loop = Callable[[Delivery, str, Step], Awaitable[None]]
_FAILING = 3  # the number of the batch that fails once, or a tenth of that of the record


def async_for() -> None:
    """Acknowledge a failing record, as Faust's `async for` idiom does."""
    replace_part(Delivery, "run", _acknowledging_failures(1, 10 * _FAILING))
    _start_agents_again()


def take_events() -> None:
    """Acknowledge a failing batch, as Faust's `take` idiom does."""
    replace_part(Delivery, "run", _acknowledging_failures(100, _FAILING))
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


def swallow() -> None:
    """Drop a batch of signatures as if its delivery had failed unnoticed."""
    send_all, seen = Delivery._send_all, 0

    async def forgetful(self: Delivery, outgoing: Sequence[ProducerRecord]) -> None:
        nonlocal seen
        signed = bool(outgoing) and outgoing[0].topic.endswith(SIGNATURES.name)
        seen += signed
        if not signed or seen != 2:
            await send_all(self, outgoing)

    replace_part(Delivery, "_send_all", forgetful)


def look_up_first() -> None:
    """Look up in the index first and admit later, so that another worker may come between."""
    admit = RedisIndex.admit

    async def in_two_steps(self: RedisIndex, batch: Sequence[Admission]) -> Sequence[Admitted]:
        seen = [await self.look_up(admission.keys, self.address.limits.candidates) for admission in batch]
        await asyncio.sleep(0.1)
        done = await admit(self, batch)
        return [replace(answer, candidates=tuple(known), presumed=0) for answer, known in zip(done, seen, strict=True)]

    replace_part(RedisIndex, "admit", in_two_steps)


def clock_in_id() -> None:
    """Put the clock into the ids of verdicts and events, so that a repeat gets another id."""
    event_id = describe.event_id
    for room in (describe, counterpart):
        replace_part(room, "event_id", lambda *fields: event_id(*fields[:-1], f"{fields[-1]}{time.time_ns()}"))


def keep_removed() -> None:
    """Retract a document that is removed, but leave it in the index."""
    admit = RedisIndex.admit

    async def keeping(self: RedisIndex, batch: Sequence[Admission]) -> Sequence[Admitted]:
        nobody = [
            replace(each, document_key=f"{each.document_key} ") if each.signature is None else each for each in batch
        ]
        answers = zip(batch, await admit(self, nobody), strict=True)
        return [answer if each.signature else replace(answer, found=True) for each, answer in answers]

    replace_part(RedisIndex, "admit", keeping)


def found_families() -> None:
    """Let each document found a family of its own."""
    _settle_otherwise(lambda each: replace(each, joins=0, is_exact=False, keeps=False))


def join_relatives() -> None:
    """Let a document join the family of a relative at first, though it may be no copy."""
    tried = set[int]()

    def joining(each: Settlement) -> Settlement:
        if each.joins or each.number in tried:
            return each
        tried.add(each.number)
        known = (pair.number for pair in each.pairs if pair.candidate is not None and pair.candidate.represents)
        return replace(each, joins=next(known, 0))

    _settle_otherwise(joining)


def _settle_otherwise(change: Callable[[Settlement], Settlement]) -> None:
    settle = RedisIndex.settle

    async def otherwise(self: RedisIndex, batch: Sequence[Settlement]) -> Sequence[Settled]:
        return await settle(self, list(map(change, batch)))

    replace_part(RedisIndex, "settle", otherwise)


def count_to_two() -> None:
    """Give every member of a family but the founder the ordinal 2."""
    settle = RedisIndex.settle

    async def counting(self: RedisIndex, batch: Sequence[Settlement]) -> Sequence[Settled]:
        return [
            replace(each, family=replace(each.family, ordinal=min(2, each.family.ordinal))) if each.family else each
            for each in await settle(self, batch)
        ]

    replace_part(RedisIndex, "settle", counting)


def lower_thresholds() -> None:
    """Find relations where there are none."""
    matcher = Deployment.matcher

    def lenient(self: Deployment, index: Index) -> Matcher:
        return matcher(replace(self, thresholds=replace(self.thresholds, distance_ratio_max=0.5)), index)

    replace_part(Deployment, "matcher", lenient)


def verdicts_only() -> None:
    """Drop the relation events of all batches."""
    send_all = Delivery._send_all

    async def silent(self: Delivery, outgoing: Sequence[ProducerRecord]) -> None:
        relations = tuple(topic.name for topic in RELATION_TOPICS)
        await send_all(self, [sent for sent in outgoing if not sent.topic.endswith(relations)])

    replace_part(Delivery, "_send_all", silent)


def hold_loop() -> None:
    """Block the event loop for half a second per batch."""
    busy("0.5")


WRONG: dict[str, Callable[[], None]] = {
    part.__name__: part
    for part in (
        async_for,
        take_events,
        ack_first,
        swallow,
        look_up_first,
        clock_in_id,
        keep_removed,
        found_families,
        join_relatives,
        count_to_two,
        lower_thresholds,
        verdicts_only,
        hold_loop,
    )
}


def _start_agents_again() -> None:
    """Restart failed agents, as Faust does by default."""
    conf = faust_runtime.faust_settings
    replace_part(app, "faust_settings", lambda settings: conf(settings) | {"agent_supervisor": OneForOneSupervisor})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], PARTS | WRONG))
