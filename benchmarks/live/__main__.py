"""Measure what the live page costs at a steady rate, and how soon it shows a verdict.

    python -m benchmarks.live [--rate 500] [--seconds 60] [--documents 6000] [--rounds 5] [--without-stack]

Two parts, each of which prints progress to stderr. One JSON object is printed at the end.

1. **The page.** A server in a process of its own gets made-up verdicts at the rate. It runs three times: without a
   reader, with a reader that never reads, and with a page in Chromium. CPU is that of the process, so other load hardly
   changes it. The id of a document holds the time at which its verdict was added, and a row of the page is timed when
   it is in the DOM, so this latency does depend on other load.
2. **Workers.** A worker and `nearstream serve` on their own Kafka and Redis take equal parts of a stream, in turns with
   a reader of the stream of events that never reads and without. The ratio of the CPU of the worker is told.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.workers.deployed import BenchmarkDeployment, deployment, log_progress
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from tests.devstack.chromium import Page, chromium
from tests.devstack.kafka import FULL_SPEED
from tests.devstack.server import free_ports
from tests.devstack.stack import local_stack

_PATIENCE_MS = 120_000
_WORDS = 300
_GOAL_MS, _GOAL_RATIO = 100.0, 1.02
# Times the first sight of each row: its document begins with the time in milliseconds at which its verdict was added.
_WATCH = """() => {
  window.latencies = [];
  new MutationObserver((changes) => {
    const now = Date.now();
    for (const change of changes) for (const row of change.addedNodes) {
      const found = /^(\\d{13})-/.exec(row.querySelector?.(".what a")?.textContent ?? "");
      if (found) window.latencies.push(now - Number(found[1]));
    }
  }).observe(document.getElementById("ticker"), { childList: true });
}"""

Figures = dict[str, Any]  # Any: JSON


def cpu_seconds(pid: int) -> float:
    """Return the time that the threads of a process have been on a processor so far, in steps of a nanosecond."""
    found = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in found) / 1e9


@contextmanager
def source(rate: float, total: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the server of made-up verdicts, and yield it with its address."""
    command = [sys.executable, "-m", "benchmarks.live.source", str(rate), str(total)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            yield process, _line(process)
        finally:
            process.terminate()


def _line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip() if process.stdout else ""


def _begin(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        process.stdin.write("\n")
        process.stdin.flush()


@contextmanager
def never_reading(address: str) -> Iterator[None]:
    """Ask for the stream of events, and read nothing of it."""
    host, _, port = address.rpartition(":")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall(f"GET /v1/events HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        yield


async def server_alone(rate: float, seconds: float, *, with_a_stuck_reader: bool) -> float:
    """Return the CPU a second of the server without a page."""
    with source(rate, int(rate * seconds)) as (process, address):
        if with_a_stuck_reader:
            with never_reading(address):
                return await _cpu_while_sending(process, seconds)
        return await _cpu_while_sending(process, seconds)


async def _cpu_while_sending(process: subprocess.Popen[str], seconds: float) -> float:
    before = cpu_seconds(process.pid)
    _begin(process)
    await asyncio.to_thread(_line, process)
    return (cpu_seconds(process.pid) - before) / seconds


async def with_a_page(rate: float, seconds: float) -> Figures:
    """Return the CPU a second of the server and of the browser, and how soon rows were shown."""
    total = int(rate * seconds)
    async with chromium() as browser:
        with source(rate, total) as (process, address):
            page = await browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(_PATIENCE_MS)
            await page.goto(f"http://{address}/")
            await page.wait_for_selector("#link.on")
            await page.evaluate(_WATCH)
            before, pages = cpu_seconds(process.pid), _browser_cpu()
            _begin(process)
            await asyncio.to_thread(_line, process)
            server, shown = cpu_seconds(process.pid) - before, _browser_cpu() - pages
            received = await _received(page, total)
            latencies = await page.evaluate("() => window.latencies")
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "server_cpu": server / seconds,
        "browser_cpu": shown / seconds,
        "sent": total,
        "received": received,
        "rows_timed": len(latencies),
        "latency_ms": {"p50": cuts[49], "p99": cuts[98], "max": max(latencies)},
    }


async def _received(page: Page, total: int) -> int:
    """Return the events that the page has read, once it has read all or for a minute."""
    for _ in range(600):
        read = int((await page.inner_text("#received")).replace(",", ""))
        if read >= total:
            break
        await asyncio.sleep(0.1)
    return read


def _browser_cpu() -> float:
    """Return the CPU of all processes of the browser that this process started."""
    spent = 0.0
    for pid in _descendants(os.getpid()):
        try:
            if b"chrom" in Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]:
                spent += cpu_seconds(pid)
        except OSError:  # it has ended
            continue
    return spent


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            yield child
            yield from _descendants(child)


def texts(count: int, begin: int) -> list[bytes]:
    """Return documents of made-up words, of which every third is the one before with a word changed."""
    draw = random.Random(begin)
    found, words = [], list[str]()
    for number in range(begin, begin + count):
        if number % 3 == 2 and words:
            words[draw.randrange(_WORDS)] = f"changed{number}"
        else:
            words = [f"word{draw.randrange(20_000)}" for _ in range(_WORDS)]
        found.append(json.dumps({"id": f"d{number}", "text": " ".join(words)}).encode())
    return found


async def workers_with_a_stuck_reader(documents: int, rounds: int) -> Figures:
    """Return the CPU of a worker for a document, without a reader and with one that never reads, in turns."""
    part, spent = documents // (2 * rounds), dict[str, list[float]](without=[], stuck=[])
    serving = {"without": list[float](), "stuck": list[float]()}
    async with local_stack(jvm=FULL_SPEED) as stack:
        deployed = await deployment(stack)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        served = replace(deployed, environment=deployed.environment | {"NEARSTREAM_API": address})
        with deployed.process("nearstream", "worker") as worker:
            await _take(deployed, 0, part)  # the worker warms up
            with served.process("nearstream", "serve") as server:
                await _ready(address)
                for turn in range(2 * rounds):
                    way = ("without", "stuck")[(turn + turn // 2) % 2]  # which comes first alternates
                    before, before_server = cpu_seconds(worker), cpu_seconds(server)
                    if way == "stuck":
                        with never_reading(address):
                            await _take(deployed, (turn + 1) * part, part)
                    else:
                        await _take(deployed, (turn + 1) * part, part)
                    spent[way].append(1e6 * (cpu_seconds(worker) - before) / part)
                    serving[way].append(1e6 * (cpu_seconds(server) - before_server) / part)
                    log_progress(f"{way}: {spent[way][-1]:.0f} us of the worker a document")
    ratios = [stuck / without for without, stuck in zip(spent["without"], spent["stuck"], strict=True)]
    return {
        "worker_us_a_document": spent,
        "serve_us_a_document": serving,
        "ratio": statistics.median(ratios),
        "ratios": [round(each, 3) for each in ratios],
        "documents_a_turn": part,
    }


async def _take(deployed: BenchmarkDeployment, begin: int, count: int) -> None:
    await deployed.send(texts(count, begin))
    await deployed.drained(DOCUMENTS.name)
    await deployed.drained(SIGNATURES.name)


async def _ready(address: str) -> None:
    """Wait until the server answers."""
    async with asyncio.timeout(60):
        while True:
            try:
                await asyncio.to_thread(urllib.request.urlopen, f"http://{address}/healthz", timeout=5)
            except OSError:
                await asyncio.sleep(0.2)
            else:
                return


async def run(options: argparse.Namespace) -> Figures:
    """Measure both parts."""
    rate, seconds = options.rate, options.seconds
    figures: Figures = {"rate": rate, "seconds": seconds, "load": os.getloadavg()[0]}
    figures["server_cpu_without_reader"] = await server_alone(rate, seconds, with_a_stuck_reader=False)
    log_progress(f"server without a reader: {figures['server_cpu_without_reader']:.3f} s of CPU a second")
    figures["server_cpu_with_stuck_reader"] = await server_alone(rate, seconds, with_a_stuck_reader=True)
    log_progress(f"with a reader that never reads: {figures['server_cpu_with_stuck_reader']:.3f}")
    figures["page"] = await with_a_page(rate, seconds)
    log_progress(f"with a page: {json.dumps(figures['page'])}")
    page = figures["page"]
    gates = {
        "all events read": page["received"] == page["sent"],
        f"p99 <= {_GOAL_MS:g} ms": page["latency_ms"]["p99"] <= _GOAL_MS,
    }
    if not options.without_stack:
        figures["workers"] = await workers_with_a_stuck_reader(options.documents, options.rounds)
        gates[f"worker with a stuck reader <= {_GOAL_RATIO:g}"] = figures["workers"]["ratio"] <= _GOAL_RATIO
    return figures | {"gates": gates}


def main() -> int:
    """Run the command and return 0 if all gates pass, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500.0, help="verdicts a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run of the page")
    parser.add_argument("--documents", type=int, default=6_000, help="documents for the worker")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of turns of the worker")
    parser.add_argument("--without-stack", action="store_true", help="measure the page only")
    figures = asyncio.run(run(parser.parse_args()))
    print(json.dumps(figures, indent=1))
    return 0 if all(figures["gates"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
