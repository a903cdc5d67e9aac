"""The log of a process: its level, its format, and one JSON object per line."""

import json
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nearstream.workers.cli.logs import WORKER_LAYOUT, JsonFormatter, TextFormatter
from tests.devstack.server import free_ports
from tests.support.forged import FORGED, dangerous
from tests.support.forking import finished

FLOORS = [Path(__file__).parents[4] / name for name in ("schemas", "streams", "workers")]
CRASHES = {
    "raise ValueError('first\\nsecond')": "ValueError: first",
    "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()": "ZeroDivisionError",
}


def failed(program: str) -> list[dict[str, str]]:
    """Return the lines of JSON that this program writes to stderr."""
    head = "import logging; from nearstream.workers.cli import logs; logs.configure('json', 'info')\n"
    done = subprocess.run([sys.executable, "-c", head + program], capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stderr.splitlines()]


def worker(**settings: str) -> list[str]:
    """Return the output of a worker that finds no Kafka."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    given = {"kafka": f"127.0.0.1:{free_ports(1)[0]}", "status": "off", **settings}
    own = {f"NEARSTREAM_{name.upper()}": value for name, value in given.items()}
    done = finished([sys.executable, "-m", "nearstream", "worker", "--timeout", "1.5"], {**inherited, **own})
    assert done.returncode in (69, 78)
    return done.stderr.decode().splitlines()


def test_a_record_is_one_line_of_json_with_its_time_in_utc() -> None:
    record = logging.LogRecord("nearstream.x", logging.WARNING, "", 0, "%s and\n\u2028\u202e%s", ("a", "b"), None)
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert "\n" not in line
    told = json.loads(line)
    assert list(told) == ["time", "level", "logger", "message"]
    assert told["message"] == "a and\n\u2028\u202eb"
    assert (told["level"], told["logger"]) == ("WARNING", "nearstream.x")
    written = datetime.fromisoformat(told["time"])
    assert written.utcoffset() == timedelta(0)
    assert datetime.now(UTC) - written < timedelta(minutes=1)


def test_s16_a_record_is_logged_without_what_a_terminal_obeys() -> None:
    for text in FORGED:
        for formatter in (TextFormatter(WORKER_LAYOUT), JsonFormatter()):
            record = logging.LogRecord("nearstream.x", logging.WARNING, "", 0, "refused %s", (text,), None)
            assert not dangerous(formatter.format(record))
            record.exc_info = (ValueError, ValueError(text), None)
            for line in formatter.format(record).split("\n"):
                assert not dangerous(line)


def test_a_crash_is_one_line_of_json_too() -> None:
    for program, error in CRASHES.items():
        (told,) = failed(program)
        assert (told["level"], told["logger"], told["message"]) == ("CRITICAL", "nearstream", "crashed")
        assert told["exception"].startswith("Traceback")
        assert error in told["exception"]


def test_a_worker_writes_in_the_form_and_of_the_level_that_are_set() -> None:
    waiting, end = map(json.loads, worker(log_format="json"))
    assert waiting["logger"].startswith("nearstream.workers.")
    assert waiting["message"].startswith("waiting for Kafka at 127.0.0.1:")
    assert (end["level"], end["message"][:23]) == ("CRITICAL", "cannot connect to Kafka")
    (told,) = map(json.loads, worker(log_format="json", index_slots="x"))
    assert told["message"] == "NEARSTREAM_INDEX_SLOTS: expected a whole number, got 'x'"
    (line,) = worker(log_level="error")
    assert line.startswith("nearstream: cannot connect to Kafka")
    for name, value in (("log_level", "loud"), ("log_format", "xml")):
        (line,) = worker(**{name: value})
        assert line.startswith(f"nearstream: NEARSTREAM_{name.upper()}: expected ")


def test_every_logger_of_ours_has_the_name_of_its_module() -> None:
    """All loggers are below `nearstream`, so this name sets the level of all."""
    paths = [path for floor in FLOORS for path in floor.rglob("*.py") if path.name != "logs.py"]
    made = [each for path in paths for each in re.findall(r"^\w+ = (logging\.getLogger\(.*)$", path.read_text(), re.M)]
    assert len(made) > 20
    assert set(made) == {"logging.getLogger(__name__)"}
