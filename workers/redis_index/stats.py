"""How full an index is, and how much memory it takes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from nearstream.streams.store.limits import ANCHOR_HEADS, IndexState
from nearstream.workers.redis_index.client import ask, lengths_of, memories_of
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import (
    ANSWER_OFFSETS,
    BUCKET_KINDS,
    CHUNK_BYTES,
    CHUNKED_KINDS,
    GROUP,
    NUMBER_BYTES,
    KeyKind,
)
from nearstream.workers.redis_index.shard import Shard
from nearstream.workers.redis_index.values import bucket_name, number_bytes

CROWDED = 200  # mean fields of a chunk from which on an index should be rebuilt for more documents

_SIZES = 10_000  # chunks of one kind of buckets whose fields are counted
_REGISTRY_SIZES = 500_000  # chunks of the registry: all of them, up to twenty million documents expected in a shard
_SAMPLE = 1_000  # keys of one kind whose memory is measured
_HOTTEST = 20

KeyOf = Callable[[int], bytes]


@dataclass(frozen=True)
class ChunkFacts:
    """How full the chunks of one kind are, estimated from a sample.

    Attributes:
        kind: `digest`, `lineage`, `band`, `anchor` or `registry`.
        chunks: Count of chunks.
        mean: Mean count of fields of a chunk. `CROWDED` is too many.
        largest: Count of fields of the largest chunk in the sample. Above 512, a chunk takes several times the memory.
    """

    kind: str
    chunks: int
    mean: float
    largest: int


@dataclass(frozen=True)
class HotBucket:
    """A bucket that overflows.

    Attributes:
        kind: `digest`, `lineage`, `band` or `anchor`.
        name: Its chunk and field.
        overflows: How often it overflowed.
    """

    kind: str
    name: str
    overflows: int


@dataclass(frozen=True)
class ShardFacts:
    """What a shard of an index contains. Some numbers are estimated from a sample.

    Attributes:
        key: The key of its facts.
        epoch: The generation of the index, in hex.
        state: Whether it can be trusted.
        documents: Live documents, and expired ones that were not yet swept.
        numbers: Count of numbers given so far.
        floor: The first number that has not expired.
        rebuilt: The last number that a rebuild gave, 0 without a rebuild.
        kept: Documents that a report keeps beyond their retention.
        checkpoints: The last offset admitted, by partition.
        chunks: How full the chunks are, by kind. Estimated.
        memory_bytes: Memory by purpose. Estimated. None if our user may not run MEMORY USAGE.
        overflows: How often an admission found a bucket full.
        hottest: The buckets that overflow most.
    """

    key: str
    epoch: str
    state: IndexState
    documents: int
    numbers: int
    floor: int
    rebuilt: int
    kept: int
    checkpoints: dict[int, int]
    chunks: tuple[ChunkFacts, ...]
    memory_bytes: dict[str, int] | None
    overflows: int
    hottest: tuple[HotBucket, ...]


@dataclass(frozen=True)
class _Sample:
    """Fields of chunks.

    Attributes:
        sizes: Count of fields of each chunk in the sample.
        total: Fields of all chunks, estimated from the sample.
    """

    sizes: Sequence[int]
    total: int

    @property
    def mean(self) -> float:
        """Mean count of fields of a chunk."""
        return sum(self.sizes) / max(len(self.sizes), 1)


async def index_facts(index: RedisIndex) -> tuple[ShardFacts, ...]:
    """Return the facts of each shard.

    Each kind of chunks is sampled, so the numbers about buckets and memory are estimates. The documents are counted
    exactly, unless a shard was made for more than twenty million.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        return tuple([await _shard_facts(shard) for shard in index.shards])


async def mean_fields(index: RedisIndex) -> float:
    """Return the highest mean count of fields of a chunk, estimated.

    It is the maximum over all shards and kinds of chunks. `CROWDED` is too many.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        return max(
            [(await _chunk_sample(shard, kind, _SAMPLE)).mean for shard in index.shards for kind in CHUNKED_KINDS]
        )


async def _shard_facts(shard: Shard) -> ShardFacts:
    facts = await shard.facts()
    numbers, floor = int(facts.get(b"done", 0)), int(facts.get(b"floor", 1))
    spared = await ask(shard.client, "ZCARD", shard.tag + KeyKind.SPARED)
    checkpoints = await shard.checkpoints()
    samples = {kind: await _chunk_sample(shard, kind, _SIZES) for kind in BUCKET_KINDS}
    samples[KeyKind.REGISTRY] = await _chunk_sample(shard, KeyKind.REGISTRY, _REGISTRY_SIZES)
    overflows = await ask(shard.client, "HGETALL", shard.tag + KeyKind.OVERFLOWS)
    return ShardFacts(
        key=shard.key.decode(),
        epoch=shard.layout.epoch.hex(),
        state=await shard.state(),
        documents=min(samples[KeyKind.REGISTRY].total, numbers - floor + 1 + spared),
        numbers=numbers,
        floor=floor,
        rebuilt=int(facts.get(b"rebuilt", 0)),
        kept=spared,
        checkpoints=checkpoints,
        chunks=tuple(_chunk_facts(kind, shard.layout.chunks[kind], sample) for kind, sample in samples.items()),
        memory_bytes=await _memory(shard, floor, numbers, checkpoints),
        overflows=sum(map(int, overflows.values())),
        hottest=_hottest(overflows),
    )


def _chunk_facts(kind: KeyKind, count: int, sample: _Sample) -> ChunkFacts:
    return ChunkFacts(kind.label, count, round(sample.mean, 2), max(sample.sizes, default=0))


def _hottest(overflows: dict[bytes, bytes]) -> tuple[HotBucket, ...]:
    known = [(int(count), name) for name, count in overflows.items() if name != b"*"]
    best = sorted(known, reverse=True)[:_HOTTEST]
    return tuple(HotBucket(KeyKind(name[:1]).label, bucket_name(name[1:]), count) for count, name in best)


async def _memory(shard: Shard, floor: int, last: int, checkpoints: dict[int, int]) -> dict[str, int] | None:
    """Return the memory by purpose, or None if our user may not run MEMORY USAGE."""
    tag = shard.tag
    single = (KeyKind.FACTS, KeyKind.MARKS, KeyKind.SPARED, KeyKind.OVERFLOWS)
    rest = await memories_of(shard.client, [tag + kind for kind in single])
    if rest is None:
        return None
    found = {f"{kind.label}s": await _chunk_memory(shard, kind) for kind in BUCKET_KINDS}
    found["spills"] = await _spill_memory(shard)
    found["registry"] = await _chunk_memory(shard, KeyKind.REGISTRY)
    first_group, last_group = floor // GROUP, last // GROUP
    records = partial(_numbered_key, tag + KeyKind.RECORDS, first_group)
    found["records"] = await _sampled_memory(shard, records, last_group - first_group + 1)
    families = partial(_numbered_key, tag + KeyKind.FAMILIES, first_group)
    found["families"] = await _sampled_memory(shard, families, last_group - first_group + 1)
    members = partial(_numbered_key, tag + KeyKind.MEMBERS, floor)
    found["members"] = await _sampled_memory(shard, members, last - floor + 1)
    found["removals"] = await _removal_memory(shard, checkpoints)
    found["rest"] = sum(rest)
    return found


async def _removal_memory(shard: Shard, checkpoints: dict[int, int]) -> int:
    total = 0
    for partition, offset in checkpoints.items():
        head = shard.tag + KeyKind.REMOVALS + partition.to_bytes(2, "big")
        total += await _sampled_memory(shard, partial(_answer_key, head), offset // ANSWER_OFFSETS + 1)
    return total


def _numbered_key(head: bytes, first: int, index: int) -> bytes:
    return head + number_bytes(first + index)


def _answer_key(head: bytes, index: int) -> bytes:
    return head + index.to_bytes(6, "big")


def _chunk_keys(shard: Shard, kind: KeyKind) -> KeyOf:
    return lambda index: shard.tag + kind + index.to_bytes(CHUNK_BYTES, "big")


async def _chunk_sample(shard: Shard, kind: KeyKind, most: int) -> _Sample:
    count = shard.layout.chunks[kind]
    chosen = _choose(count, most)
    chunks = [index.to_bytes(CHUNK_BYTES, "big") for index in chosen]
    sizes = await lengths_of(shard.client, shard.key, kind, chunks)
    return _Sample(sizes, round(sum(sizes) * count / max(len(chosen), 1)))


async def _chunk_memory(shard: Shard, kind: KeyKind) -> int:
    return await _sampled_memory(shard, _chunk_keys(shard, kind), shard.layout.chunks[kind])


async def _spill_memory(shard: Shard) -> int:
    """Return the bytes of the spills of all anchor buckets, estimated from a sample of chunks."""
    count = shard.layout.chunks[KeyKind.ANCHOR]
    chosen = _choose(count, _SAMPLE)
    spills = []
    for index in chosen:
        chunk = index.to_bytes(CHUNK_BYTES, "big")
        fields = await ask(shard.client, "HGETALL", shard.tag + KeyKind.ANCHOR + chunk)
        full = [field for field, numbers in fields.items() if len(numbers) == NUMBER_BYTES * ANCHOR_HEADS]
        spills += [shard.tag + KeyKind.SPILL + chunk + field for field in full]
    total = sum(await memories_of(shard.client, spills) or ())
    return round(total * count / max(len(chosen), 1))


async def _sampled_memory(shard: Shard, key_of: KeyOf, count: int) -> int:
    """Return the bytes of `count` keys, estimated from a sample."""
    chosen = _choose(count, _SAMPLE)
    total = sum(await memories_of(shard.client, list(map(key_of, chosen))) or ())
    return round(total * count / max(len(chosen), 1))


def _choose(count: int, most: int) -> list[int]:
    """Return up to `most` numbers below `count`, equal in each call."""
    return list(range(count)) if count <= most else sorted(random.Random(1).sample(range(count), most))  # noqa: S311 - no secret
