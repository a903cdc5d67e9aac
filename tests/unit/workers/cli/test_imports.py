"""Every command starts fast, because what it runs imports no more than it needs."""

import json
import subprocess
import sys

# Each module is imported in a child of one process that has imported the parser, as `nearstream` does.
MEASURED = """
import importlib, json, os, sys
from nearstream.workers.cli import main

found = {}
for name in sys.argv[1:]:
    read, write = os.pipe()
    if not os.fork():
        if name:
            importlib.import_module(f"nearstream.workers.{name}")
        os.write(write, json.dumps(sorted(sys.modules)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        found[name] = json.loads(told.read())
    os.wait()
print(json.dumps(found))
"""
SERVERS = {"faust", "mode", "scrapy", "resiliparse", "fastwarc", "publicsuffixlist", "multiprocessing"}
KAFKA, REDIS, HTTP, ARRAYS = {"aiokafka", "cramjam"}, {"redis", "hiredis"}, {"aiohttp"}, {"numpy", "rapidfuzz"}
ALL = SERVERS | KAFKA | REDIS | HTTP | ARRAYS | {"prometheus_client"}
# What modules may import of these. `test_parser.py` sees that rooms of the command line import none.
USED: dict[str, set[str]] = {
    "": set(),
    "kafka.lag": KAFKA,
    "operations.dead_letters": KAFKA,
    "redis.reading.stats": ARRAYS | REDIS,
    "operations.inspection": ARRAYS | REDIS | KAFKA,
    "operations.explaining": ARRAYS,
    "operations.signatures": ARRAYS,
    "operations.doctor": ARRAYS | REDIS | KAFKA,
    "operations.rebuild": ARRAYS | REDIS | KAFKA,
}


def test_what_a_command_runs_imports_no_more_than_it_needs() -> None:
    command = [sys.executable, "-c", MEASURED, *USED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    imported: dict[str, list[str]] = json.loads(done.stdout)
    for name, allowed in USED.items():
        libraries = {module.partition(".")[0] for module in imported[name]}
        assert (name, libraries & (ALL - allowed)) == (name, set())
    assert {"asyncio", "importlib.metadata", "email.message"} & set(imported[""]) == set()
    assert len(imported[""]) <= 200
