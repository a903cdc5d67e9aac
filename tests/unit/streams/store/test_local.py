"""What only a store in memory has: time by observation, and no memory of what has expired."""

import pickle

import pytest

from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Position, local_store
from tests.support.made_up import KEY, STANDARD, words
from tests.support.matched import matcher, put, removal, sign, verdict

FIVE_MINUTES = IndexLimits(retention_seconds=300)
TEXT = words(1, 80)


async def test_time_is_the_largest_observed_so_far() -> None:
    one = matcher(local_store(FIVE_MINUTES))
    await one.match(sign("a", TEXT))
    assert verdict(await one.match(sign("b", TEXT, 4))).verdict == "exact_duplicate"
    await one.match(sign("other", words(2, 80), 10))
    assert verdict(await one.match(sign("c", TEXT, 1))).verdict == "unique"


async def test_each_document_of_a_batch_that_spans_years_has_a_verdict() -> None:
    batch = [put(f"d{number}", words(number, 80), 600_000 * number) for number in range(5)]
    told = await matcher(local_store()).match_all([*batch, put("last", words(0, 80), 600_000 * 5)])
    assert [verdict(each).id for each in told] == [*(f"d{number}" for number in range(5)), "last"]


async def test_what_has_expired_takes_no_memory() -> None:
    """A family lasts for 50 minutes, and a page is updated for ever."""
    store, sizes, copies = local_store(FIVE_MINUTES), list[int](), 0
    one = Matcher(store, STANDARD, KEY)
    texts = [words(seed, 60) for seed in range(30)]
    for minute in range(600):
        own = [f"{minute}x{place}" for place in range(9)]
        copied = [*texts[minute // 50], str(minute)]
        text = [*texts[minute % 30], *own] if minute % 3 else copied
        batch = [put(f"d{minute}", text, minute, lineage=f"l{minute % 9}"), put("page", copied, minute)]
        told = await one.match_all([*batch, removal(f"d{minute - 2}")])
        copies += verdict(told[1]).verdict in ("near_duplicate", "exact_duplicate")
        if minute % 5 == 4:
            sizes.append(len(pickle.dumps(store._transport)))
    # The size at one moment depends on which texts expire then, so it is compared over 100 minutes.
    assert sum(sizes[-20:]) < 1.1 * sum(sizes[20:40])
    assert copies > 400


async def test_a_partition_that_an_index_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="a partition below 1 expected, not 1"):
        local_store().number(Position(1, 0))
