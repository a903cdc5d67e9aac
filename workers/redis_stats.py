"""How full an index is, and what it takes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from streams.index import IndexState
from workers.redis_calls import ask, errors_mapped
from workers.redis_index import RedisIndex
from workers.redis_part import Part
from workers.redis_reading import lengths_of, memories_of
from workers.redis_reply import bucket_name, number_bytes

CROWDED = 200  # fields of a chunk: from here on an index has to be made with more documents expected

_SIZES = 10_000  # chunks whose fields are counted
_SAMPLE = 1_000  # keys whose bytes are
_HOTTEST = 20
_KINDS = {b"x": "digest", b"l": "lineage", b"b": "band", b"a": "anchor"}
_HEAD_BYTES = 5 * 12
_GROUP = 16  # states of a hash
_OFFSETS = 256  # of a hash of answers

KeyOf = Callable[[int], bytes]


@dataclass(frozen=True)
class ChunkFacts:
    """How full the chunks of one kind of keys are, from a sample.

    Attributes:
        kind: `digest`, `lineage`, `band`, `anchor` or `registry`.
        chunks: How many there are.
        mean: Fields of a chunk; `CROWDED` is too many.
        largest: Fields of the fullest that was looked at; above 512 it takes several times the memory.
    """

    kind: str
    chunks: int
    mean: float
    largest: int


@dataclass(frozen=True)
class HotBucket:
    """A bucket that overflows: its kind, chunk and field, how often."""

    kind: str
    name: str
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
    """Fields of the chunks that were looked at, and of all, as estimated from these."""

    sizes: Sequence[int]
    total: int


async def index_facts(index: RedisIndex) -> tuple[PartFacts, ...]:
    """The facts of each part; looks at some ten thousand keys of each kind at most, so large indexes are estimated.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        return tuple([await _part_facts(part) for part in index.parts])


async def mean_fields(index: RedisIndex) -> float:
    """Fields of a chunk on average, of the part and the kind that have most; estimated. `CROWDED` is too many.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        means = [
            sum(sizes) / max(len(sizes), 1)
            for part in index.parts
            for letter, count in _chunk_counts(part).items()
            for sizes in [(await _chunks(part, letter, count, _SAMPLE)).sizes]
        ]
    return max(means)


async def _part_facts(part: Part) -> PartFacts:
    facts = await part.facts()
    numbers, floor = int(facts.get(b"done", 0)), int(facts.get(b"floor", 1))
    kept = await ask(part.client, "ZCARD", part.tag + b"s")
    checkpoints = await part.checkpoints()
    counts = _chunk_counts(part)
    samples = {letter: await _chunks(part, letter, count, _SIZES) for letter, count in counts.items()}
    overflows = await ask(part.client, "HGETALL", part.tag + b"h")
    return PartFacts(
        key=part.key.decode(),
        epoch=part.layout.epoch.hex(),
        state=await part.state(),
        documents=min(samples[b"i"].total, numbers - floor + 1 + kept),
        numbers=numbers,
        floor=floor,
        rebuilt=int(facts.get(b"rebuilt", 0)),
        kept=kept,
        checkpoints=checkpoints,
        chunks=tuple(_chunk_facts(letter, counts[letter], sample.sizes) for letter, sample in samples.items()),
        memory_bytes=await _memory(part, counts, (floor, numbers), checkpoints),
        overflows=sum(map(int, overflows.values())),
        hottest=_hottest(overflows),
    )


def _chunk_counts(part: Part) -> dict[bytes, int]:
    layout = part.layout
    return {
        b"x": layout.digests,
        b"l": layout.lineages,
        b"b": layout.bands,
        b"a": layout.anchors,
        b"i": layout.registry,
    }


def _chunk_facts(letter: bytes, count: int, sizes: Sequence[int]) -> ChunkFacts:
    mean = round(sum(sizes) / max(len(sizes), 1), 2)
    return ChunkFacts(_KINDS.get(letter, "registry"), count, mean, max(sizes, default=0))


def _hottest(overflows: dict[bytes, bytes]) -> tuple[HotBucket, ...]:
    known = [(int(count), name) for name, count in overflows.items() if name != b"*"]
    best = sorted(known, reverse=True)[:_HOTTEST]
    return tuple(HotBucket(_KINDS[name[:1]], bucket_name(name[1:]), count) for count, name in best)


async def _memory(
    part: Part, counts: dict[bytes, int], numbers: tuple[int, int], checkpoints: dict[int, int]
) -> dict[str, int] | None:
    tag = part.tag
    rest = await memories_of(part.client, [tag + letter for letter in (b"m", b"g", b"s", b"h")])
    if rest is None:
        return None
    first, last = numbers[0] // _GROUP, numbers[1] // _GROUP
    found = {
        f"{name}s": await _sampled(part, _keys_of(part, letter), counts[letter]) for letter, name in _KINDS.items()
    }
    found["spills"] = await _spilled(part, counts[b"a"])
    found["registry"] = await _sampled(part, _keys_of(part, b"i"), counts[b"i"])
    found["records"] = await _sampled(part, lambda at: tag + b"r" + number_bytes(first + at), last - first + 1)
    found["outbox"] = await _answers(part, b"o", checkpoints)
    found["removals"] = await _answers(part, b"d", checkpoints)
    found["rest"] = sum(rest)
    return found


async def _answers(part: Part, letter: bytes, checkpoints: dict[int, int]) -> int:
    total = 0
    for partition, offset in checkpoints.items():
        head = part.tag + letter + partition.to_bytes(2, "big")
        total += await _sampled(part, partial(_answer_key, head), offset // _OFFSETS + 1)
    return total


def _answer_key(head: bytes, at: int) -> bytes:
    return head + at.to_bytes(6, "big")


def _keys_of(part: Part, letter: bytes) -> KeyOf:
    return lambda at: part.tag + letter + at.to_bytes(4, "big")


async def _chunks(part: Part, letter: bytes, count: int, most: int) -> _Sample:
    chosen = _choose(count, most)
    sizes = await lengths_of(part.client, list(map(_keys_of(part, letter), chosen)))
    return _Sample(sizes, round(sum(sizes) * count / max(len(chosen), 1)))


async def _spilled(part: Part, count: int) -> int:
    """Bytes of the spills of all anchor chunks, from a sample."""
    chosen = _choose(count, _SAMPLE)
    spills = []
    for at in chosen:
        chunk = at.to_bytes(4, "big")
        fields = await ask(part.client, "HGETALL", part.tag + b"a" + chunk)
        full = [field for field, numbers in fields.items() if len(numbers) == _HEAD_BYTES]
        spills += [part.tag + b"w" + chunk + field for field in full]
    total = sum(await memories_of(part.client, spills) or ())
    return round(total * count / max(len(chosen), 1))


async def _sampled(part: Part, key_of: KeyOf, count: int) -> int:
    """Bytes of all of so many keys, from a sample."""
    chosen = _choose(count, _SAMPLE)
    total = sum(await memories_of(part.client, list(map(key_of, chosen))) or ())
    return round(total * count / max(len(chosen), 1))


def _choose(count: int, most: int) -> list[int]:
    """Up to so many of the first numbers, the same ones each time."""
    return list(range(count)) if count <= most else sorted(random.Random(1).sample(range(count), most))  # noqa: S311 - no secret
