"""How long a worker waits for more records before it takes a batch."""

import asyncio

from nearstream.workers.pipeline import claims as module
from nearstream.workers.pipeline.claims import LINGER_MS, Claims

MOST = 32
ONE, OTHER = ("in", 0), ("in", 1)


def after(*sizes: int) -> Claims:
    """Return the claims after batches of these sizes, of which the last one is in work."""
    claims = Claims()
    for size in sizes:
        claims.release([ONE])
        claims.claim([ONE], size, MOST)
    return claims


async def is_taken_at_once(claims: Claims) -> bool:
    """Return whether the next batch waits for nothing."""
    gathering = asyncio.ensure_future(claims.gather())
    await asyncio.sleep(0)
    is_done = gathering.done()
    gathering.cancel()
    await asyncio.wait([gathering])
    return is_done


def test_records_that_come_one_by_one_are_not_waited_for() -> None:
    assert after(1, 1, 2, 1).linger_ms == 0


def test_the_broker_lingers_longer_the_longer_several_records_come_together() -> None:
    waits = [after(*[5] * count).linger_ms for count in range(7)]
    assert waits == [0, 2, 4, 8, 16, LINGER_MS, LINGER_MS]


def test_the_broker_stops_to_linger_when_records_come_one_by_one_again() -> None:
    busy = [5] * 6
    assert [after(*busy, *[1] * count).linger_ms for count in range(6)] == [LINGER_MS, 10, 5, 2, 0, 0]


def test_batches_of_two_change_nothing() -> None:
    assert after(5, 5, 2, 2).linger_ms == after(5, 5).linger_ms


async def test_a_batch_gathers_records_while_another_one_is_in_work() -> None:
    claims = after(5, 5)
    gathering = asyncio.ensure_future(claims.gather())
    await asyncio.sleep(0)
    assert not gathering.done()
    claims.release([ONE])
    async with asyncio.timeout(60):
        await gathering
    assert await is_taken_at_once(claims)


async def test_a_batch_gathers_records_for_a_moment_only() -> None:
    claims = after(5, 5)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(60):
        await claims.gather()
    assert asyncio.get_running_loop().time() - began >= module.GATHERING_SECONDS - 0.005
    assert claims.partitions == {ONE}


async def test_nothing_is_gathered_where_records_come_one_by_one_or_fill_batches() -> None:
    assert await is_taken_at_once(after(1, 1))
    assert await is_taken_at_once(after(MOST, MOST))


async def test_claimed_partitions_are_free_again_when_their_batch_is_done() -> None:
    claims = after(5)
    claims.claim([OTHER], 5, MOST)
    claims.release([ONE])
    assert claims.partitions == {OTHER}
