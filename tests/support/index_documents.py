"""Small documents for index tests, with named keys so that a test shows what is shared."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from random import Random

from msgspec.structs import replace as replace_fields

from nearstream.schemas.signature import Origin, Signature
from nearstream.streams.counterpart import own_family
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import FamilyFacts, Pair, Sending, Settlement
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.store.limits import Admission, Admitted, IndexLimits
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.families import families
from nearstream.workers.redis_index.index import RedisIndex

AnyIndex = MemoryIndex | RedisIndex
Make = Callable[[IndexLimits], Awaitable[AnyIndex]]

SCHEME = "test-1"
FINGERPRINT = "0badcafe"
NO_KEYS = Keys(b"", None, (), ())
START_MS = 1_700_000_000_000


def key(kind: str, name: object) -> bytes:
    return blake2b(f"{kind}\0{name}".encode(), digest_size=8).digest()


def admission(
    name: str,
    *,
    bands: Sequence[object] = (),
    anchors: Sequence[object] = (),
    text: object = None,
    lineage: str | None = None,
    at: int = 0,
) -> Admission:
    """Return the admission of a document with this id and these keys.

    `text` represents its normal form, which is unique by default. `at` is in ms.
    """
    text = f"text of {name} {bands} {anchors}" if text is None else text
    digest = blake2b(str(text).encode(), digest_size=16).digest()
    signature = Signature(
        SCHEME, "default", name, digest, digest, START_MS + at, 1, 1, 1, 1, False, b"\1", 16, b"", b"", b"", lineage
    )
    keys = Keys(
        key("digest", text),
        None if lineage is None else key("lineage", lineage),
        tuple(key("band", one) for one in dict.fromkeys(bands)),
        tuple(key("anchor", one) for one in dict.fromkeys(anchors)),
    )
    return Admission(f"default/{name}", signature, keys)


def removal(name: str) -> Admission:
    return Admission(f"default/{name}", None, NO_KEYS)


def sent_at(one: Admission, offset: int, partition: int = 0, ms: int = 0) -> Admission:
    """Return the admission with its record on `documents`, whose timestamp is `ms`, 0 if it is not known."""
    origin = Origin("documents", partition, offset, ms)
    if one.signature is None:
        return replace(one, removal=origin)
    return replace(one, signature=replace_fields(one.signature, origin=origin))


def at_offset(one: Admission, offset: int, partition: int = 0) -> Admission:
    return replace(one, position=Position(partition, offset))


def in_order(batch: Sequence[Admission], first: int = 0) -> list[Admission]:
    """Return the batch as consecutive records of partition 0."""
    return [at_offset(one, first + step) for step, one in enumerate(batch)]


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.signature.id for candidate in candidates]


def pairs(batch: Sequence[Admission], answers: Sequence[Admitted]) -> set[tuple[str, str]]:
    """Return the pairs that a matcher would compare, by id and version."""
    return {
        (name(one), f"{other.signature.id} {other.signature.version}")
        for one, answer in zip(batch, answers, strict=True)
        if answer.status is not Status.UNCHANGED
        for other in (*answer.candidates, *([answer.previous] if answer.previous else []))
    }


def settlement(
    one: Admission,
    answer: Admitted,
    joins: Candidate | None = None,
    related: Sequence[Pair] = (),
    *,
    is_exact: bool = False,
    keeps: bool = False,
) -> Settlement:
    """Return what a matcher tells about a document that joins the family of another, or founds one."""
    assert one.signature is not None
    family = own_family(0, one.signature if joins is None else joins.signature)
    place = joins.number if joins else 0
    named = (family.family_id, family.first_seen_ms)
    return Settlement(answer.number, one.signature, place, is_exact, keeps, *named, tuple(related))


def pair(candidate: Candidate, relation: str = "near_duplicate", sending: Sending = Sending.ONCE) -> Pair:
    return Pair(relation, sending, candidate.number, candidate)


async def facts_of_families(index: AnyIndex, now_ms: int = START_MS) -> list[FamilyFacts]:
    """Return the facts about all families of an index."""
    if isinstance(index, MemoryIndex):
        return list(await index.families())
    return [facts async for facts in families(index, now_ms)]


def name(one: Admission) -> str:
    return one.document_key if one.signature is None else f"{one.signature.id} {one.signature.version}"


def traffic(random: Random, records: int, names: int) -> list[Admission]:
    """Return records of one partition that cover all kinds of traffic.

    There are templates, copies, long documents, updates, late states, lineages and removals.
    """
    batch = []
    for offset in range(records):
        own = f"d{random.randrange(names)}"
        template = random.randrange(4)
        anchors = [f"{template}.{slot}" if random.random() < 0.5 else random.random() for slot in range(9)]
        if random.random() < 0.2:
            anchors += [random.random() for _ in range(60)]
        batch.append(
            removal(own)
            if random.random() < 0.1
            else admission(
                own,
                bands=[f"{template}.{slot}" if random.random() < 0.4 else random.random() for slot in range(5)],
                anchors=anchors,
                text=random.randrange(80) if random.random() < 0.6 else None,
                lineage=random.choice([None, None, f"l{random.randrange(6)}"]),
                at=offset * 10 + random.randrange(-400, 400),
            )
        )
    return in_order(batch)


def with_repeats(batch: Sequence[Admission], random: Random) -> list[Admission]:
    """Return the batch with about 30 % of its records replaced by repeats of recent ones.

    A repeat has the offset of the record that it replaces.
    """
    mixed = list(batch)
    for at in range(20, len(mixed)):
        if random.random() < 0.3:
            mixed[at] = replace(mixed[at - random.randrange(1, 20)], position=batch[at].position)
    return mixed


def admit_share(address: IndexAddress, share: int, count: int) -> dict[str, list[str]]:
    """Admit one share of the documents and return the candidates of each.

    Several processes run this at once, each with another share.
    """

    async def run() -> dict[str, list[str]]:
        index = await RedisIndex.open(address, may_create=True)
        order = Random(share).sample(range(count), count)
        met: dict[str, list[str]] = {}
        for start in range(0, count, 7):
            batch = [admission(f"{share}-{pair}", bands=[pair]) for pair in order[start : start + 7]]
            for one, answer in zip(batch, await index.admit(batch), strict=True):
                met[one.document_key.removeprefix("default/")] = ids(answer.candidates)
        await index.close()
        return met

    return asyncio.run(run())
