"""Every command starts fast, because it imports no more than it needs."""

import json
import subprocess
import sys

import pytest

from tests.support.commands import COMMANDS

# A command of each module, since all commands of a module import what it imports.
NAMES = ["", *{name.partition(":")[0]: name for name in sorted(COMMANDS.values()) if name}.values()]

# Each command is imported in a child of one process that has imported the parser, as `nearstream` does.
MEASURED = """
import json, os, resource, sys
from nearstream.workers.cli import main

def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

def child(name):
    if name:
        main.command_function(name)
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
# What each module of commands may import of these, and at most how many modules in all. A wing itself holds nothing.
BUDGETS: dict[str, tuple[set[str], int]] = {
    "": (set(), 180),
    # These import the rest on use, with their log configured and a handler of signals.
    "server_commands": (set(), 230),
    "setup_commands": (set(), 240),
    "family_commands": (REDIS, 405),
    "stats_commands": (REDIS, 400),
    "check_commands": (ARRAYS | REDIS, 635),
    "kafka_commands": (KAFKA, 370),
    "dead_letter_commands": (KAFKA, 320),
    "index_commands": (REDIS, 395),
    "document_commands": (REDIS | KAFKA, 495),
    "replay_commands": (REDIS | KAFKA, 490),
    "signature_commands": (ARRAYS, 445),
    "local_commands": (ARRAYS, 560),
    "tune_command": (ARRAYS, 535),
    "produce_command": (KAFKA | ARRAYS, 525),
    "audit_command": (ARRAYS | KAFKA, 620),
    "doctor_command": (ARRAYS | REDIS | KAFKA, 600),
    "rebuild_commands": (ARRAYS | REDIS | KAFKA, 655),
    "label_commands": (ARRAYS | REDIS | KAFKA, 640),
    "explain_commands": (ARRAYS | REDIS | KAFKA, 725),
}


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", MEASURED, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_command_imports_no_more_than_it_needs(imported: dict[str, dict[str, object]], name: str) -> None:
    allowed, most = BUDGETS[name.partition(":")[0]]
    modules = imported[name]["modules"]
    assert isinstance(modules, list)
    assert {module.partition(".")[0] for module in modules} & (ALL - allowed) == set()
    # redis-py imports OpenTelemetry where another package has brought it.
    assert sum(not module.startswith("opentelemetry") for module in modules) <= most


def test_no_command_takes_long_to_import(imported: dict[str, dict[str, object]]) -> None:
    # In processor time of the parser alone, which a busy machine slows down as much. Measured: 4 times at most.
    seconds = {name: float(str(told["seconds"])) for name, told in imported.items()}
    assert {name: taken for name, taken in seconds.items() if taken > 8 * seconds["parser"]} == {}


def test_help_reads_no_metadata_of_packages(imported: dict[str, dict[str, object]]) -> None:
    modules = imported[""]["modules"]
    assert isinstance(modules, list)
    assert {"asyncio", "importlib.metadata", "email.message"} & set(modules) == set()
