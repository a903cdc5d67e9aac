"""The protocol keeps its laws on a real server and in a file, which answer as a store in memory does."""

import secrets
from pathlib import Path

import pytest
from redis import Redis

from tests.simulation.__main__ import play
from tests.simulation.adversary import Plan
from tests.simulation.beside import slots_in, slots_on
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


@pytest.mark.parametrize("kills", [0, 2])
def test_no_schedule_breaks_a_law_in_a_file(kills: int, tmp_path: Path) -> None:
    with slots_in(tmp_path) as part:
        plan = Plan(slots=1, kills=kills, part=part)
        assert {seed: laws for seed in range(FIRST, FIRST + 25) if (laws := play(seed, plan)[0])} == {}
