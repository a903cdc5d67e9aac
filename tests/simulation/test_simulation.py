"""The protocol keeps its laws under an adversary, and each of its rules is needed."""

import pytest

from tests.simulation.__main__ import play
from tests.simulation.adversary import Plan
from tests.simulation.variants import FIRST, VARIANTS


def _broken(plan: Plan, schedules: int) -> dict[int, set[str]]:
    """Return the broken laws by seed. A seed plays the same schedule again, see `python -m tests.simulation --help`."""
    played = {seed: play(seed, plan)[0] for seed in range(FIRST, FIRST + schedules)}
    return {seed: laws for seed, laws in played.items() if laws}


@pytest.mark.parametrize(
    ("plan", "schedules"),
    [
        pytest.param(Plan(), 600, id="crashes, zombies, updates, removals, expiry"),
        pytest.param(Plan(chain=True), 450, id="copies that are not transitive"),
        pytest.param(Plan(impatient=True), 300, id="nobody waits"),
        pytest.param(Plan(resigns=True), 300, id="documents that were signed twice"),
        pytest.param(Plan(storm=True, documents=16), 100, id="storms of copies"),
        pytest.param(Plan(storm=True, documents=120), 20, id="large storms of copies"),
        pytest.param(Plan(tails=1, confirms=True), 200, id="one lost tail, and replicas"),
        pytest.param(Plan(tails=2, confirms=True), 100, id="two lost tails, and replicas"),
        pytest.param(Plan(slots=1, kills=3), 200, id="kills, after which nothing is left of what was not answered"),
    ],
)
def test_no_schedule_breaks_a_law(plan: Plan, schedules: int) -> None:
    assert _broken(plan, schedules) == {}


@pytest.mark.parametrize(
    ("plan", "schedules"),
    [
        pytest.param(Plan(tails=1), 150, id="a lost tail"),
        pytest.param(Plan(tails=2, storm=True, documents=16), 60, id="lost tails in storms"),
        pytest.param(Plan(flushes=2), 200, id="all slots are emptied, and the index is rebuilt"),
        pytest.param(Plan(tails=1, wipes=True), 150, id="one slot is emptied"),
    ],
)
def test_nothing_is_lost_without_replicas(plan: Plan, schedules: int) -> None:
    kept = {"each has a verdict", "recorded", "findable", "pairs are seen", "counts", "one is kept", "no circles"}
    assert {seed: laws & kept for seed, laws in _broken(plan, schedules).items() if laws & kept} == {}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_protocol_without_one_of_its_rules_is_caught(name: str) -> None:
    variant = VARIANTS[name]
    seeds = range(variant.first, variant.first + variant.schedules)
    broken = (play(seed, variant.plan)[0] for seed in seeds)
    caught = any(laws & ({variant.law} if variant.law else laws) for laws in broken)
    assert caught, f"{variant.schedules} schedules do not need the rule"


@pytest.mark.parametrize("seed", [10_044_228, 204_912, 40_000_354, 40_001_491, 40_009_038, 81_007_780])
def test_a_schedule_that_broke_a_law_once_breaks_none(seed: int) -> None:
    assert play(seed, Plan())[0] == set()
