"""Workers that are killed in the middle of a family."""

import asyncio
import json
import random
import signal

import pytest

from nearstream.schemas.verdicts.events import Retraction
from tests.fault.conftest import Stage
from tests.fault.corpus import storm, traced
from tests.fault.runner import RECOVERY_SECONDS, in_flight

EVENTS_A_COPY = 1.1


@pytest.mark.parametrize(
    ("slots", "kills", "copies"), [("4", 2, 80), pytest.param("1", 20, 1_000, marks=pytest.mark.long)]
)
async def test_f01_f42_workers_killed_in_a_storm_of_copies_lose_nothing_and_leave_one_family(
    stage: Stage, seed: int, slots: str, kills: int, copies: int
) -> None:
    draw = random.Random(seed)
    async with stage("F01", most=None if kills > 3 else 160, index_slots=slots) as run:
        run.documents += traced(run.topic, storm(copies, seed + 1))
        async with run.load():
            await run.kill(kills, draw)
        report = await run.ends_well(-signal.SIGKILL)
        assert report.exits.count(-signal.SIGKILL) == kills
        assert report.restated <= 2 * kills * in_flight(run)
        assert report.recovery_seconds is not None
        assert report.recovery_seconds <= RECOVERY_SECONDS
        pairs = [event for event in await run.deployment.events() if not isinstance(event, Retraction)]
        storm_events = {each.event_id for each in pairs if each.newer.id.startswith(f"storm-{seed + 1}")}
        assert len(storm_events) <= EVENTS_A_COPY * copies
        listed = await asyncio.to_thread(run.deployment.run, "stats", "--top", "1", "--json")
        assert json.loads(listed.stdout)["top"][0]["size"] == copies
