"""Measure the cost of a worker on a local stack.

`python -m benchmarks.workers [--records N] [--rounds N] [--documents N]` compares its loop with bare aiokafka, and
measures its idle load, latency and throughput. Prints one JSON object. The exit code is 1 if a gate fails.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from contextlib import aclosing
from typing import Any

from benchmarks.texts import english
from benchmarks.workers.deployed import cpu_seconds, deployment, log_progress
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, NEAR_DUPLICATES, SIGNATURES
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from tests.devstack.kafka import FULL_SPEED
from tests.devstack.stack import LocalStack, local_stack

# The largest value that passes, by name of the gate.
GATES = {"safe loop / bare": 6.0, "idle core share": 0.03, "latency p50 ms": 20.0, "latency p99 ms": 50.0}
DOCUMENTS_A_CORE = 3000.0  # the smallest rate that passes
_INPUT_BYTES = 2000
_DOCUMENT_CHARACTERS = 5000


async def cpu_of_a_record(stack: LocalStack, way: str, records: int) -> float:
    """Return the microseconds of CPU for one record in a loop.

    A record has 2 KB and its result 200 bytes. Measuring starts when the process has joined the group.
    """
    deployed = await deployment(stack)
    with deployed.process("benchmarks.workers.loops", way) as pid:
        await deployed.send([os.urandom(_INPUT_BYTES)] * 12)
        await deployed.drained(DOCUMENTS.name)
        before = cpu_seconds(pid)
        await deployed.send([os.urandom(_INPUT_BYTES)] * records)
        await deployed.drained(DOCUMENTS.name)
        return (cpu_seconds(pid) - before) / records * 1e6


async def idle_share(stack: LocalStack, seconds: float) -> float:
    """Return the share of a core that an idle worker uses."""
    deployed = await deployment(stack)
    with deployed.process("nearstream", "worker") as pid:
        await deployed.send(documents(20))
        await deployed.drained(SIGNATURES.name)
        await asyncio.sleep(5)
        before = cpu_seconds(pid)
        await asyncio.sleep(seconds)
        return (cpu_seconds(pid) - before) / seconds


async def latencies(stack: LocalStack, count: int) -> list[float]:
    """Return the milliseconds from sending a copy to receiving its event.

    Copies are sent one at a time. Each passes both topics, documents and signatures.
    """
    deployed = await deployment(stack)
    (text,) = documents(1)
    topic = deployed.topic(NEAR_DUPLICATES.name)
    with deployed.process("nearstream", "worker"):
        await deployed.send(documents(20))
        await deployed.drained(SIGNATURES.name)
        partitions = await kafka_offsets.partitions(deployed.settings, [topic], 10.0)
        took = []
        async with (
            kafka_client.consumer(deployed.settings, 10.0) as client,
            kafka_records.sender(deployed.settings, 10.0) as send_all,
            aclosing(kafka_records.follow(client, partitions, since_ms=None, until_end=False)) as events,
        ):
            following = asyncio.ensure_future(anext(events))
            await asyncio.sleep(2)
            for number in range(count):
                value = json.dumps(
                    json.loads(text) | {"id": f"copy-{number}", "collection": f"c{number // 2}"}
                ).encode()
                began = time.monotonic()
                await send_all([ProducerRecord(deployed.topic(DOCUMENTS.name), b"%d" % number, value, [])])
                if number % 2:  # the second of a pair
                    await following
                    took.append(1000 * (time.monotonic() - began))
                    following = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0.05)
            following.cancel()
            await asyncio.wait([following])
    return took


async def documents_a_second(stack: LocalStack, count: int) -> float:
    """Return the documents that a worker handles in one second of CPU.

    Each document has 5 KB. One in ten is a near-duplicate.
    """
    deployed = await deployment(stack)
    with deployed.process("nearstream", "worker") as pid:
        await deployed.send(documents(20))
        await deployed.drained(SIGNATURES.name)
        before = cpu_seconds(pid)
        await deployed.send(documents(count)[20:])
        await deployed.drained(DOCUMENTS.name)
        await deployed.drained(SIGNATURES.name)
        return (count - 20) / (cpu_seconds(pid) - before)


def documents(count: int) -> list[bytes]:
    """Return encoded documents of real words in random order.

    Every tenth document is the one before it with one word changed.
    """
    draw = random.Random(1)
    # Leave out runs of dashes: one as long as an anchor would make unrelated documents meet.
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


async def run(records: int, rounds: int, count: int) -> dict[str, Any]:
    """Measure all figures.

    The two loops take turns, and the smallest value of each counts.
    """
    async with local_stack(jvm=FULL_SPEED) as stack:
        spent: dict[str, list[float]] = {"safe": [], "bare": []}
        for number in range(rounds):
            for way, found in spent.items():
                found.append(await cpu_of_a_record(stack, way, records))
                log_progress(f"{way}, round {number + 1}: {found[-1]:.0f} us a record")
        waits = await latencies(stack, 400)
        log_progress("latency done")
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


def main() -> int:
    """Run the command and return 0 if all gates pass, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000, help="records for each loop")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts")
    parser.add_argument("--documents", type=int, default=6_000, help="documents for the throughput")
    options = parser.parse_args()
    found = asyncio.run(run(options.records, options.rounds, options.documents))
    print(json.dumps(found, indent=1))
    return 0 if all(gate["ok"] for gate in found["gates"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
