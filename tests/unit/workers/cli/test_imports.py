"""Every command starts fast, because it imports no more than it needs."""

import json
import subprocess
import sys

import pytest

from tests.support.commands import COMMANDS

# Each command is imported in a child of one process that has imported the parser, as `nearstream` does.
MEASURED = """
import json, os, resource, sys
from nearstream.workers.cli import main

def child(name):
    if name:
        main.command_function(name)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    told = {"modules": sorted(sys.modules), "seconds": usage.ru_utime + usage.ru_stime}
    os.write(write, json.dumps(told).encode() + b"\\n")
    os._exit(0)

found = {}
for name in sys.argv[1:]:
    read, write = os.pipe()
    if not os.fork():
        child(name)
    os.close(write)
    with os.fdopen(read) as told:
        found[name] = json.loads(told.read())
    os.wait()
print(json.dumps(found))
"""
SERVERS = {"faust", "mode", "scrapy", "resiliparse", "fastwarc", "tldextract", "multiprocessing"}
KAFKA, REDIS, HTTP, ARRAYS = {"aiokafka", "cramjam"}, {"redis", "hiredis"}, {"aiohttp"}, {"numpy", "rapidfuzz"}
ALL = SERVERS | KAFKA | REDIS | HTTP | ARRAYS | {"prometheus_client"}
# What each module of commands may import of these, and at most how many modules in all.
BUDGETS: dict[str, tuple[set[str], int]] = {
    "": (set(), 200),
    "settings_command": (set(), 200),
    "completion_command": (set(), 260),
    # These import the rest on use, with their log configured and a handler of signals.
    "worker_command": (set(), 200),
    "serve_command": (set(), 260),
    "mail_commands": (set(), 260),
    "kafka_commands": (KAFKA, 420),
    "dead_letter_commands": (KAFKA, 380),
    "produce_command": (KAFKA | ARRAYS, 580),
    "local_commands": (ARRAYS, 580),
    "tune_command": (ARRAYS, 580),
    "signature_commands": (ARRAYS | REDIS, 660),
    "novel_command": (ARRAYS | REDIS, 660),
    "families_command": (ARRAYS | REDIS, 600),
    "members_command": (ARRAYS | REDIS, 600),
    "label_commands": (ARRAYS | REDIS | KAFKA, 740),
    "index_commands": (ARRAYS | REDIS | KAFKA, 700),
    "stats_command": (ARRAYS | REDIS, 600),
    "replay_commands": (ARRAYS | REDIS | KAFKA, 720),
    "doctor_command": (ARRAYS | REDIS | KAFKA, 700),
    "explain_commands": (ARRAYS | REDIS | KAFKA, 740),
    "audit_command": (ARRAYS | KAFKA | {"prometheus_client"}, 680),
}


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, object]]:
    names = ["", *sorted(set(filter(None, COMMANDS.values())))]
    command = [sys.executable, "-c", MEASURED, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["", *sorted(set(filter(None, COMMANDS.values())))])
def test_a_command_imports_no_more_than_it_needs(imported: dict[str, dict[str, object]], name: str) -> None:
    allowed, most = BUDGETS[name.partition(":")[0]]
    modules = imported[name]["modules"]
    assert isinstance(modules, list)
    assert {module.partition(".")[0] for module in modules} & (ALL - allowed) == set()
    assert len(modules) <= most


def test_no_command_takes_long_to_import(imported: dict[str, dict[str, object]]) -> None:
    # Of processor time, a tenth of it on an idle machine. A busy one takes several times as long.
    assert {name: told["seconds"] for name, told in imported.items() if float(str(told["seconds"])) > 4} == {}


def test_help_reads_no_metadata_of_packages(imported: dict[str, dict[str, object]]) -> None:
    modules = imported[""]["modules"]
    assert isinstance(modules, list)
    assert {"asyncio", "importlib.metadata", "email.message"} & set(modules) == set()
