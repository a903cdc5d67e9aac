"""The stream that is written by hand: aiokafka, and MinHashLSH of datasketch on Redis.

It fetches batches, shares the permutations of all sketches, inserts a batch through pipelines (datasketch's insertion
session), and commits after its events are confirmed. datasketch's documented look-up takes one document at a time. With
`batched` the look-ups of a batch go through the storage below it instead, in one pipeline for each band, which its
documentation does not name.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import mmh3
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.speed.peers import SLOTS, usual_words, word_shingles
from benchmarks.stream.stages import StageClock
from nearstream.schemas.topics.table import DOCUMENTS, NEAR_DUPLICATES
from nearstream.workers.config.settings import Settings

BATCH = 200
_THRESHOLD = 0.5  # resemblance, for which datasketch takes 25 bands of 5 rows
_NAMED = 40  # most candidates that an event names

Look = Callable[[Any, Sequence[Any]], list[list[bytes]]]  # Any: datasketch's index, its sketches


def one_by_one(index: Any, sketches: Sequence[Any]) -> list[list[bytes]]:  # noqa: ANN401 - datasketch has no types
    """Look up each sketch by itself, as datasketch documents it."""
    return [index.query(sketch) for sketch in sketches]


def batched(index: Any, sketches: Sequence[Any]) -> list[list[bytes]]:  # noqa: ANN401 - datasketch has no types
    """Look up all sketches in one pipeline for each band, through the storage of the index."""
    found: list[set[bytes]] = [set() for _ in sketches]
    for (start, end), table in zip(index.hashranges, index.hashtables, strict=True):
        buckets = table.getmany(*(index._H(sketch.hashvalues[start:end]) for sketch in sketches))
        for names, bucket in zip(found, buckets, strict=True):
            names.update(bucket)
    return [list(names) for names in found]


@dataclass(frozen=True)
class ByHand:
    """The work on a batch."""

    index: Any  # MinHashLSH of datasketch
    first: Any  # a sketch whose permutations all others share
    look: Look  # how the index is asked
    clock: StageClock  # measures the stages

    def events(self, records: Sequence[Any]) -> list[tuple[bytes, bytes]]:
        """Insert documents, and return key and event of those that share a band with another."""
        with self.clock.stage("parse and shingle"):
            texts = [json.loads(record.value)["text"] for record in records]
            shingles = [[each.encode() for each in word_shingles(usual_words(text))] for text in texts]
        with self.clock.stage("MinHash"):
            sketches = [self._sketch(each) for each in shingles]
        names = [b"%s@%d" % (record.key, record.offset) for record in records]
        with self.clock.stage("insert"), self.index.insertion_session() as session:
            for name, sketch in zip(names, sketches, strict=True):
                session.insert(name, sketch, check_duplication=False)
        with self.clock.stage("look up"):
            found = self.look(self.index, sketches)
        return [
            (name, json.dumps({"new": name.decode(), "like": [each.decode() for each in like[:_NAMED]]}).encode())
            for name, like in zip(names, found, strict=True)
            if len(like) > 1
        ]

    def _sketch(self, shingles: Sequence[bytes]) -> Any:  # noqa: ANN401 - datasketch has no types
        sketch = self.first.copy()
        sketch.update_batch(shingles)
        return sketch


def opened(settings: Settings, look: Look, clock: StageClock) -> ByHand:
    """Open an index on the Redis of these settings, under their namespace."""
    host, port = settings.redis.removeprefix("redis://").split("/")[0].split(":")
    storage = {"type": "redis", "basename": settings.namespace.encode(), "redis": {"host": host, "port": int(port)}}
    kinds = import_module("datasketch")
    index = kinds.MinHashLSH(threshold=_THRESHOLD, num_perm=SLOTS, storage_config=storage, prepickle=False)
    return ByHand(
        index, kinds.MinHash(num_perm=SLOTS, scheme="affine32", hashfunc=mmh3.mmh3_32_uintdigest), look, clock
    )


async def by_hand(settings: Settings, work: ByHand, committed: Callable[[Sequence[Any]], None]) -> None:
    """Consume, match, produce and commit, without end."""
    source, target = settings.topic_prefix + DOCUMENTS.name, settings.topic_prefix + NEAR_DUPLICATES.name
    options: dict[str, Any] = {"bootstrap_servers": settings.kafka}
    consumer = AIOKafkaConsumer(
        source, group_id=settings.group, enable_auto_commit=False, auto_offset_reset="earliest", **options
    )
    async with AIOKafkaProducer(acks="all", enable_idempotence=True, **options) as producer, consumer:
        while True:
            found = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            records = [record for part in found.values() for record in part]
            if not records:
                continue
            sent = [await producer.send(target, key=key, value=value) for key, value in work.events(records)]
            await asyncio.gather(*sent)
            await consumer.commit()
            committed(records)
