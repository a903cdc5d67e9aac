"""The protocol keeps its laws on a real server, which answers as a store in memory does."""

import secrets

import pytest
from redis import Redis

from tests.simulation.__main__ import play
from tests.simulation.adversary import Plan
from tests.simulation.on_redis import slots_on
from tests.simulation.variants import FIRST


@pytest.mark.parametrize(
    ("slots", "tails", "schedules"), [pytest.param(1, 0, 12), pytest.param(4, 0, 12), pytest.param(2, 1, 4)]
)
def test_no_schedule_breaks_a_law_on_a_server(slots: int, tails: int, schedules: int, redis_url: str) -> None:
    with (
        Redis.from_url(redis_url, protocol=2) as client,
        slots_on(client, b"{%s:" % secrets.token_hex(6).encode()) as part,
    ):
        plan = Plan(slots=slots, tails=tails, confirms=tails > 0, part=part)
        assert {seed: laws for seed in range(FIRST, FIRST + schedules) if (laws := play(seed, plan)[0])} == {}
