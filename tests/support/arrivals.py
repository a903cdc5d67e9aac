"""Documents as they arrive from a topic of several partitions."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.store.store import Position, Store
from tests.support.made_up import KEY, NOON, STANDARD, sign, words

TEXT = words(1, 600)
NEAR = [*TEXT[:300], *words(2, 12), *TEXT[300:]]
OTHER = words(3, 600)


def arrivals(texts: Sequence[tuple[str, list[str]]], partitions: int) -> list[Arrival]:
    """Return documents with these ids, a minute apart. All states of one document are in one partition."""
    offsets, found = Counter[int](), []
    for minute, (name, text) in enumerate(texts):
        signature = sign(text, name, observed_at=NOON + timedelta(minutes=minute))
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
