"""Measure how fast the HTTP API answers with many documents in the index.

    python -m benchmarks.check [--rate 200] [--seconds 60] [--documents 100000] [--data FOLDER] [--json]

Starts its own Redis, fills an index with documents of 3-5 KB, of which 35 % are copies, starts `nearstream serve` in a
process of its own, and asks at a steady rate: half of the questions are stored documents with a few words appended,
half are new texts, of which 35 % are copies too. A question is sent when it is due, whether or not earlier ones are
answered. Then Redis is frozen for a sixth of that time, in which each answer has to come at the deadline.

The index is filled by two matchers side by side. With `--data`, Redis keeps it in that folder, and another run with as
many documents uses it again.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from redis import Redis

from benchmarks.check.filling import fill
from benchmarks.check.texts import text
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, free_ports, port_answers, running

_QUESTIONS = 2_000  # different ones
_START_SECONDS = 60.0
_FROZEN_SHARE = 6
_GOAL_SECONDS = 0.025
_BUCKET = 'nearstream_check_seconds_bucket{le="'
# Memory for a million documents, and no log of each write: a snapshot is taken once if the data are to be kept.
_REDIS_OPTIONS = ("--maxmemory", "12gb", "--appendonly", "no")
_SNAPSHOT = "dump.rdb"

Figures = dict[str, Any]  # Any: JSON
Asked = list[tuple[float, str]]  # seconds until the answer, and its verdict


def keep(redis: LocalServer) -> None:
    """Let Redis write what it has to its folder."""
    with Redis.from_url(f"redis://{redis.address}/0", socket_timeout=None) as client:
        client.save()


def questions(documents: int) -> list[bytes]:
    """Return texts, of which every second is nearly one of the stored documents."""
    draw = random.Random(documents)
    return [
        (f"{text(draw.randrange(documents))} And {at} more." if at % 2 else text(documents + at)).encode()
        for at in range(_QUESTIONS)
    ]


async def ask(session: aiohttp.ClientSession, url: str, texts: Sequence[bytes], rate: float, seconds: float) -> Asked:
    """Ask at a steady rate."""
    asked: Asked = []

    async def one(body: bytes) -> None:
        began = time.perf_counter()
        async with session.post(f"{url}/v1/check", data=body, headers={"Content-Type": "text/plain"}) as response:
            answer = await response.json()
            verdict = answer["verdict"] if response.status == 200 else str(response.status)
        asked.append((time.perf_counter() - began, verdict))

    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - loop.time()))
            group.create_task(one(texts[number % len(texts)]))
    return asked


async def metrics(session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    """Return the samples of the server's metrics, by name with labels."""
    async with session.get(f"{url}/metrics") as response:
        lines = (await response.text()).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def server_figures(before: dict[str, float], after: dict[str, float]) -> Figures:
    """Return how long answers took the server, as bounds of its histogram, and its CPU time for an answer."""
    grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
    answers = max(grown["nearstream_check_seconds_count"], 1)
    shares = {
        float(name[len(_BUCKET) : -2]): value / answers for name, value in grown.items() if name.startswith(_BUCKET)
    }
    at_most = {
        name: 1_000 * min(bound for bound, share in shares.items() if share >= least)
        for name, least in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return {
        "server_ms_at_most": at_most,
        "server_share_within_25_ms": round(shares[_GOAL_SECONDS], 4),
        "server_cpu_ms": round(1_000 * grown["process_cpu_seconds_total"] / answers, 2),
    }


def summary(asked: Asked) -> Figures:
    """Return percentiles in milliseconds, and the number of answers by verdict."""
    times = sorted(1_000 * seconds for seconds, _ in asked)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
    percentiles = {name: round(times[min(int(share * len(times)), len(times) - 1)], 1) for name, share in at.items()}
    return {"ms": percentiles, "answers": len(asked), "verdicts": dict(Counter(verdict for _, verdict in asked))}


async def measure(redis: LocalServer, url: str, options: argparse.Namespace) -> Figures:
    """Ask with Redis at work, then with Redis frozen."""
    texts = questions(options.documents)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await ask(session, url, texts, options.rate, 2)
        before = await metrics(session, url)
        figures = summary(await ask(session, url, texts, options.rate, options.seconds))
        figures |= server_figures(before, await metrics(session, url))
        redis.pause()
        frozen = await ask(session, url, texts, options.rate, options.seconds / _FROZEN_SHARE)
        redis.resume()
        after = await ask(session, url, texts, options.rate, options.seconds / _FROZEN_SHARE)
    return {"at_work": figures, "frozen": summary(frozen), "after": summary(after)}


@contextmanager
def _serving(environment: dict[str, str], port: int) -> Iterator[str]:
    """Run `nearstream serve` in the block, and yield its URL."""
    command = [sys.executable, "-m", "nearstream", "serve"]
    process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not port_answers(f"127.0.0.1:{port}"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("nearstream serve has not started")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def run(options: argparse.Namespace) -> Figures:
    """Return all figures that the command prints."""
    (port,) = free_ports(1)
    with _folder(options) as folder, running(redis_server(folder, _REDIS_OPTIONS)) as redis:
        environment = {
            "NEARSTREAM_REDIS": f"redis://{redis.address}/0",
            "NEARSTREAM_API": f"127.0.0.1:{port}",
            "NEARSTREAM_INDEX_DOCUMENTS": str(max(options.documents, 1_000)),
            "NEARSTREAM_SCHEME": options.scheme,
        }
        figures: Figures = {"documents": options.documents, "scheme": options.scheme, "rate": options.rate}
        if not (folder / _SNAPSHOT).exists():
            filled = fill(environment, options.documents)
            figures["filled_per_second"] = round(filled)
            if options.data:
                keep(redis)
        with _serving(environment, port) as url:
            return figures | asyncio.run(measure(redis, url, options))


@contextmanager
def _folder(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder for the data of Redis."""
    if options.data:
        yield Path(options.data) / f"{options.scheme}-{options.documents}"
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=200, metavar="N", help="questions a second (default 200)")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="how long to ask (default 60)")
    parser.add_argument("--documents", type=int, default=100_000, metavar="N", help="documents stored (default 100000)")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument("--data", metavar="FOLDER", help="keep the filled index there, or use the one that is there")
    parser.add_argument("--json", action="store_true", help="print the JSON object on one line")
    options = parser.parse_args(arguments)
    print(json.dumps(run(options), indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
