"""A deployment in one process whose workers come between each other, reproducible by a seed.

Its workers sign and match with the code of real ones, over one store in memory. There is no broker and no Redis.
`tests/simulation` does worse to the protocol with made-up texts. This has real ones, and all that is told of them.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.store.messages import Cover
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Position, Shape, Store
from nearstream.workers.config.settings import Settings
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.match import Matching, SignatureTopic
from nearstream.workers.pipeline.sign import Signing
from tests.fault.corpus import Sent, traced
from tests.fault.reading import Read, grouped
from tests.support.matching import no_family

PARTITIONS = 4
FIRST_MS = 1_790_000_000_000
_BATCH = 8
_TURNS = 12  # most turns of other workers before and after the calls of a store
_PATIENCE = 8  # turns that a worker waits for another one


@dataclass(frozen=True)
class Faults:
    """How often something goes wrong, as shares of all batches."""

    signed_twice: float = 0.0  # a signer dies after it has sent a batch
    decided_twice: float = 0.0  # a matcher dies after it has decided about a batch, before it sends that
    sent_twice: float = 0.0  # a matcher dies after it has sent a batch


NONE = Faults()


@dataclass
class _Topics:
    """The records of all topics, by topic and partition."""

    records: dict[tuple[str, int], list[ConsumerRecord]] = field(default_factory=lambda: defaultdict(list))
    clock_ms: int = FIRST_MS

    def send(self, sent: Iterable[ProducerRecord], partitions: int = PARTITIONS) -> None:
        for topic, key, value, headers, timestamp_ms in sent:
            self.clock_ms += 1
            place = topic, sum(key or b"%d" % self.clock_ms) % partitions
            given_ms = timestamp_ms if timestamp_ms is not None else self.clock_ms
            records = self.records[place]
            records.append(ConsumerRecord(topic, place[1], len(records), given_ms, key, value, list(headers)))


@dataclass(frozen=True)
class _Interleaved:
    """Carries calls that take a while, so that other workers come between."""

    slots: Sequence[Part]
    draw: Random

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        await self._wait()
        replies = await Local(self.slots).all(calls)
        await self._wait()
        return replies

    async def _wait(self) -> None:
        for _ in range(self.draw.randrange(_TURNS)):
            await asyncio.sleep(0)

    async def patience(self, waits: Sequence[tuple[int, bool]]) -> list[bool]:
        await self._wait()
        return [turn < _PATIENCE for turn, _ in waits]


async def simulated(settings: Settings, sent: Sequence[Sent], seed: int, faults: Faults = NONE) -> Read:
    """Return all records after these documents were signed, then matched by a worker for each partition.

    The index has as many slots as the settings say.
    """
    deployment, draw, topics = Deployment.of(settings), Random(seed), _Topics()
    topics.send(traced(deployment.topic(DOCUMENTS), sent))
    signing = Signing(
        deployment.signer(),
        deployment.document_limits,
        deployment.topic(SIGNATURES),
        deployment.dead_letter_writer("sign"),
    )
    for partition in range(PARTITIONS):
        for batch in _batches(topics.records[deployment.topic(DOCUMENTS), partition], draw):
            for _ in range(1 + (draw.random() < faults.signed_twice)):
                topics.send(await signing.decide(batch))
    slots = [Part(deployment.index_limits, lambda: topics.clock_ms) for _ in range(settings.index_slots)]
    carrier = _Interleaved(slots, draw)
    await asyncio.gather(*(_match(deployment, carrier, topics, part, faults) for part in range(PARTITIONS)))
    return grouped(settings.topic_prefix, [record for records in topics.records.values() for record in records])


async def _match(deployment: Deployment, carrier: _Interleaved, topics: _Topics, part: int, faults: Faults) -> None:
    """Match the signatures of a partition. A worker that dies starts again with the batch that it did not commit."""
    committed = 0

    async def known(partitions: Iterable[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, committed)

    matching = _matching(deployment, carrier, known)
    for batch in _batches(topics.records[deployment.topic(SIGNATURES), part], carrier.draw):
        while True:
            outgoing = await matching.decide(batch)
            dies = carrier.draw.random()
            if dies >= faults.decided_twice:
                topics.send(outgoing)
            if dies >= faults.decided_twice + faults.sent_twice:
                break
            matching = _matching(deployment, carrier, known)
        committed = batch[-1].offset + 1


def _matching(
    deployment: Deployment, carrier: _Interleaved, committed: Callable[[Iterable[int]], Awaitable[dict[int, int]]]
) -> Matching:
    store = Store(carrier, Shape(deployment.settings.index_slots, PARTITIONS), deployment.index_limits)

    async def read_range(_: int, __: int, ___: int) -> AsyncGenerator[ConsumerRecord]:
        raise AssertionError("a store in memory loses nothing")
        yield

    async def checkpoints() -> dict[int, int]:
        return {part: min(slot.covers.get(part, -1) for slot in carrier.slots) for part in range(PARTITIONS)}

    async def cover(positions: Sequence[Position]) -> None:
        await store.cover([Cover(*position) for position in positions])

    async def go_on() -> None:
        """Continue at once, since a pause that depends on the time would change the course."""

    return Matching(
        deployment.matcher(store, carrier.patience),
        deployment.scheme,
        deployment.document_limits,
        deployment.settings.topic_prefix,
        deployment.dead_letter_writer("match"),
        SignatureTopic(committed, read_range),
        checkpoints,
        cover,
        deployment.verdicts(),
        no_family,
        go_on,
    )


def _batches(records: Sequence[ConsumerRecord], draw: Random) -> Iterable[list[ConsumerRecord]]:
    """Yield these records in batches of random sizes."""
    start = 0
    while start < len(records):
        size = draw.randrange(1, _BATCH + 1)
        yield list(records[start : start + size])
        start += size
