"""Documents of one topic, matched in the order of their records on `signatures`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.arriving import Arrival, Arriving
from nearstream.streams.matching.looking_up import Neighbours, look_up_all, newcomer
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.store.store import Position, Store
from tests.support import made_up
from tests.support.made_up import KEY, NEAR, NOON, OTHER, STANDARD, TEXT, words

_THRESHOLDS = Thresholds()


async def look_up(store: Store, asked: Arriving) -> Neighbours:
    """Return the neighbours of one document."""
    (near,) = await look_up_all(store, [asked])
    return near


def sign(name: str, text: list[str] | str, minute: float = 0, **fields: object) -> Signature:
    """Sign a text or its words, observed so many minutes after noon."""
    return made_up.sign(text, name, observed_at=NOON + timedelta(minutes=minute), **fields)


def put(name: str, text: list[str] | str, minute: float = 0, **fields: object) -> Arrival:
    """Return the arrival of a document."""
    signature = sign(name, text, minute, **fields)
    return Arrival(signature.document_key, signature)


def removal(name: str, collection: str = "default") -> Arrival:
    return Arrival(f"{collection}/{name}", None, removed_at_ms=1_790_000_000_000)


def sent_at(one: Arrival, offset: int, partition: int = 0, ms: int = 0) -> Arrival:
    """Return the arrival with its record on `documents`, whose timestamp is `ms`, 0 if it is not known."""
    origin = Origin("documents", partition, offset, ms)
    if one.signature is None:
        return replace(one, removal=origin)
    return replace(one, signature=replace_fields(one.signature, origin=origin))


def in_order(arrivals: Sequence[Arrival], first: int = 0, partition: int = 0) -> list[Arrival]:
    """Return consecutive records of a partition of `signatures`."""
    return [replace(one, position=Position(partition, at)) for at, one in enumerate(arrivals, first)]


def arrivals(texts: Sequence[tuple[str, list[str]]], partitions: int) -> list[Arrival]:
    """Return documents with these ids, a minute apart. All states of one document are in one partition."""
    offsets, found = Counter[int](), []
    for minute, (name, text) in enumerate(texts):
        signature = sign(name, text, minute)
        partition = sum(name.encode()) % partitions
        found.append(Arrival(signature.document_key, signature, Position(partition, offsets[partition])))
        offsets[partition] += 1
    return found


def crawl(partitions: int) -> list[Arrival]:
    """Return documents, copies of some, updates and unrelated ones."""
    texts = [("a", TEXT), ("b", NEAR), ("c", OTHER), ("d", TEXT), ("b", [*NEAR, *words(9, 40)]), ("e", OTHER[:-3])]
    texts += [(f"u{seed}", words(seed, 200)) for seed in range(20, 30)]
    return arrivals([*texts, ("f", NEAR), ("c", TEXT), ("g", words(25, 200))], partitions)


def matcher(store: Store) -> Matcher:
    return Matcher(store, STANDARD, KEY)


def verdict(matched: Matched) -> DocumentVerdict:
    assert matched.verdict is not None
    return matched.verdict


async def neighbours(store: Store, signature: Signature) -> Neighbours:
    """Return what a look-up finds for a document."""
    return await look_up(store, newcomer(signature, STANDARD, KEY, _THRESHOLDS))


async def found(store: Store, signature: Signature) -> list[str]:
    """Return the ids of the documents that a look-up finds."""
    return [each.earlier.id for each in (await neighbours(store, signature)).candidates]
