"""Which state of a document is the newest, in both kinds of index."""

from random import Random

import pytest

from nearstream.streams.store.limits import Admission, IndexLimits
from tests.support.index_documents import START_MS, AnyIndex, Make, admission, in_order, sent_at

OFFSETS = (0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**40)


async def live_version(index: AnyIndex) -> str:
    """Return the version of the document's current state."""
    (found,) = await index.look_up(admission("a", bands=[1]).keys, 9, START_MS)
    return found.signature.version


def version(one: Admission) -> str:
    assert one.signature is not None
    return one.signature.version


@pytest.mark.parametrize("turn", [1, -1], ids=["as_sent", "last_first"])
@pytest.mark.parametrize("text", range(6))
async def test_of_two_states_of_one_moment_the_one_sent_later_is_live(index: AnyIndex, text: int, turn: int) -> None:
    states = [sent_at(admission("a", bands=[1], text=f"{text} {offset}"), offset) for offset in OFFSETS]
    await index.admit(in_order(states[::turn]), START_MS)
    assert await live_version(index) == version(states[-1])


@pytest.mark.parametrize("offset", OFFSETS)
async def test_the_time_comes_before_the_position(index: AnyIndex, offset: int) -> None:
    early = sent_at(admission("a", bands=[1], text="v1", at=1), offset + 1)
    late = sent_at(admission("a", bands=[1], text="v2", at=2), offset)
    await index.admit(in_order([late, early]), START_MS)
    assert await live_version(index) == version(late)


@pytest.mark.parametrize("seed", range(8))
async def test_states_have_one_order_however_they_arrive(make: Make, index: AnyIndex, seed: int) -> None:
    random = Random(seed)
    states = [
        sent_at(one, random.choice(OFFSETS), random.choice([0, 1, 300])) if random.random() < 0.8 else one
        for one in (admission("a", bands=[1], text=number, at=random.randrange(2)) for number in range(12))
    ]
    await index.admit(in_order(states), START_MS)
    expected = await live_version(index)
    for _ in range(5):
        other = await make(IndexLimits(documents=6_400))
        await other.admit(in_order(random.sample(states, len(states))), START_MS)
        assert await live_version(other) == expected
