"""Workers that are killed, frozen, stopped, blocked."""

import asyncio
import random
import signal
import time

from tests.fault.conftest import Stage
from tests.fault.entry import CRASHED
from tests.fault.runner import Worker
from tests.integration.deployment import stop, until
from workers.app import MATCH_BATCH, SIGN_BATCH

COMMIT_SECONDS = 0.5


KILLS = 3


async def test_f01_killed_workers_lose_nothing(stage: Stage, seed: int) -> None:
    draw = random.Random(seed)
    async with stage("F01") as run:
        async with run.load():
            for _ in range(KILLS):
                await asyncio.sleep(draw.uniform(0.2, 2.0))
                victim = draw.choice(run.alive)
                run.mark("kill")
                victim.kill()
                run.start()
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits.count(-signal.SIGKILL) == KILLS
        assert set(report.exits) == {0, -signal.SIGKILL}
        in_flight = len(run.workers) * (SIGN_BATCH + MATCH_BATCH) + report.steady_per_second * COMMIT_SECONDS
        assert report.restated <= 2 * KILLS * in_flight
        assert report.recovery_seconds is not None
        assert report.recovery_seconds <= 15


async def test_f02_a_worker_that_wakes_from_the_dead_only_restates(stage: Stage) -> None:
    async with stage("F02") as run:
        async with run.load():
            zombie = run.workers[0]
            zombie.send_signal(signal.SIGSTOP)
            await asyncio.sleep(15)
            zombie.send_signal(signal.SIGCONT)
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits == [0, 0, 0]


async def test_f03_a_rolling_stop_is_prompt_and_loses_nothing(stage: Stage) -> None:
    async with stage("F03") as run:
        async with run.load():
            for worker in run.workers[:]:
                began = time.monotonic()
                assert await asyncio.to_thread(stop, worker) == 0
                assert time.monotonic() - began <= 10
                run.start()
        report = await run.finish()
        assert report.verdict == "ok"
        assert set(report.exits) == {0}


async def test_f38_crashes_around_sending_only_restate(stage: Stage) -> None:
    """One worker dies between admission and sending, one between sending and acknowledging."""
    async with stage("F38", workers=1) as run:
        victims = [run.start("crash:send:3"), run.start("crash:ack:3")]
        async with run.load():
            for victim in victims:
                await until(lambda: _ended(victim), 60)  # noqa: B023 - awaited in its round
            run.start()
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits == [0, CRASHED, CRASHED, 0]
        assert report.restated > 0


async def _ended(worker: Worker) -> bool:
    return worker.poll() is not None
