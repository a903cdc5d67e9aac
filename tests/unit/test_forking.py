"""A fork of the process that has imported everything is what a start of the program would be."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forking import finished, started

DOCUMENT = b'{"id": "a", "text": "one two three", "observed_at": "2026-03-02T08:15:00Z"}'
SCAN = [sys.executable, "-m", "nearstream", "scan", "-", "--quiet"]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("nearstream settings --json", b""),
        ("nearstream scan - --all --quiet", DOCUMENT + b"\n{"),
    ],
)
def test_output_errors_and_exit_code_are_those_of_a_start(arguments: str, given: bytes) -> None:
    command = [sys.executable, "-m", *arguments.split()]
    environment = os.environ | {"NEARSTREAM_REDIS": "redis://u:hunter2@h:1/0"}
    done = subprocess.run(command, env=environment, input=given, capture_output=True, check=False, timeout=60)
    forked = finished(command, environment, given)
    assert (forked.returncode, forked.stdout, forked.stderr) == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_runs_until_a_signal_ends_it(number: signal.Signals) -> None:
    with started(SCAN, os.environ, stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert Path(f"/proc/{process.pid}").exists()
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.poll() == -number
    assert not Path(f"/proc/{process.pid}").exists()


def test_an_interrupt_reaches_it_and_not_the_process_that_reports_its_end() -> None:
    with started([*SCAN, "--all"], os.environ, subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((DOCUMENT + b"\n") * 2)
        process.stdin.flush()
        assert process.stdout.readline()  # it reads by now
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_what_is_read_at_a_start_needs_one() -> None:
    def is_forked(command: list[str], **changed: str) -> bool:
        with started(command, os.environ | changed, subprocess.DEVNULL, subprocess.DEVNULL) as process:
            assert process.wait(60) == 0
        return type(process) is not subprocess.Popen

    assert is_forked(SCAN)
    assert is_forked(SCAN, NEARSTREAM_INDEX_SLOTS="20")
    assert not is_forked(SCAN, LD_BIND_NOW="1")
    assert not is_forked([sys.executable, "-m", "json.tool", "--help"])
