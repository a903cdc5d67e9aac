"""An index that comes back without its newest writes, while workers run: what was lost is admitted and told again."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis

from schemas.events import Event, Retraction
from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, SIGNATURES
from tests.integration.deployment import LINES, Deployment, deployed, ids, until
from workers import assembly, kafka_offsets
from workers.local_redis import command_line, find_program, redis_answers, redis_server
from workers.local_server import LocalServer, free_ports, running

AOF = "appendonlydir"
KEPT, LOST = 80, 140  # documents that survive, and those up to which they are lost


async def test_f34_a_cut_tail_is_admitted_again(kafka: str, tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    with running(redis_server(folder)) as server:
        async with _two_workers(kafka, server, tmp_path) as deployment:
            written = _log(folder).stat().st_size
            await _lose_later(deployment)
            await asyncio.to_thread(server.kill)
            log = _log(folder)
            kept = written + (log.stat().st_size - written) // 3
            with log.open("r+b") as file:
                file.truncate(kept)
            assert await _behind(deployment, folder) >= 2
            await _come_back(deployment, server)


async def test_f13_a_replica_promoted_without_the_newest_writes_is_made_up_for(kafka: str, tmp_path: Path) -> None:
    """The replica takes the place of its primary at the same address, as behind a service name."""
    folders = (tmp_path / "primary", tmp_path / "replica")
    primary, replica = map(redis_server, folders)
    with running(primary), running(replica):
        async with _two_workers(kafka, primary, tmp_path) as deployment:
            await _follow(replica, primary)
            await _lose_later(deployment)
            await asyncio.to_thread(primary.kill)
            await asyncio.to_thread(replica.stop)
            shutil.rmtree(folders[0] / AOF)
            shutil.copytree(folders[1] / AOF, folders[0] / AOF)
            assert await _behind(deployment, folders[1]) >= 2
            await _come_back(deployment, primary)


@asynccontextmanager
async def _two_workers(kafka: str, server: LocalServer, logs: Path) -> AsyncIterator[Deployment]:
    """They have matched what is kept."""
    async with deployed(kafka, f"redis://{server.address}/0", logs) as deployment:
        with deployment.worker(), deployment.worker():
            await deployment.send(deployment.examples(LINES[:KEPT]))
            await deployment.drained()
            yield deployment


async def _lose_later(deployment: Deployment) -> None:
    """Documents, and the removal of one that is kept: all told, acknowledged, then to be lost."""
    topic = deployment.topic(DOCUMENTS)
    removal = Outgoing(topic, deployment.examples(LINES[:1])[0].key, None, [])
    for records in (deployment.examples(LINES[KEPT:LOST]), [removal]):
        await deployment.send(records)
        await deployment.drained()


async def _come_back(deployment: Deployment, server: LocalServer) -> None:
    """Workers that met an outage say again what they had said of the lost documents, and no more than the oracle.

    Of partitions too on which nothing arrives any more: their documents are met by those that do.
    """
    before = await deployment.events()
    await deployment.send(deployment.examples(LINES[LOST : LOST + 3]))
    await until(lambda: deployment.logged("outage: "), 20)
    await asyncio.to_thread(server.start)
    await deployment.drained()
    expected = _live(await deployment.oracle())
    await until(lambda: _is_told(deployment, expected), 60)
    await deployment.send(deployment.examples(LINES[LOST + 3 :]))
    await deployment.drained()
    events, expected = await deployment.events(), _live(await deployment.oracle())
    assert _live(events) == expected
    assert _repeats(events) > _repeats(before)
    assert await deployment.letters() == []


async def _is_told(deployment: Deployment, expected: set[str]) -> bool:
    return _live(await deployment.events()) == expected


def _live(events: list[Event]) -> set[str]:
    """Ids of retractions and of the events that no retraction voids; a lost removal is told again, after others."""
    retracted = {event.document_id for event in events if isinstance(event, Retraction)}
    return {
        event.event_id
        for event in events
        if isinstance(event, Retraction) or not {event.newer.id, event.older.id} & retracted
    }


def _repeats(events: list[Event]) -> int:
    return len(events) - len(ids(events))


async def _follow(replica: LocalServer, primary: LocalServer) -> None:
    """A replica that was level with its primary, then heard no more."""
    host, port = primary.address.split(":")
    client = Redis(host=host, port=int(replica.address.split(":")[1]))

    async def level() -> bool:
        facts = await client.info("replication")
        return facts["master_link_status"] == "up" and not facts["master_sync_in_progress"]

    await client.replicaof(host, port)
    await until(level, 20)
    await client.replicaof("NO", "ONE")
    await client.aclose()


async def _behind(deployment: Deployment, folder: Path) -> int:
    """Partitions whose checkpoint, in the data of this folder, lies before what the group has acknowledged."""
    topic = deployment.topic(SIGNATURES)
    ends = await kafka_offsets.end_offsets(deployment.settings, topic, 10.0)
    committed = await kafka_offsets.committed(deployment.settings, topic, ends)
    address = assembly.index_address(deployment.settings, assembly.hash_key(deployment.settings))
    (port,) = free_ports(1)
    command = command_line(find_program(), port, folder)
    reader = LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "reader.log", redis_answers)

    async def checkpoints() -> dict[int, int]:
        client = Redis(port=port)
        facts = await client.hgetall(address.key)
        found = {int(name[1:]): int(value) for name, value in facts.items() if name[:1] == b"o"}
        await client.aclose()
        return found

    known = await _while_running(reader, checkpoints)
    return sum(known.get(partition, -1) + 1 < offset for partition, offset in committed.items())


async def _while_running(server: LocalServer, ask: Callable[[], Awaitable[dict[int, int]]]) -> dict[int, int]:
    await asyncio.to_thread(server.start)
    try:
        return await ask()
    finally:
        await asyncio.to_thread(server.stop)


def _log(folder: Path) -> Path:
    """The growing file of the append-only log."""
    (found,) = (folder / AOF).glob("*.incr.aof")
    return found
