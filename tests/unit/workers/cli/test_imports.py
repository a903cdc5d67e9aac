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
# What each module may import of these, and at most how many modules in all. A wing itself holds nothing.
BUDGETS: dict[str, tuple[set[str], int]] = {
    "": (set(), 180),
    # Servers import the rest with their log configured and a handler of signals.
    "cli.servers": (set(), 230),
    "cli.setup": (set(), 240),
    "cli.families": (set(), 405),
    "cli.events": (set(), 370),
    "cli.send": (set(), 495),
    "cli.stats": (REDIS, 400),
    "cli.check": (ARRAYS, 445),
    "cli.topics": (KAFKA, 370),
    "cli.dead_letters": (KAFKA, 320),
    "cli.index": (REDIS, 395),
    "cli.inspect": (REDIS | KAFKA, 495),
    "cli.scan": (ARRAYS, 560),
    "cli.compare": (ARRAYS, 560),
    "cli.demo": (ARRAYS, 560),
    "cli.tune": (ARRAYS, 535),
    "cli.audit": (ARRAYS | KAFKA, 620),
    "cli.explain": (ARRAYS | REDIS | KAFKA, 725),
    # What a command of these rooms imports on use, because the others of its room do not need it.
    "redis.reading.families": (REDIS, 405),
    "operations.tail": (KAFKA, 370),
    "operations.remove": (REDIS | KAFKA, 495),
    "operations.replay": (REDIS | KAFKA, 490),
    "operations.produce": (ARRAYS | KAFKA, 525),
    "operations.check": (ARRAYS | REDIS, 635),
    "operations.doctor": (ARRAYS | REDIS | KAFKA, 600),
    "operations.labelling": (ARRAYS | REDIS | KAFKA, 640),
    "operations.rebuild": (ARRAYS | REDIS | KAFKA, 655),
}


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", MEASURED, *BUDGETS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", BUDGETS)
def test_a_room_imports_no_more_than_its_commands_need(imported: dict[str, dict[str, object]], name: str) -> None:
    allowed, most = BUDGETS[name]
    modules = imported[name]["modules"]
    assert isinstance(modules, list)
    assert {module.partition(".")[0] for module in modules} & (ALL - allowed) == set()
    # redis-py imports OpenTelemetry where another package has brought it.
    assert sum(not module.startswith("opentelemetry") for module in modules) <= most


def test_every_room_has_a_budget() -> None:
    assert {f"cli.{room}" for room in ROOMS} == {name for name in BUDGETS if name.startswith("cli.")}


def test_no_room_takes_long_to_import(imported: dict[str, dict[str, object]]) -> None:
    # In processor time of the parser alone, which a busy machine slows down as much. Measured: 4 times at most.
    seconds = {name: float(str(told["seconds"])) for name, told in imported.items()}
    assert {name: taken for name, taken in seconds.items() if taken > 8 * seconds["parser"]} == {}


def test_help_reads_no_metadata_of_packages(imported: dict[str, dict[str, object]]) -> None:
    modules = imported[""]["modules"]
    assert isinstance(modules, list)
    assert {"asyncio", "importlib.metadata", "email.message"} & set(modules) == set()
