"""Random faults for SOAK_SECONDS, an hour by default."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from statistics import linear_regression

import pytest

from nearstream.workers.kafka import records as kafka_records
from tests.fault.conftest import Stage
from tests.fault.corpus import corpus, traced
from tests.fault.observer import Sample
from tests.fault.proxy import Proxy, proxied
from tests.fault.runner import Run
from tests.fault.servers import own_broker, port_of

LOAD = 0.7  # of the steady rate
WAVE = 2_000
MOST_DOCUMENTS = 150_000  # the oracle can process these afterwards within minutes and in memory
QUIET_SECONDS = (20.0, 60.0)
SLOPE_MB_PER_MINUTE = 1.0


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_f25_hours_of_faults_lose_nothing_and_leak_nothing(stage: Stage, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    seconds = float(os.environ.get("SOAK_SECONDS", "3600"))
    async with own_broker(tmp_path) as broker, stage("F25", broker=broker.address, workers=0) as run:
        with proxied(port_of(run.redis)) as proxy:
            await run.start_behind(proxy)
            faults = [*_faults(run, proxy), lambda: _freeze(broker.pause, broker.resume, 15)]
            until = time.monotonic() + seconds
            sending = asyncio.create_task(_send_until(run, until, seed, WAVE * seconds / MOST_DOCUMENTS))
            while time.monotonic() < until and not sending.done():
                await asyncio.sleep(draw.uniform(*QUIET_SECONDS))
                assert len(run.alive) == 3
                await draw.choice(faults)()
            await sending
            report = await run.ends_well(-signal.SIGKILL)
        report.memory_mb_per_minute = _slope_mb_per_minute(run.observer.samples)
        assert report.memory_mb_per_minute < SLOPE_MB_PER_MINUTE
        assert _files_are_flat(run.observer.samples)


def _faults(run: Run, proxy: Proxy) -> Sequence[Callable[[], Awaitable[None]]]:
    async def kill() -> None:
        run.alive[1].kill()  # the first worker is never killed, so that a leak becomes visible
        run.start(NEARSTREAM_REDIS=f"redis://127.0.0.1:{proxy.port}/0")

    async def freeze() -> None:
        worker = run.alive[-1]
        await _freeze(lambda: worker.send_signal(signal.SIGSTOP), lambda: worker.send_signal(signal.SIGCONT), 15)

    async def cut() -> None:
        for fault, seconds in (("blackhole down", 6), ("slow 0.05 0.01 2", 20), ("pass", 0)):
            proxy.turn(fault)
            await asyncio.sleep(seconds)

    return [kill, freeze, cut, lambda: _freeze(run.redis.pause, run.redis.resume, 6)]


async def _freeze(stop: Callable[[], None], go_on: Callable[[], None], seconds: float) -> None:
    stop()
    await asyncio.sleep(seconds)
    go_on()


async def _send_until(run: Run, until: float, seed: int, wave_seconds: float) -> None:
    """Send new documents in waves at `LOAD`, but pause while a whole wave is unread."""
    # Use one producer for all waves: it waits for a frozen broker, whereas a new one could not connect.
    async with kafka_records.sender(run.deployment.settings, 30.0) as send_all:
        while time.monotonic() < until:
            seed += 1
            due = time.monotonic() + wave_seconds
            documents = traced(run.topic, corpus(WAVE, seed))
            for share in kafka_records.batched(documents, 50):
                await send_all(share)
                await asyncio.sleep(50 / (LOAD * run.report.steady_per_second))
            while time.monotonic() < min(due, until) or run.waiting() > WAVE:
                await asyncio.sleep(1)


def _slope_mb_per_minute(samples: Sequence[Sample]) -> float:
    """Return the steepest memory growth of a worker that ran for at least ten minutes.

    It is fitted by least squares over the second half of the worker's samples.
    """
    courses = _courses((sample.at / 60, sample.memory) for sample in samples)
    lasting = [course[len(course) // 2 :] for course in courses if course[-1][0] - course[0][0] >= 10]
    return max((linear_regression(*zip(*course, strict=True)).slope / 1024**2 for course in lasting), default=0.0)


def _files_are_flat(samples: Sequence[Sample]) -> bool:
    """Return whether no worker has over twice the open files that it had halfway."""
    courses = _courses((sample.at, sample.files) for sample in samples)
    return all(course[-1][1] <= 2 * course[len(course) // 2][1] for course in courses)


def _courses(samples: Iterable[tuple[float, dict[int, int]]]) -> Iterable[list[tuple[float, int]]]:
    """Return times and values of each worker."""
    courses: dict[int, list[tuple[float, int]]] = {}
    for at, values in samples:
        for pid, value in values.items():
            courses.setdefault(pid, []).append((at, value))
    return courses.values()
