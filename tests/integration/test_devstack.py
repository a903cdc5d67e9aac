"""The local stack starts, survives faults, restarts, and never leaves a process behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.devstack import background
from tests.devstack.server import port_answers
from tests.devstack.stack import VARIABLES

ROOT = Path(__file__).parent.parent.parent


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.02)


def silent(address: str) -> bool:
    return not port_answers(address.removeprefix("redis://").removesuffix("/0"))


def test_the_command_prints_the_addresses_and_ends_its_servers_on_a_signal(kafka: str) -> None:
    given = {**os.environ, "NEARSTREAM_KAFKA": kafka}
    given.pop("NEARSTREAM_REDIS", None)
    command = [sys.executable, "-m", "tests.devstack"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=given)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == f"export NEARSTREAM_KAFKA={kafka}\n"
        name, address = process.stdout.readline().strip().split("=", 1)
        assert name == "export NEARSTREAM_REDIS"
        assert not silent(address)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert silent(address)


def test_a_background_stack_keeps_its_data_and_addresses_and_what_lives_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    first = background.start(tmp_path)
    try:
        # The shell has these addresses from now on, also while nothing listens there.
        for variable, address in zip(VARIABLES, (first.kafka, first.redis), strict=True):
            monkeypatch.setenv(variable, address)
        assert background.start(tmp_path) == first
        with redis.Redis.from_url(first.redis) as client:
            client.set("k", "v")
        for variable, other in zip(VARIABLES, reversed(VARIABLES), strict=True):
            before = background.start(tmp_path)
            os.kill(before.own[variable][0] or 0, signal.SIGKILL)
            until(lambda port=before.ports[variable]: silent(f"127.0.0.1:{port}"))  # type: ignore[misc] # mypy: a default
            after = background.start(tmp_path)
            assert (after.kafka, after.redis, after.owner) == (first.kafka, first.redis, first.owner)
            assert after.own[other] == before.own[other]
        assert background.stop(tmp_path)
        assert silent(first.redis)
        assert not background.stop(tmp_path)
        second = background.start(tmp_path)
        assert (second.kafka, second.redis) == (first.kafka, first.redis)
        with redis.Redis.from_url(second.redis) as client:
            assert client.get("k") == b"v"
        os.kill(second.owner, signal.SIGKILL)
        until(lambda: background.running_in(tmp_path) is None)
        assert background.start(tmp_path).owner != second.owner
    finally:
        background.stop(tmp_path)
    assert background.running_in(tmp_path) is None


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "tests.devstack", "start", "--folder", str(tmp_path / "file/below")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cannot write {tmp_path / 'file'}")
    assert done.stderr.endswith('Name a folder of yours: make STACK="$HOME/nearstream-stack" stack\n')
    assert done.stderr.count("\n") == 1


def test_a_long_silence_of_an_installation_has_a_line() -> None:
    shell = "echo Collecting a; sleep 2; echo Requirement already satisfied: b; printf end"
    command = f"({shell}) | SILENT_SECONDS=0.4 {sys.executable} tests/devstack/shown.py"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S607
    lines = done.stderr.splitlines()
    assert (lines[0], lines[-1], done.stdout) == ("  Collecting a", "  end", "")
    assert lines[1:-1]
    assert all(line.startswith("  still at it after ") for line in lines[1:-1])
