"""What alerts count is changed by several workers at a time, and nothing is lost."""

import asyncio
import uuid
from functools import partial

import pytest

from nearstream.streams.alerting.counting import Arrival, Rule, Subject, Tally, count, end_quiet
from nearstream.workers.redis.kept.tallies import KEPT_MS, TallyStore
from nearstream.workers.redis.server.address import Connection
from nearstream.workers.redis.server.client import open_client

RULE = Rule("duplicate_storm", 30, 600)
FAMILY = Subject("news", "f", "s", "a")


@pytest.fixture
def namespace() -> str:
    return uuid.uuid4().hex[:12]


async def test_arrivals_that_two_workers_count_at_once_are_all_counted(redis_url: str, namespace: str) -> None:
    connection = Connection(redis_url, None, False)
    async with open_client(connection) as one, open_client(connection) as other:
        stores = [TallyStore(client, namespace) for client in (one, other)]

        async def add(number: int) -> Tally:
            arrivals = [Arrival(1_000 * number, number, f"{number:032x}")]
            return await stores[number % 2].change(RULE, FAMILY, partial(count, RULE, FAMILY, arrivals, 1_000 * number))

        # In order of time, two at a time: what comes later than a window would be left out.
        for number in range(2, 42, 2):
            await asyncio.gather(add(number), add(number + 1))
        tally = await stores[0].change(RULE, FAMILY, lambda former: former)
        assert [each.number for each in tally.arrivals] == list(range(2, 42))
        assert [caused.alert.state for caused in tally.alerts] == ["firing"]


async def test_what_fires_is_listed_until_it_is_forgotten(redis_url: str, namespace: str) -> None:
    async with open_client(Connection(redis_url, None, False)) as client:
        store = TallyStore(client, namespace)
        arrivals = [Arrival(place, 2 + place, f"{place:032x}") for place in range(31)]
        few = partial(count, RULE, FAMILY, arrivals[:30], 30)
        await store.change(RULE, FAMILY, few)
        assert [each async for each in store.firing()] == []
        await store.change(RULE, FAMILY, partial(count, RULE, FAMILY, arrivals, 31))
        assert [each async for each in store.firing()] == [(RULE.name, FAMILY)]
        ended = await store.change(RULE, FAMILY, partial(end_quiet, RULE, 10**9))
        assert not ended.is_firing
        await store.forget_firing(RULE, FAMILY)
        assert [each async for each in store.firing()] == []
        # What has alerted is kept for days, so that a redelivery finds it.
        (key,) = [key async for key in client.scan_iter(match=f"{{{namespace}:alert:*")]
        assert KEPT_MS < await client.pttl(key) <= KEPT_MS + 2 * RULE.window_ms
