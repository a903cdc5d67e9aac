"""An index loses its newest writes while workers run.

The lost documents are admitted again and their events are sent again.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.schemas.verdicts.events import PairEvent, Retraction
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.pipeline.deployment import Deployment
from tests.devstack.redis import command_line, find_program, redis_answers, redis_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, deployed, ids, until

AOF = "appendonlydir"
# An index that has lost a decision decides again, maybe otherwise, because it meets other documents now.
DECIDED_AGAIN = {"differing values", "doubled ordinals", "families without founder"}
KEPT, LOST = 80, 140  # the first 80 documents survive, those from there to 140 are lost


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
    """The replica replaces its primary at its address, as behind a service name."""
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
async def _two_workers(kafka: str, server: LocalServer, logs: Path) -> AsyncIterator[LocalDeployment]:
    """Start two workers and let them match the documents that survive."""
    async with deployed(kafka, f"redis://{server.address}/0", logs) as deployment:
        with deployment.worker(), deployment.worker():
            await deployment.send(deployment.examples(LINES[:KEPT]))
            await deployment.drained()
            yield deployment


async def _lose_later(deployment: LocalDeployment) -> None:
    """Process documents and the removal of a surviving one, all to be lost later."""
    topic = deployment.topic(DOCUMENTS)
    removal = ProducerRecord(topic, deployment.examples(LINES[:1])[0].key, None, [])
    for records in (deployment.examples(LINES[KEPT:LOST]), [removal]):
        await deployment.send(records)
        await deployment.drained()


async def _come_back(deployment: LocalDeployment, server: LocalServer) -> None:
    """Restart the server and check that the events of lost documents are sent again.

    The results must agree with the oracle. Documents of partitions without new records must be restored too, because
    new documents on other partitions match them.
    """
    before = await deployment.events()
    await deployment.send(deployment.examples(LINES[LOST : LOST + 3]))
    await until(lambda: deployment.logged("outage: "))
    await asyncio.to_thread(server.start)
    await deployment.drained()
    await until(lambda: _is_told(deployment))
    await deployment.send(deployment.examples(LINES[LOST + 3 :]))
    await deployment.drained()
    assert await _is_told(deployment), await disagreement(deployment)
    assert _repeats(await deployment.events()) > _repeats(before)
    assert await deployment.letters() == []


async def _is_told(deployment: LocalDeployment) -> bool:
    """Return whether the results agree with the oracle, apart from what was decided twice."""
    return (await disagreement(deployment)).keys() <= DECIDED_AGAIN


def _repeats(events: list[PairEvent | Retraction]) -> int:
    return len(events) - len(ids(events))


async def _follow(replica: LocalServer, primary: LocalServer) -> None:
    """Let a replica catch up with its primary, then disconnect it."""
    host, port = primary.address.split(":")
    client = Redis(host=host, port=int(replica.address.split(":")[1]))

    async def level() -> bool:
        facts = await client.info("replication")
        return facts["master_link_status"] == "up" and not facts["master_sync_in_progress"]

    await client.replicaof(host, port)
    await until(level)
    await client.replicaof("NO", "ONE")
    await client.aclose()


async def _behind(deployment: LocalDeployment, folder: Path) -> int:
    """Return the number of partitions whose checkpoint is behind the group's commit.

    The checkpoints are read from the data in this folder.
    """
    topic = deployment.topic(SIGNATURES)
    ends = await kafka_offsets.end_offsets(deployment.settings, topic, 10.0)
    committed = await kafka_offsets.committed(deployment.settings, topic, ends)
    address = Deployment.of(deployment.settings).index_address()
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
    """Return the incremental file of the append-only log."""
    (found,) = (folder / AOF).glob("*.incr.aof")
    return found
