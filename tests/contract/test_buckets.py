"""Buckets of keys, in memory and on Redis."""

from collections.abc import Sequence

import pytest

from nearstream.streams.matching.protocol.tally import held_by
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, LINEAGE, Entry
from nearstream.streams.store.store import Store
from tests.contract.conftest import PARTITIONS

KEYS = b"".join(kind + bytes(8) for kind in (DIGEST, LINEAGE, BAND, ANCHOR))


async def enter(store: Store, numbers: Sequence[int], keys: bytes, hint: int = 0) -> None:
    await store.enter([Entry(number, hint, keys) for number in numbers])


async def held(store: Store, keys: bytes = KEYS) -> dict[bytes, list[int]]:
    """Return what buckets hold."""
    (found,) = await store.peek([Entry(0, 0, keys)])
    return dict(held_by(found))


async def test_a_full_bucket_keeps_its_oldest_and_its_newest(store: Store) -> None:
    numbers = [*range(PARTITIONS, 201 * PARTITIONS, PARTITIONS)]  # of one partition
    await enter(store, numbers, KEYS)
    assert await held(store) == {
        DIGEST + bytes(8): numbers[:6] + numbers[-6:],
        LINEAGE + bytes(8): numbers[-8:],
        BAND + bytes(8): numbers[:6] + numbers[-6:],
        ANCHOR + bytes(8): numbers[:12] + numbers[-38:],
    }


@pytest.mark.parametrize("kind", [DIGEST, LINEAGE, BAND, ANCHOR])
async def test_kinds_of_keys_never_meet(store: Store, kind: bytes) -> None:
    await enter(store, [7], kind + bytes(8))
    assert await held(store) == {kind + bytes(8): [7]}


async def test_who_enters_is_told_who_was_there_before(store: Store) -> None:
    answers = await store.enter([Entry(number, 0, KEYS) for number in (4, 8, 8, 12)])
    assert [[numbers for _, numbers in held_by(found)] for found in answers] == [
        *([], [[4]] * 4, [[4, 8]] * 4, [[4, 8]] * 4),
    ]


async def test_a_bucket_that_holds_the_hint_is_left_alone(store: Store) -> None:
    await enter(store, [1], DIGEST + bytes(8))
    await enter(store, [2], KEYS, hint=1)
    assert await held(store) == {
        DIGEST + bytes(8): [1],
        LINEAGE + bytes(8): [2],
        BAND + bytes(8): [2],
        ANCHOR + bytes(8): [2],
    }


async def test_who_withdraws_leaves_the_others(store: Store) -> None:
    for number in (1, 2, 3):
        await enter(store, [number], KEYS)
    entries = [Entry(2, 0, BAND + bytes(8)), Entry(9, 0, KEYS), Entry(3, 0, KEYS), Entry(1, 0, KEYS)]
    await store.tidy([], entries, [])
    assert await held(store) == {kind + bytes(8): [2] for kind in (DIGEST, LINEAGE, ANCHOR)}
