"""Workers that are killed, frozen, stopped, blocked."""

import asyncio
import random
import signal
import socket
import time

import pytest

from tests.fault.conftest import Stage
from tests.fault.entry import CRASHED
from tests.fault.runner import DRAIN_SECONDS, QUIET_SECONDS, Run, Worker, in_flight, joined, logged
from tests.integration.deployment import stop, until
from workers.exits import Exit
from workers.guard import LOOP_SECONDS, PROGRESS_SECONDS
from workers.local_server import free_ports


async def test_f01_killed_workers_lose_nothing(stage: Stage, seed: int) -> None:
    await _kill(stage, seed, 3)


async def _kill(stage: Stage, seed: int, kills: int) -> None:
    draw = random.Random(seed)
    async with stage("F01") as run:
        async with run.load():
            for _ in range(kills):
                await asyncio.sleep(draw.uniform(0.2, 2.0))
                victim = draw.choice(run.alive)
                run.mark("kill")
                victim.kill()
                run.start()
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits.count(-signal.SIGKILL) == kills
        assert set(report.exits) == {0, -signal.SIGKILL}
        assert report.restated <= 2 * kills * in_flight(run)
        assert report.recovery_seconds is not None
        assert report.recovery_seconds <= 15


@pytest.mark.parametrize("seconds", [15, pytest.param(30, marks=pytest.mark.long)])
async def test_f02_a_worker_that_wakes_from_the_dead_only_restates(stage: Stage, seconds: float) -> None:
    async with stage("F02") as run:
        async with run.load():
            zombie = run.workers[0]
            zombie.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            zombie.send_signal(signal.SIGCONT)
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits == [0, 0, 0]


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.long)])
async def test_f03_a_rolling_stop_is_prompt_and_loses_nothing(stage: Stage, rounds: int) -> None:
    async with stage("F03") as run:
        async with run.load():
            for _ in range(rounds):
                await until(run.all_joined, DRAIN_SECONDS)
                for worker in run.alive:
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
        victims = [run.start("crash:send:1"), run.start("crash:ack:1")]
        await until(run.all_joined, 60)
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


@pytest.mark.long
async def test_f01_twenty_kills_lose_nothing(stage: Stage, seed: int) -> None:
    await _kill(stage, seed, 20)


@pytest.mark.long
async def test_f14_a_rebalance_storm_does_not_stop_the_work(stage: Stage) -> None:
    """For a minute a worker joins or leaves every two seconds; all documents wait from its beginning."""
    async with stage("F14") as run:
        await run.stop()
        await run.deployment.send(run.documents[run.first :])
        for _ in range(3):
            run.start()
        await until(run.all_joined, DRAIN_SECONDS)
        began, before = time.monotonic(), run.acknowledged()
        guests: list[Worker] = []
        while time.monotonic() - began < 60 and run.waiting():
            if guests:
                guests.pop().send_signal(signal.SIGTERM)
            else:
                guests.append(run.start())
            await asyncio.sleep(2)
        rate = (run.acknowledged() - before) / (time.monotonic() - began)
        run.report.throughput_share = rate / run.report.steady_per_second
        run.mark("end of the storm")
        report = await run.finish()
        assert report.verdict == "ok"
        assert set(report.exits) <= {0, -signal.SIGTERM}  # a guest may be told to leave before it listens
        assert rate >= 0.3 * report.steady_per_second


@pytest.mark.long
@pytest.mark.parametrize("days", [-2, 2])
async def test_f20_a_clock_that_is_two_days_off_changes_nothing(stage: Stage, days: int) -> None:
    """But for the times of sending, by which removals are judged: there are none here."""
    async with stage("F20", workers=2) as run:
        run.start(f"clock:{days * 86_400}")
        async with run.load():
            pass
        await run.drained(QUIET_SECONDS)
        assert await run.stop() == [0, 0, 0]
        assert (await run.compare()).verdict == "ok"


@pytest.mark.long
@pytest.mark.parametrize("pause", [0.2, 0.6, 1.2, 2.0, 3.0])
async def test_f26_a_stop_during_a_rebalance_ends_in_time(stage: Stage, pause: float) -> None:
    async with stage("F26", most=600) as run:
        leaving = run.workers[0]
        async with run.load():
            run.start()
            await asyncio.sleep(pause)
            leaving.send_signal(signal.SIGTERM)
            await asyncio.to_thread(leaving.wait, run.deployment.settings.stop_seconds + 5)
        report = await run.finish()
        assert report.verdict == "ok"


@pytest.mark.long
async def test_f26_a_stop_ends_by_itself_though_another_holds_up_the_rebalance(stage: Stage) -> None:
    """The broker answers a join when all have joined, or after a minute."""
    async with stage("F26", workers=1, most=400) as run:
        (leaving,) = run.workers
        stuck = run.start("endless")
        await until(run.all_joined, 60)
        await run.deployment.send(run.documents[run.first :])
        await until(lambda: logged(run, "batch without end"), 60)
        before = _revocations(run)
        run.start()
        await until(lambda: _more_revoked(run, before), 60)
        leaving.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(leaving.wait, run.deployment.settings.stop_seconds + 5) == 0
        stuck.kill()
        report = await run.finish()
        assert report.verdict == "ok"


@pytest.mark.long
async def test_f32_a_blocked_event_loop_shows_and_ends_the_worker(stage: Stage) -> None:
    async with stage("F32", workers=0, most=200) as run:
        (port,) = free_ports(1)
        blocked = run.start("busy:90", NEARSTREAM_STATUS=f"127.0.0.1:{port}")
        await run.deployment.send(run.documents)
        await until(lambda: logged(run, "assigned: "), 60)
        began = time.monotonic()
        answered = 0
        while blocked.poll() is None and time.monotonic() - began < 85:
            answered += await asyncio.to_thread(_answers, port)
            await asyncio.sleep(1)
        assert blocked.wait(0) == Exit.NO
        assert time.monotonic() - began >= LOOP_SECONDS - 5
        assert answered >= 30
        assert any("the event loop is blocked" in log for log in run.logs())
        run.start()
        report = await run.finish()
        assert report.verdict == "ok"


@pytest.mark.long
async def test_f33_a_batch_that_never_ends_is_taken_over(stage: Stage) -> None:
    async with stage("F33", workers=1, most=600) as run:
        stuck = run.start("endless")
        await until(lambda: joined(run, 3), 60)
        began = time.monotonic()
        async with run.load():
            assert await asyncio.to_thread(stuck.wait, PROGRESS_SECONDS + 60) == Exit.NO
            assert time.monotonic() - began <= PROGRESS_SECONDS + 30
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits == [0, Exit.NO]


def _answers(port: int) -> bool:
    """Whether the status port says how the worker is."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.0 ")
    except OSError:
        return False


def _revocations(run: Run) -> int:
    return sum(log.count(" revoked: ") for log in run.logs())


async def _more_revoked(run: Run, before: int) -> bool:
    """A worker revokes when it joins for the first time, too."""
    return await asyncio.to_thread(_revocations, run) >= before + 2
