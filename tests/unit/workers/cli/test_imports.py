"""Every command starts fast, because its room imports no more than it needs."""

import json
import subprocess
import sys

import pytest

from tests.support.commands import ROOMS

# Each module is imported in a child of one process that has imported the parser, as `nearstream` does.
MEASURED = """
import importlib, json, os, resource, sys
from nearstream.workers.cli import main

def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

def child(name):
    if name:
        importlib.import_module(f"nearstream.workers.{name}")
    ours = [(name, module) for name, module in sys.modules.items() if name.startswith("nearstream.")]
    wings = {name for name, module in ours if hasattr(module, "__path__")}
    told = {"modules": sorted(sys.modules.keys() - wings), "seconds": seconds()}
    os.write(write, json.dumps(told).encode() + b"\\n")
    os._exit(0)

parser_seconds = seconds()
found = {}
for name in sys.argv[1:]:
    read, write = os.pipe()
    if not os.fork():
        child(name)
    os.close(write)
    with os.fdopen(read) as told:
        found[name] = json.loads(told.read())
    os.wait()
print(json.dumps({"parser": {"modules": [], "seconds": parser_seconds}, **found}))
"""
SERVERS = {"faust", "mode", "scrapy", "resiliparse", "fastwarc", "publicsuffixlist", "multiprocessing"}
KAFKA, REDIS, HTTP, ARRAYS = {"aiokafka", "cramjam"}, {"redis", "hiredis"}, {"aiohttp"}, {"numpy", "rapidfuzz"}
ALL = SERVERS | KAFKA | REDIS | HTTP | ARRAYS | {"prometheus_client"}
# What modules may import of these, and at most how many modules in all. A wing itself holds nothing.
USED: list[tuple[set[str], int, str]] = [
    (KAFKA, 325, "kafka.lag operations.dead_letters"),
    (REDIS, 385, "redis.reading.stats"),
    (REDIS | KAFKA, 490, "operations.inspection operations.replay"),
    (ARRAYS, 530, "operations.outcome operations.signatures"),
    (ARRAYS | KAFKA, 610, "operations.audit.recall"),
    (ARRAYS | REDIS | KAFKA, 650, "operations.doctor operations.rebuild"),
]
# A room of the command line imports these on use only, so that its help and the completion are as fast as the list of
# commands. `worker` and `serve` import the rest with their log configured and a handler of signals.
BUDGETS: dict[str, tuple[set[str], int]] = {
    "": (set(), 180),
    **{f"cli.{room}": (set(), 290) for room in ROOMS},
    "cli.servers": (set(), 230),
    "cli.setup": (set(), 240),
    **{name: (libraries, most) for libraries, most, names in USED for name in names.split()},
}


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", MEASURED, *BUDGETS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


def test_a_room_imports_no_more_than_its_commands_need(imported: dict[str, dict[str, object]]) -> None:
    for name, (allowed, most) in BUDGETS.items():
        modules = imported[name]["modules"]
        assert isinstance(modules, list)
        assert (name, {module.partition(".")[0] for module in modules} & (ALL - allowed)) == (name, set())
        # redis-py imports OpenTelemetry where another package has brought it.
        count = sum(not module.startswith("opentelemetry") for module in modules)
        assert count <= most, f"{name} imports {count} modules"


def test_no_room_takes_long_to_import(imported: dict[str, dict[str, object]]) -> None:
    # In processor time of the parser alone, which a busy machine slows down as much. Measured: 4 times at most.
    seconds = {name: float(str(told["seconds"])) for name, told in imported.items()}
    assert {name: taken for name, taken in seconds.items() if taken > 8 * seconds["parser"]} == {}


def test_help_reads_no_metadata_of_packages(imported: dict[str, dict[str, object]]) -> None:
    modules = imported[""]["modules"]
    assert isinstance(modules, list)
    assert {"asyncio", "importlib.metadata", "email.message"} & set(modules) == set()
