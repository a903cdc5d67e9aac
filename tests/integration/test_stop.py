"""A worker stops at once with exit code 0 and leaves nothing, whatever service is away."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from nearstream.workers.config.exit_codes import Exit
from tests.devstack.server import LocalServer, free_ports
from tests.support import forking
from tests.support.deployment import PATIENT_SECONDS, deployed, until


@dataclass(frozen=True)
class Started:
    """A worker process in its own folder, where any file that it leaves is found."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def log(self) -> str:
        """Return its log so far."""
        return (self.folder / "log").read_text()

    async def logged(self, text: str, within_seconds: float = PATIENT_SECONDS) -> None:
        """Wait until it has logged this text."""

        async def is_there() -> bool:
            assert self.process.poll() is None or text in self.log, self.log
            return text in self.log

        await until(is_there, within_seconds)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code.

        It asserts that the worker left no file and logged no traceback.
        """
        self.process.send_signal(number)
        code = await asyncio.to_thread(self.process.wait, PATIENT_SECONDS)
        assert [path.name for path in self.folder.rglob("*") if path.name != "log"] == ["temporary"]
        assert "Traceback" not in self.log
        assert "never retrieved" not in self.log
        return code


@contextmanager
def started(folder: Path, environment: dict[str, str], *, loads: bool = False) -> Iterator[Started]:
    """Start a worker, which has imported everything already unless it shall take its time."""
    (folder / "temporary").mkdir(parents=True)
    given = {**environment, "TMPDIR": str(folder / "temporary")}
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "nearstream", "worker", "--timeout", "20"]
        if loads:
            process = subprocess.Popen(command, env=given, cwd=folder, stdout=log, stderr=log)
        else:
            process = forking.started(command, given, stdout=log, stderr=log, folder=folder)
    try:
        yield Started(process, folder)
    finally:
        process.kill()
        process.wait()


def addressed(**settings: str) -> dict[str, str]:
    """Return the environment of a worker with these settings."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    return {**inherited, "NEARSTREAM_STATUS": "off", **{f"NEARSTREAM_{key.upper()}": settings[key] for key in settings}}


async def test_a_worker_that_waits_for_kafka_says_so_and_stops_when_asked(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with started(tmp_path / "worker", addressed(kafka=address)) as worker:
        await worker.logged(f"waiting for Kafka at {address}, at most 19 s more")
        worker.process.send_signal(signal.SIGHUP)
        assert await worker.end(signal.SIGINT) == Exit.OK
        assert worker.log.splitlines()[-1].endswith("stopped by SIGINT before it joined the group")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which signals a process catches")
async def test_a_worker_stops_when_asked_while_it_loads_waits_for_redis_and_joins(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    place = f"127.0.0.1:{free_ports(1)[0]}"
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with started(tmp_path / "loads", deployment.environment, loads=True) as worker:
            await until(lambda: _catches_sigterm(worker.process.pid))
            assert await worker.end() == Exit.OK
        away = {**deployment.environment, "NEARSTREAM_REDIS": f"redis://:hunter2@{place}/0"}
        with started(tmp_path / "waits", away) as worker:
            await worker.logged(f"waiting for Redis at redis://***@{place}/0, at most 19 s more")
            assert await worker.end() == Exit.OK
            assert "hunter2" not in worker.log
        for moment in ("settings: ", "revoked: ", "assigned: "):
            with started(tmp_path / moment[:4], deployment.environment) as worker:
                await worker.logged(moment)
                worker.process.send_signal(signal.SIGHUP)
                if moment == "assigned: ":
                    await worker.logged("SIGHUP: the tokens were read again")
                assert await worker.end() == Exit.OK
                assert "stopped" in worker.log.splitlines()[-1]


async def test_a_worker_stops_when_asked_while_kafka_is_away_and_names_a_broker_that_goes_before_it_joins(
    broker: LocalServer, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(broker.address, redis_url, tmp_path) as deployment:
        with started(tmp_path / "worker", deployment.environment) as worker:
            await worker.logged("assigned: ")
            await asyncio.to_thread(broker.pause)
            await worker.logged("outage: ")
            assert await worker.end() == Exit.OK
            assert "stopped" in worker.log.splitlines()[-1]
        await asyncio.to_thread(broker.resume)
        with started(tmp_path / "late", deployment.environment, loads=True) as worker:
            await worker.logged("settings: ")
            await asyncio.to_thread(broker.kill)
            assert await asyncio.to_thread(worker.process.wait, 60) == Exit.NO
            assert "stopped by a crash: KafkaConnectionError" in worker.log
            assert "Traceback" not in worker.log
        await asyncio.to_thread(broker.start)


async def _catches_sigterm(pid: int) -> bool:
    """Return whether the process has a handler for SIGTERM."""
    status = await asyncio.to_thread(Path(f"/proc/{pid}/status").read_text)
    caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(caught >> (signal.SIGTERM - 1) & 1)
