"""Measure what a page of a crawl costs, and what a deployment needs for a number of URLs.

    python -m benchmarks.crawl.sizing [--pages N] [--days D]

Pages of about 60 KB on sites of 100 pages go through a worker and through one that decides, with a Kafka and a Redis of
their own. Then they are fetched again, half of them with another paragraph. Milliseconds are CPU times of the
processes. Bytes of Redis are those of its memory, bytes of Kafka those of the log of a topic. From these the needs are
computed of 1, 10 and 100 million URLs, each of which is fetched each D days, with all processors busy to .6.
"""

import argparse
import asyncio
import json
import math
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks.speed.measure import positive
from benchmarks.stream.deployed import BenchmarkDeployment, deployment
from benchmarks.stream.measuring import Servers
from benchmarks.stream.measuring import servers as started
from benchmarks.stream.prose import Prose, sources
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord, header
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.backtest.grading import HOUR_MS
from nearstream.workers.operations.backtest.playing import page_record

_SITE, _WORDS, _SCRIPT_BYTES = 100, 700, 36_000
_AT_ONCE, _WARM = 50, 100
_BUSY = 0.6
_DAYS_IN_KAFKA = 7
_HOURS = (0, 48)

Figures = dict[str, float]


def pages(count: int) -> list[list[ConsumerRecord]]:
    """Return the records of two fetches of pages."""
    prose, draw, begin = Prose(sources(None), 7), random.Random("sizing"), time.time_ns() // 1_000_000 - 72 * HOUR_MS
    fetches: list[list[ConsumerRecord]] = [[], []]
    menu = ""
    for number in range(count):
        if number % _SITE == 0:
            menu = "".join(f"<li class=item><a href='/c/{n}'>{' '.join(prose.words(3))}</a></li>" for n in range(120))
        parts = [f"<p>{' '.join(words)}</p>" for words in prose.paragraphs(_WORDS)]
        script = f"<script>{''.join(draw.choices('abcdefgh(){};= ', k=_SCRIPT_BYTES))}</script>"
        url = f"https://s{number // _SITE}.example/{number % 7}/{number}-a-story"
        for visit, made in enumerate(fetches):
            if visit and number % 2:
                parts[-1] = f"<p>{' '.join(prose.paragraph())}</p>"
            body = f"{script}<nav>{menu}</nav><main><h1>{number}</h1>{''.join(parts)}</main><footer>{menu}</footer>"
            html = f"<!doctype html><title>{number} story</title>{body}".encode()
            made.append(page_record(url, begin + _HOURS[visit] * HOUR_MS + number, html))
    return fetches


async def measure(servers: Servers, fetches: Sequence[Sequence[ConsumerRecord]]) -> list[Figures]:
    """Return what a page costs at its first and at its second fetch."""
    deployed, found = await deployment(servers.stack), []
    deployed = replace(deployed, environment={**deployed.environment, "NEARSTREAM_VERDICTS": "all"})
    with Redis.from_url(servers.redis_url) as redis, deployed.process("nearstream", "worker", "all") as worker:
        await _send(deployed, fetches[0][:_WARM])
        await deployed.drained(SIGNATURES.name)
        start = await _decided(deployed)  # of a process that has little to do
        for records in fetches:
            rest, before = records[_WARM:], (seconds_of(worker), server_seconds(redis), bytes_of(redis), _logs(servers))
            await _send(deployed, rest)
            await deployed.drained(DOCUMENTS.name)
            await deployed.drained(SIGNATURES.name)
            after = seconds_of(worker), server_seconds(redis), bytes_of(redis)
            decide = await _decided(deployed) - start
            costs = {
                "worker_ms": 1000 * (after[0] - before[0]),
                "decide_ms": 1000 * decide,
                "redis_ms": 1000 * (server_seconds(redis) - before[1]),
                "index_bytes": after[2] - before[2],
                "decision_bytes": bytes_of(redis) - after[2],
                **{f"{topic}_bytes": size - before[3].get(topic, 0) for topic, size in _logs(servers).items()},
            }
            found.append({name: round(value / len(rest), 2) for name, value in costs.items()})
    return found


async def _send(deployed: BenchmarkDeployment, records: Sequence[ConsumerRecord]) -> None:
    topic = deployed.topic(DOCUMENTS.name)
    async with kafka_records.sender(deployed.settings, 10.0) as send_all:
        for start in range(0, len(records), _AT_ONCE):
            some = records[start : start + _AT_ONCE]
            await send_all(
                ProducerRecord(topic, header(each.headers, "nearstream-url"), each.value, each.headers) for each in some
            )


async def _decided(deployed: BenchmarkDeployment) -> float:
    """Decide about all verdicts, and return the CPU seconds of the process."""
    with deployed.process("nearstream", "worker", "decide") as decide:
        await deployed.drained(VERDICTS.name)
        return seconds_of(decide)


def seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process and of its children, also of those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    listed = [each.read_text(encoding="ascii").split() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    ended = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return ended + sum(seconds_of(int(child)) for children in listed for child in children)


def server_seconds(redis: Redis) -> float:
    """Return the CPU seconds of a server."""
    used = redis.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def bytes_of(redis: Redis) -> int:
    """Return the bytes of memory that the data take."""
    memory = redis.info("memory")
    return int(memory["used_memory"] - memory["mem_clients_normal"] - memory["mem_aof_buffer"])


def _logs(servers: Servers) -> dict[str, int]:
    """Return the bytes of the log of each topic of pages."""
    logs = (servers.folder / "kafka" / "data").glob("*.nearstream.*/*.log")
    sizes = Counter[str]()
    for log in logs:
        topic = log.parent.name.split(".nearstream.")[1].partition(".")[0]
        sizes[topic] += log.stat().st_size
    return {topic: sizes[topic] for topic in ("documents", "signatures", "verdicts", "decisions")}


def needs(urls: int, days: float, first: Figures, again: Figures) -> Figures:
    """Return what a deployment needs for so many URLs, each of which is fetched each so many days."""
    rate = urls / (days * 86_400)
    cores = {name: math.ceil(again[f"{name}_ms"] * rate / 1000 / _BUSY) for name in ("worker", "decide", "redis")}
    stored = sum(each[f"{name}_bytes"] for each in (first, again) for name in ("index", "decision"))
    latest = first["signatures_bytes"] + first["decisions_bytes"]  # topics that keep the latest record of a page
    sent = again["documents_bytes"] + again["verdicts_bytes"]
    return {
        "urls": urls,
        "pages_per_second": round(rate, 1),
        **{f"{name}_cores": number for name, number in cores.items()},
        "redis_gb": round(urls * stored / 1e9, 1),
        "kafka_gb": round((urls * latest + rate * 86_400 * _DAYS_IN_KAFKA * sent) / 1e9, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=positive, default=3_000, metavar="N")
    parser.add_argument("--days", type=float, default=3.0, metavar="D")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as servers:
        first, again = asyncio.run(measure(servers, pages(options.pages + _WARM)))
    found: dict[str, Any] = {"first": first, "again": again}
    found["needs"] = [needs(urls, options.days, first, again) for urls in (10**6, 10**7, 10**8)]
    print(json.dumps({**vars(options), **found}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
