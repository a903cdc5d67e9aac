"""Run traps on their own broker and print the outcome: `python -m tests.traps [NAME...]`."""

import asyncio
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.protocol.group import LeaveGroupRequest

from nearstream.workers.kafka import client as kafka_client
from tests.devstack.stack import local_stack
from tests.traps.trial import Trial, done, ended, settled, until

RECORDS = 26


async def loses(trial: Trial, kind: str, **variables: str) -> str:
    """Return which records below the committed offset no worker has processed."""
    await trial.prepare(RECORDS)
    with trial.worker(kind, **variables) as (process, told):
        await settled(trial, process, told)
        code = process.poll()
    committed = await trial.committed()
    lost = sorted(set(range(committed)) - set(done(told)))
    return f"committed {committed} of {RECORDS}, lost {len(lost)} {lost}, exit {code}"


async def expelled(trial: Trial) -> str:
    """T9: Compare Faust's committed offset with the broker's after a refused commit."""
    await trial.prepare(RECORDS)
    with trial.worker("expelled", TRAP_COMMIT_INTERVAL="1000", TRAP_LAST=str(RECORDS - 1)) as (process, told):
        await until(lambda: len(done(told)) == RECORDS)
        await _expel(trial)
        process.send_signal(signal.SIGHUP)
        await until(lambda: len(done(told)) > RECORDS)
        return f"Faust's sensor says {done(told)[-1]} committed, the broker {await trial.committed()}"


async def _expel(trial: Trial) -> None:
    """Remove the group's only member without its knowledge, as after a missed heartbeat."""
    async with kafka_client.admin(trial.settings, 10.0) as client:
        (response,) = await client.describe_consumer_groups([trial.name])
        ((_, _, _, _, _, members, *_),) = response.groups
        await client._send_request(
            LeaveGroupRequest(trial.name, members[0][0]), await client.find_coordinator(trial.name)
        )


async def not_once(trial: Trial) -> str:
    """T14: Return what a `read_committed` consumer sees of the output after one crash."""
    await trial.prepare(RECORDS)
    with trial.worker("exactly_once", TRAP_GUARANTEE="exactly_once", TRAP_CRASH="1") as (process, _):
        await until(lambda: process.poll() is not None)
    with trial.worker("exactly_once", TRAP_GUARANTEE="exactly_once") as (process, told):
        await settled(trial, process, told)
    async with AIOKafkaConsumer(
        bootstrap_servers=trial.broker.address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reading:
        place = TopicPartition(f"{trial.name}-out", 0)
        reading.assign([place])
        seen: list[bytes] = []
        while batch := (await reading.getmany(place, timeout_ms=3000)).get(place):
            seen += [record.value for record in batch]
    return f"committed {await trial.committed()} of {RECORDS}, a reader of committed records sees {len(seen)}"


async def sent_by_a_thread(trial: Trial) -> str:
    """T16: Measure how many of 10,000 records are forwarded in 40 s.

    They are sent by the producer's own event loop, then by Faust's thread.
    """
    count, told = 10_000, list[str]()
    await trial.prepare(count, out_bytes=1_000_000)
    for kind, variables in {"plain": {}, "threaded": {"TRAP_THREADED": "1"}}.items():
        before = await trial.arrived()
        with trial.worker("sending", TRAP_GROUP=f"{trial.name}-{kind}", **variables) as (process, _):
            began = time.monotonic()
            while (arrived := await trial.arrived() - before) < count and time.monotonic() - began < 40:
                await asyncio.sleep(0.2)
            told.append(f"{kind} {arrived} in {time.monotonic() - began:.1f} s, exit {process.poll()}")
    return "; ".join(told)


async def unpacked(trial: Trial) -> str:
    """T17: Measure a worker's memory before and after one compressed record."""
    await trial.prepare(1)
    with trial.worker("measuring") as (process, told):
        await until(lambda: bool(done(told)))
        before = _peak_mb(process)
        async with AIOKafkaProducer(
            bootstrap_servers=trial.broker.address, compression_type="gzip", max_request_size=1 << 30
        ) as producer:
            await producer.send_and_wait(trial.name, bytes(300_000_000))
        await until(lambda: len(done(told)) == 2)
        return f"{done(told)[-1]} bytes were read, peak memory {before} -> {_peak_mb(process)} MB"


def _peak_mb(process: subprocess.Popen[bytes]) -> int:
    (line,) = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) // 1024


async def unheard(trial: Trial) -> str:
    """T4: Compare the committed offset with the records that arrived."""
    told = await loses(trial, "unawaited")
    return f"{told.split(',')[0]}, arrived {await trial.arrived()}"


async def deaf(trial: Trial) -> str:
    """T6: Measure how long a worker ignores SIGTERM."""
    await trial.prepare(RECORDS)
    with trial.worker("never_acknowledged") as (process, told):
        await settled(trial, process, told)
        process.send_signal(signal.SIGTERM)
        return await ended(process, 30.0)


async def joined(trial: Trial) -> str:
    """T7: Count the records that are processed twice when a second worker joins."""
    count = 20_000
    await trial.prepare(count, partitions=2)
    with trial.worker("awaited") as (_, first):
        await until(lambda: len(done(first)) > count // 20)
        with trial.worker("awaited") as (_, second):
            await until(lambda: len({*done(first), *done(second)}) == count)
            both = done(first) + done(second)
    return f"{len(both) - len(set(both))} of {count} done twice, {count - len(set(both))} never"


async def left(trial: Trial) -> str:
    """T8: Count the records that are processed after a pause beyond the poll interval."""
    await trial.prepare(200)
    with trial.worker("paused", TRAP_POLL_INTERVAL="15", TRAP_PAUSE="25") as (process, told):
        await until(lambda: bool(done(told)))
        await asyncio.sleep(60)
        return f"60 s after the pause {len(set(done(told)))} of 200 done, exit {process.poll()}"


async def stopped_early(trial: Trial) -> str:
    """T10: Measure how long a stop takes while the worker joins."""
    await trial.prepare(RECORDS)
    took = []
    for wait in (1.5, 2.0, 2.5, 3.0):
        with trial.worker("async_for") as (process, _):
            await asyncio.sleep(wait)
            process.send_signal(signal.SIGTERM)
            took.append(await ended(process, 60.0))
    return "; ".join(took)


async def undecoded(trial: Trial) -> str:
    """T11: Return the outcome of a record that Faust cannot decode."""
    await trial.prepare(0)
    await trial.send([b"1", b"x", b"3"])
    with trial.worker("undecodable") as (process, told):
        await settled(trial, process, told)
    return f"committed {await trial.committed()} of 3, done {done(told)}"


async def away(trial: Trial) -> str:
    """T12: Keep the broker away beyond the request timeout, without idempotence."""
    await trial.prepare(3000)
    with trial.worker("awaited", TRAP_REQUEST_TIMEOUT="12", TRAP_CRASHING="1") as (process, told):
        await until(lambda: len(done(told)) > 100)
        await asyncio.to_thread(trial.broker.pause)
        end = await ended(process, 40.0)
        await asyncio.to_thread(trial.broker.resume)
    await asyncio.to_thread(trial.broker.restart)
    committed = await trial.committed()
    lost = set(range(committed)) - set(done(told))
    return f"away 40 s at a timeout of 12 s: {end}, lost {len(lost)}"


TRAPS: dict[str, Callable[[Trial], Awaitable[str]]] = {
    "T1": lambda trial: loses(trial, "async_for"),
    "T2": lambda trial: loses(trial, "take"),
    "T3": lambda trial: loses(trial, "take", TRAP_CRASHING="1"),
    "T4": unheard,
    "T5": lambda trial: loses(trial, "gap"),
    "T6": deaf,
    "T7": joined,
    "T8": left,
    "T9": expelled,
    "T10": stopped_early,
    "T11": undecoded,
    "T12": away,
    "T14": not_once,
    "T16": sent_by_a_thread,
    "T17": unpacked,
    "T19": lambda trial: loses(trial, "noack_take", TRAP_CRASHING="1"),
}


async def main(names: Sequence[str]) -> None:
    """Run the named traps, or all, and print one line for each."""
    with TemporaryDirectory(prefix="traps-") as folder:
        async with local_stack(redis=False) as stack:
            if stack.kafka_server is None:
                raise SystemExit("unset NEARSTREAM_KAFKA: a trap hurts its broker")
            for name in names or TRAPS:
                trial = Trial(stack.kafka_server, f"{name.lower()}-{uuid.uuid4().hex[:8]}", Path(folder))
                print(f"{name:<4} {await TRAPS[name](trial)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
