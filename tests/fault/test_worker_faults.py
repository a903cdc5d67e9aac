"""Workers that are killed, frozen, stopped, blocked."""

import asyncio
import signal
import socket
import time

import pytest

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.monitoring.watchdog import LOOP_SECONDS, PROGRESS_SECONDS
from tests.devstack.server import free_ports
from tests.fault.conftest import Stage
from tests.fault.runner import DRAIN_SECONDS, NEVER, Run, Worker, joined, logged, stop_in_turn
from tests.support.deployment import until
from tests.support.faketime import clock_ahead


@pytest.mark.long
async def test_f03_rolling_stops_are_prompt_and_lose_nothing(stage: Stage) -> None:
    async with stage("F03", stop_seconds=NEVER) as run:
        async with run.load():
            for _ in range(5):
                await stop_in_turn(run)
        await run.ends_well()


@pytest.mark.long
async def test_f14_a_rebalance_storm_does_not_stop_the_work(stage: Stage) -> None:
    """A worker joins or leaves every two seconds for a minute.

    All documents are unread at the beginning.
    """
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
        report = await run.ends_well(-signal.SIGTERM)
        assert rate >= 0.3 * report.steady_per_second


@pytest.mark.long
@pytest.mark.parametrize("hours", [-48, 48])
async def test_f20_a_worker_with_a_wrong_clock_does_its_share(stage: Stage, hours: int) -> None:
    async with stage("F20", workers=2) as run:
        run.start(**clock_ahead(3600 * hours))
        await until(run.all_joined)
        async with run.load():
            pass
        await run.ends_well()


@pytest.mark.long
@pytest.mark.parametrize("pause", [0.2, 1.2, 3.0])
async def test_f26_a_stop_during_a_rebalance_ends_in_time(stage: Stage, pause: float) -> None:
    async with stage("F26", most=600) as run:
        leaving = run.workers[0]
        async with run.load():
            run.start()
            await asyncio.sleep(pause)
            leaving.send_signal(signal.SIGTERM)
            await asyncio.to_thread(leaving.wait, run.deployment.settings.stop_seconds + 5)
        await run.ends_well(-signal.SIGTERM)


@pytest.mark.long
async def test_f26_a_stop_ends_by_itself_though_another_holds_up_the_rebalance(stage: Stage) -> None:
    """The broker answers a join when all members have joined, or after a minute."""
    async with stage("F26", workers=1, most=400) as run:
        (leaving,) = run.workers
        stuck = run.start("endless")
        await until(run.all_joined)
        await run.deployment.send(run.documents[run.first :])
        await until(lambda: logged(run, "batch without end"))
        before = _revocations(run)
        run.start()
        await until(lambda: _more_revoked(run, before))
        leaving.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(leaving.wait, run.deployment.settings.stop_seconds + 5) == 0
        stuck.kill()
        await run.ends_well(-signal.SIGKILL)


@pytest.mark.long
async def test_f32_a_blocked_event_loop_shows_and_ends_the_worker(stage: Stage) -> None:
    async with stage("F32", workers=0, most=200) as run:
        (port,) = free_ports(1)
        blocked = run.start("busy:90", NEARSTREAM_STATUS=f"127.0.0.1:{port}")
        await run.deployment.send(run.documents)
        await until(lambda: logged(run, "assigned: "))
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
        await run.ends_well(Exit.NO)


@pytest.mark.long
async def test_f33_a_batch_that_never_ends_is_taken_over(stage: Stage) -> None:
    async with stage("F33", workers=1, most=600) as run:
        stuck = run.start("endless")
        await until(lambda: joined(run, 3))
        began = time.monotonic()
        async with run.load():
            assert await asyncio.to_thread(stuck.wait, PROGRESS_SECONDS + 60) == Exit.NO
            assert time.monotonic() - began <= PROGRESS_SECONDS + 30
        report = await run.ends_well(Exit.NO)
        assert report.exits == [0, Exit.NO]


def _answers(port: int) -> bool:
    """Return whether the status port answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.0 ")
    except OSError:
        return False


def _revocations(run: Run) -> int:
    return sum(log.count(" revoked: ") for log in run.logs())


async def _more_revoked(run: Run, before: int) -> bool:
    """Return whether partitions were revoked twice since `before`.

    A worker also revokes when it joins for the first time.
    """
    return await asyncio.to_thread(_revocations, run) >= before + 2
