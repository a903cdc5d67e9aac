"""An index behind Redis Sentinel whose primary is lost, and checks that ask a replica."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from nearstream.streams.matching.looking_up import newcomer
from nearstream.streams.matching.matcher import Matched
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.store.limits import IndexLimits, IndexLostError, IndexState, IndexUnavailableError
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.redis import find_program, redis_answers, redis_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.support.deployment import until
from tests.support.made_up import KEY, OTHER, STANDARD, TEXT, sign
from tests.support.matched import arrivals, crawl, matcher

PARTITIONS = 6
BATCH = crawl(PARTITIONS)
_AT_ONCE = ["--repl-diskless-sync-delay", "0"]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LocalServer, LocalServer, LocalServer]]:
    """Run a primary, its replica, and a sentinel that watches them."""
    primary, replica = (redis_server(tmp_path / name, _AT_ONCE) for name in ("primary", "replica"))
    with ExitStack() as stack:
        for server in (primary, replica):
            stack.enter_context(running(server))
        host, port = primary.address.split(":")
        with Redis(port=int(replica.address.split(":")[1])) as follower:
            follower.replicaof(host, port)
        yield primary, replica, stack.enter_context(running(_sentinel(tmp_path, port)))


def _sentinel(folder: Path, primary_port: str) -> LocalServer:
    (port,) = free_ports(1)
    path = folder / "sentinel.conf"  # where the sentinel keeps what it has learned
    watch = f"monitor watched 127.0.0.1 {primary_port} 1", "down-after-milliseconds watched 500"
    lines = [f"port {port}", "bind 127.0.0.1", f"dir {folder}", *(f"sentinel {line}" for line in watch)]
    path.write_text("\n".join([*lines, "sentinel failover-timeout watched 2000\n"]))
    command = [find_program(), str(path), "--sentinel"]
    return LocalServer("Sentinel", f"127.0.0.1:{port}", command, folder / "sentinel.log", redis_answers)


async def test_after_the_loss_of_the_primary_the_promoted_replica_is_used(
    nodes: tuple[LocalServer, LocalServer, LocalServer],
) -> None:
    primary, replica, sentinel = nodes
    url = f"redis+sentinel://127.0.0.1:1,{sentinel.address}/watched/0"  # the first sentinel is away
    address = IndexAddress(url, "sentinel", STANDARD.name, IndexLimits(documents=6_400))
    index = await RedisIndex.open(address, partitions=PARTITIONS, may_create=True)
    reading = await RedisIndex.open_to_read(address)
    lane = matcher(index.store())
    first = await lane.match_all(BATCH[:6])
    await until(lambda: _has_all(primary, replica, sentinel))
    primary.kill()
    again: list[Matched] = []

    async def matched_again() -> bool:
        with suppress(IndexUnavailableError):
            again.extend(await lane.match_all(BATCH[:9], is_again=True))
        return bool(again)

    await until(matched_again)
    assert [each.registered.status for each in again[:6]] == [Status.KNOWN] * 6
    assert [each.verdict and each.verdict.event_id for each in again[:6]] == [
        each.verdict and each.verdict.event_id for each in first
    ]
    await until(lambda: _is_ready(reading))


async def _is_ready(index: RedisIndex) -> bool:
    with suppress(IndexUnavailableError):
        return await index.state() is IndexState.READY
    return False


async def _has_all(primary: LocalServer, replica: LocalServer, sentinel: LocalServer) -> bool:
    """Return whether the replica has what the primary has, and the sentinel may promote it."""
    with _client(primary) as first, _client(replica) as second, _client(sentinel) as watching:
        written, followed = first.info("replication"), second.info("replication")
        known = watching.sentinel_master("watched")["num-slaves"]
        return (followed["slave_repl_offset"], known) == (written["master_repl_offset"], 1)


def _client(server: LocalServer) -> Redis:
    return Redis(port=int(server.address.split(":")[1]))


async def test_a_replica_answers_checks_also_after_its_primary_is_gone(tmp_path: Path) -> None:
    primary, replica = (redis_server(tmp_path / name, _AT_ONCE) for name in ("primary", "replica"))
    with running(primary), running(replica):
        host, port = primary.address.split(":")
        with Redis(port=int(replica.address.split(":")[1])) as follower:
            follower.replicaof(host, port)
        limits = IndexLimits(documents=6_400)
        address = IndexAddress(f"redis://{primary.address}", "replica", STANDARD.name, limits)
        index = await RedisIndex.open(address, partitions=1, may_create=True)
        await matcher(index.store()).match_all(arrivals([("first", TEXT), ("second", OTHER)], 1))
        await index.cover([Position(0, 1)])
        copy = replace(address, url=f"redis://{replica.address}")

        async def has_all() -> bool:
            with suppress(IndexUnavailableError, IndexLostError):
                reading = await RedisIndex.open_to_read(copy)
                checkpoints = await reading.checkpoints()
                return checkpoints == {0: 1}
            return False

        await until(has_all)
        primary.kill()
        reading = await RedisIndex.open_to_read(copy)
        asked = newcomer(sign(TEXT, "third"), STANDARD, KEY, DEFAULT_THRESHOLDS)
        (found,) = await reading.neighbours_of([asked])
        assert [each.earlier.id for each in found.candidates] == ["first"]
        with pytest.raises(IndexUnavailableError, match="refuses writes"):
            await matcher(reading.store()).match_all(arrivals([("third", TEXT)], 1))
