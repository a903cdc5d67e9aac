"""How full an index is, and what it takes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from streams.index import IndexState
from workers.redis_calls import ask, errors_mapped, memory_of
from workers.redis_index import RedisIndex
from workers.redis_part import Part
from workers.redis_reply import number_bytes

_SAMPLE = 200
_HOTTEST = 20
_KINDS = {b"x": "digest", b"l": "lineage", b"b": "band", b"a": "anchor"}
_HEAD_BYTES = 5 * 12
_GROUP = 16  # states of a hash
_OFFSETS = 256  # of a hash of answers


@dataclass(frozen=True)
class ChunkFacts:
    """How full the chunks of one kind of keys are, from a sample.

    Attributes:
        kind: `digest`, `lineage`, `band`, `anchor` or `registry`.
        chunks: How many there are.
        mean: Fields of a chunk; above 200 a rebuild with more documents expected is due.
        largest: Fields of the fullest that was looked at; above 512 it takes several times the memory.
    """

    kind: str
    chunks: int
    mean: float
    largest: int


@dataclass(frozen=True)
class HotBucket:
    """A bucket that overflows: its kind, chunk and field in hex, how often."""

    kind: str
    bucket: str
    overflows: int


@dataclass(frozen=True)
class PartFacts:
    """What a part of an index holds; what is marked so is estimated from a sample of its chunks.

    Attributes:
        key: The key of its facts.
        epoch: Names this filling of the index, in hex.
        state: Whether it can be trusted.
        documents: Live documents, those expired but not yet swept too; estimated.
        numbers: Numbers given so far.
        floor: The first number that has not expired.
        rebuilt: The last number that a rebuild gave; 0: none did.
        kept: Documents that a report keeps beyond their retention.
        checkpoints: Last offset admitted, by partition.
        chunks: By kind; estimated.
        memory_bytes: By what it is used for; estimated, None if our user may not ask for it.
        overflows: How often a bucket was full for an admission.
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
    """Sums over a sample, as they would be over all."""

    sizes: Sequence[int]
    total_bytes: int
    spilled_bytes: int = 0


async def index_facts(index: RedisIndex) -> tuple[PartFacts, ...]:
    """The facts of each part; looks at no more than some thousand keys, so large indexes are estimated.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        return tuple([await _part_facts(part) for part in index.parts])


async def _part_facts(part: Part) -> PartFacts:
    facts = await part.facts()
    numbers, floor = int(facts.get(b"done", 0)), int(facts.get(b"floor", 1))
    checkpoints = await part.checkpoints()
    counts = {**_chunk_counts(part), b"i": part.layout.registry}
    samples = {letter: await _chunks(part, letter, count) for letter, count in counts.items()}
    overflows = await ask(part.client, "HGETALL", part.tag + b"h")
    registry = samples[b"i"].sizes
    return PartFacts(
        key=part.key.decode(),
        epoch=part.layout.epoch.hex(),
        state=await part.state(),
        documents=round(sum(registry) * part.layout.registry / max(len(registry), 1)),
        numbers=numbers,
        floor=floor,
        rebuilt=int(facts.get(b"rebuilt", 0)),
        kept=await ask(part.client, "ZCARD", part.tag + b"s"),
        checkpoints=checkpoints,
        chunks=tuple(_chunk_facts(letter, counts[letter], sample.sizes) for letter, sample in samples.items()),
        memory_bytes=await _memory(part, samples, (floor, numbers), checkpoints),
        overflows=sum(map(int, overflows.values())),
        hottest=_hottest(overflows),
    )


def _chunk_counts(part: Part) -> dict[bytes, int]:
    layout = part.layout
    return {b"x": layout.digests, b"l": layout.lineages, b"b": layout.bands, b"a": layout.anchors}


def _chunk_facts(letter: bytes, count: int, sizes: Sequence[int]) -> ChunkFacts:
    mean = round(sum(sizes) / max(len(sizes), 1), 1)
    return ChunkFacts(_KINDS.get(letter, "registry"), count, mean, max(sizes, default=0))


def _hottest(overflows: dict[bytes, bytes]) -> tuple[HotBucket, ...]:
    known = [(int(count), name) for name, count in overflows.items() if name != b"*"]
    best = sorted(known, reverse=True)[:_HOTTEST]
    return tuple(HotBucket(_KINDS[name[:1]], name[1:].hex(), count) for count, name in best)


async def _memory(
    part: Part, samples: dict[bytes, _Sample], numbers: tuple[int, int], checkpoints: dict[int, int]
) -> dict[str, int] | None:
    tag = part.tag
    if await memory_of(part.client, part.key) is None:
        return None
    first, last = numbers[0] // _GROUP, numbers[1] // _GROUP
    groups = await _sampled(part, lambda at: tag + b"r" + number_bytes(first + at), last - first + 1)
    found = {f"{name}s": samples[letter].total_bytes for letter, name in _KINDS.items()}
    found |= {"spills": samples[b"a"].spilled_bytes, "registry": samples[b"i"].total_bytes, "records": groups}
    found["outbox"] = await _answers(part, b"o", checkpoints)
    found["removals"] = await _answers(part, b"d", checkpoints)
    found["rest"] = sum([await _bytes(part, tag + letter) for letter in (b"m", b"g", b"s", b"h")])
    return found


async def _answers(part: Part, letter: bytes, checkpoints: dict[int, int]) -> int:
    total = 0
    for partition, offset in checkpoints.items():
        head = part.tag + letter + partition.to_bytes(2, "big")
        total += await _sampled(part, partial(_answer_key, head), offset // _OFFSETS + 1)
    return total


def _answer_key(head: bytes, at: int) -> bytes:
    return head + at.to_bytes(6, "big")


async def _bytes(part: Part, key: bytes) -> int:
    return await memory_of(part.client, key) or 0


async def _chunks(part: Part, letter: bytes, count: int) -> _Sample:
    chosen = _choose(count)
    sizes, total, spilled = [], 0, 0
    for at in chosen:
        chunk = at.to_bytes(4, "big")
        key = part.tag + letter + chunk
        sizes.append(await ask(part.client, "HLEN", key))
        total += await _bytes(part, key)
        if letter == b"a":
            spilled += await _spilled(part, chunk)
    scale = count / max(len(chosen), 1)
    return _Sample(sizes, round(total * scale), round(spilled * scale))


async def _spilled(part: Part, chunk: bytes) -> int:
    fields = await ask(part.client, "HGETALL", part.tag + b"a" + chunk)
    full = [field for field, numbers in fields.items() if len(numbers) == _HEAD_BYTES]
    return sum([await _bytes(part, part.tag + b"w" + chunk + field) for field in full])


async def _sampled(part: Part, key_of: Callable[[int], bytes], count: int) -> int:
    """Bytes of all of so many keys, from a sample."""
    chosen = _choose(count)
    total = sum([await _bytes(part, key_of(at)) for at in chosen])
    return round(total * count / max(len(chosen), 1))


def _choose(count: int) -> list[int]:
    """Up to so many of the first numbers, the same ones each time."""
    return list(range(count)) if count <= _SAMPLE else sorted(random.Random(1).sample(range(count), _SAMPLE))  # noqa: S311 - no secret
