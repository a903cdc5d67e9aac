"""Workers that are killed or frozen in the middle of a family."""

import asyncio
import json
import os
import random
import signal
from pathlib import Path

import pytest

from nearstream.schemas.events import Retraction
from nearstream.schemas.record import ProducerRecord
from nearstream.schemas.topics import DOCUMENTS
from tests.fault.agreement import disagreement
from tests.fault.conftest import Stage
from tests.fault.corpus import storm, traced
from tests.fault.test_removal_faults import is_stopped
from tests.support.deployment import TEXTS, deployed, until

KILLS = 3
EVENTS_A_COPY = 1.1


@pytest.mark.parametrize("copies", [300, pytest.param(1_000, marks=pytest.mark.long)])
async def test_f42_a_worker_killed_in_a_storm_of_copies_leaves_one_family(stage: Stage, seed: int, copies: int) -> None:
    draw = random.Random(seed)
    async with stage("F42", most=200) as run:
        run.documents += traced(run.topic, storm(copies, seed + 1))
        async with run.load():
            await run.kill(KILLS, draw)
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits.count(-signal.SIGKILL) == KILLS
        pairs = [event for event in await run.deployment.events() if not isinstance(event, Retraction)]
        storm_events = {each.event_id for each in pairs if each.newer.id.startswith(f"storm-{seed + 1}")}
        assert len(storm_events) <= EVENTS_A_COPY * copies
        listed = await asyncio.to_thread(run.deployment.run, "families", "--top", "1", "--json")
        assert json.loads(listed.stdout.splitlines()[0])["size"] == copies


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from /proc")
async def test_f43_a_worker_that_wakes_after_the_representative_was_removed_only_restates(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """A frozen matcher has decided about a copy, another one takes over, and the founder is removed.

    Then the first one wakes and sends its verdict, which names the founder.
    """
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        program = ("tests.fault.entry", "freeze:default/copy")
        with deployment.worker("sign"), deployment.worker("match", program) as frozen:
            await deployment.send([deployment.document("founder", TEXTS[0])])
            await deployment.drained()
            await deployment.send([deployment.document("copy", f"{TEXTS[0]} once more")])

            async def stopped() -> bool:
                return is_stopped(frozen.pid)

            await until(stopped, 60)
            try:
                with deployment.worker("match"):
                    await deployment.drained()
                    await deployment.send([ProducerRecord(deployment.topic(DOCUMENTS), b"founder", None, [])])
                    await deployment.drained()
                    os.kill(frozen.pid, signal.SIGCONT)

                    async def told_again() -> bool:
                        return [each.id for each in await deployment.verdicts()].count("copy") >= 2

                    await until(told_again, 60)
                    await deployment.send([deployment.document("late", TEXTS[0])])
                    await deployment.drained()
            finally:
                os.kill(frozen.pid, signal.SIGCONT)
        assert await disagreement(deployment) == {}
        verdicts = await deployment.verdicts()
        family = {each.id: (each.family.id, each.family.ordinal) for each in verdicts}
        assert len({name for name, _ in family.values()}) == 1
        assert [family[name][1] for name in ("founder", "copy", "late")] == [1, 2, 3]
        # The group is balanced again when the first one is back, which can let a document be told twice.
        late, *again = [each for each in verdicts if each.id == "late"]
        assert all(each == late for each in again)
        assert late.of is not None
        assert (late.of.id, late.family.founder) == ("copy", None)
