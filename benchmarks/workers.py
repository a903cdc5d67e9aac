"""What a worker costs on a local stack: its loop against bare aiokafka, idling, latency, throughput.

`python -m benchmarks.workers [--records N] [--rounds N] [--documents N]` prints JSON; 1 if a gate is missed.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.texts import english
from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, NEAR_DUPLICATES, SIGNATURES
from workers import kafka_offsets, kafka_records, kafka_tools, kafka_topics
from workers.local_stack import LocalStack, local_stack
from workers.settings import Settings, load

# Name: limit; of the last one the least, of the others the most.
GATES = {"safe loop / bare": 6.0, "idle core share": 0.03, "latency p50 ms": 20.0, "latency p99 ms": 50.0}
DOCUMENTS_A_CORE = 3000.0
_INPUT_BYTES = 2000
_DOCUMENT_CHARACTERS = 5000
_TICKS = os.sysconf("SC_CLK_TCK")
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Deployment:
    """Topics, a group, keys of its own."""

    settings: Settings
    environment: dict[str, str]

    def topic(self, name: str) -> str:
        """With the prefix."""
        return self.settings.topic_prefix + name

    @contextmanager
    def process(self, *command: str) -> Iterator[int]:
        """Pid of a Python process of this deployment; terminated at the end."""
        started = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, "-m", *command], env=self.environment, stderr=subprocess.DEVNULL
        )
        try:
            yield started.pid
        finally:
            started.terminate()
            started.wait(60)

    async def send(self, values: Sequence[bytes]) -> None:
        """Records onto documents."""
        async with kafka_records.sender(self.settings, 10.0) as send_all:
            await send_all(
                [Outgoing(self.topic(DOCUMENTS.name), b"%d" % at, value, []) for at, value in enumerate(values)]
            )

    async def drained(self, topic: str) -> None:
        """Returns when the group has acknowledged all of a topic that holds something."""
        async with asyncio.timeout(_LIMIT_SECONDS):
            while True:
                ends = await kafka_offsets.end_offsets(self.settings, self.topic(topic), 10.0)
                known = await kafka_offsets.committed(self.settings, self.topic(topic), ends)
                if sum(ends.values()) and all(known[part] >= end for part, end in ends.items() if end):
                    return
                await asyncio.sleep(0.05)


async def deployment(stack: LocalStack) -> Deployment:
    """A fresh one, its topics made."""
    name = uuid.uuid4().hex[:12]
    given = {"KAFKA": stack.kafka, "REDIS": stack.redis, "GROUP": name, "NAMESPACE": name, "TOPIC_PREFIX": f"{name}."}
    variables = {f"NEARSTREAM_{key}": value for key, value in given.items()} | {"NEARSTREAM_STATUS": "off"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    settings = load(variables)
    await kafka_topics.create_missing(settings, 1, 10.0)
    return Deployment(settings, inherited | variables)


async def cpu_of_a_record(stack: LocalStack, way: str, records: int) -> float:
    """Microseconds of CPU for one record of 2 KB, one result of 200 B each, once the process has joined."""
    place = await deployment(stack)
    with place.process("benchmarks.loops", way) as pid:
        await place.send([os.urandom(_INPUT_BYTES)] * 12)
        await place.drained(DOCUMENTS.name)
        before = cpu_seconds(pid)
        await place.send([os.urandom(_INPUT_BYTES)] * records)
        await place.drained(DOCUMENTS.name)
        return (cpu_seconds(pid) - before) / records * 1e6


async def idle_share(stack: LocalStack, seconds: float) -> float:
    """Share of a core that a worker without work takes."""
    place = await deployment(stack)
    with place.process("workers", "worker") as pid:
        await place.send(documents(20))
        await place.drained(SIGNATURES.name)
        await asyncio.sleep(5)
        before = cpu_seconds(pid)
        await asyncio.sleep(seconds)
        return (cpu_seconds(pid) - before) / seconds


async def latencies(stack: LocalStack, count: int) -> list[float]:
    """Milliseconds from the sending of a copy to the arrival of its event, one at a time; both hops."""
    place = await deployment(stack)
    (text,) = documents(1)
    topic = place.topic(NEAR_DUPLICATES.name)
    with place.process("workers", "worker"):
        await place.send(documents(20))
        await place.drained(SIGNATURES.name)
        places = await kafka_offsets.partitions(place.settings, [topic], 10.0)
        took = []
        async with (
            kafka_tools.consumer(place.settings, 10.0) as client,
            kafka_records.sender(place.settings, 10.0) as send_all,
            aclosing(kafka_records.follow(client, places, from_start=False, until_end=False)) as events,
        ):
            following = asyncio.ensure_future(anext(events))
            await asyncio.sleep(2)
            for number in range(count):
                value = json.dumps(
                    json.loads(text) | {"id": f"copy-{number}", "collection": f"c{number // 2}"}
                ).encode()
                began = time.monotonic()
                await send_all([Outgoing(place.topic(DOCUMENTS.name), b"%d" % number, value, [])])
                if number % 2:  # the second of a pair
                    await following
                    took.append(1000 * (time.monotonic() - began))
                    following = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0.05)
            following.cancel()
            await asyncio.wait([following])
    return took


async def documents_a_second(stack: LocalStack, count: int) -> float:
    """Documents of 5 KB for one second of a worker's CPU, one in ten of them nearly a copy."""
    place = await deployment(stack)
    with place.process("workers", "worker") as pid:
        await place.send(documents(20))
        await place.drained(SIGNATURES.name)
        before = cpu_seconds(pid)
        await place.send(documents(count)[20:])
        await place.drained(DOCUMENTS.name)
        await place.drained(SIGNATURES.name)
        return (count - 20) / (cpu_seconds(pid) - before)


def documents(count: int) -> list[bytes]:
    """Values of documents: words of real text in random order, every tenth the one before it with a word changed."""
    draw = random.Random(1)
    # A run of dashes as long as an anchor would make strangers meet.
    vocabulary = sorted({word for word in english(500_000).split() if word.isalpha()})
    values: list[bytes] = []
    words: list[str] = []
    for number in range(count):
        if number % 10 == 9:
            words[draw.randrange(len(words))] = "changed"
        else:
            words = draw.choices(vocabulary, k=_DOCUMENT_CHARACTERS // 7)
        values.append(json.dumps({"id": f"d{number}", "text": " ".join(words)[:_DOCUMENT_CHARACTERS]}).encode())
    return values


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; Linux."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def run(records: int, rounds: int, count: int) -> dict[str, Any]:
    """All figures; ways that are compared take turns, the least of each counts."""
    async with local_stack() as stack:
        spent: dict[str, list[float]] = {"safe": [], "bare": []}
        for number in range(rounds):
            for way, found in spent.items():
                found.append(await cpu_of_a_record(stack, way, records))
                told(f"{way}, round {number + 1}: {found[-1]:.0f} us a record")
        waits = await latencies(stack, 400)
        told("latency done")
        share = await idle_share(stack, 20.0)
        rate = await documents_a_second(stack, count)
    cuts = statistics.quantiles(waits, n=100)
    figures = {
        "safe loop / bare": min(spent["safe"]) / min(spent["bare"]),
        "idle core share": share,
        "latency p50 ms": cuts[49],
        "latency p99 ms": cuts[98],
    }
    gates = {
        name: {"value": round(value, 3), "limit": GATES[name], "ok": value <= GATES[name]}
        for name, value in figures.items()
    }
    gates["documents a core second"] = {"value": round(rate), "limit": DOCUMENTS_A_CORE, "ok": rate >= DOCUMENTS_A_CORE}
    return {"us_per_record": spent, "records": records, "documents": count, "latencies": len(waits), "gates": gates}


def told(line: str) -> None:
    """Progress, beside the JSON."""
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """0 if all gates hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000, help="for the loops")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--documents", type=int, default=6_000, help="for the throughput")
    options = parser.parse_args()
    found = asyncio.run(run(options.records, options.rounds, options.documents))
    print(json.dumps(found, indent=1))
    return 0 if all(gate["ok"] for gate in found["gates"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
