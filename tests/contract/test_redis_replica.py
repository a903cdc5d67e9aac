"""Checks that ask a replica, which refuses writes and has what the primary had a moment ago."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from nearstream.streams.matching.looking_up import newcomer
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.store.limits import IndexLimits, IndexLostError, IndexUnavailableError
from nearstream.streams.store.store import Position
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.errors import IndexReadOnlyError
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.arrivals import OTHER, TEXT, arrivals, matcher
from tests.support.deployment import until
from tests.support.made_up import KEY, STANDARD, sign

_AT_ONCE = ["--repl-diskless-sync-delay", "0"]


async def test_a_replica_answers_checks_also_after_its_primary_is_gone(tmp_path: Path) -> None:
    primary, replica = (redis_server(tmp_path / name, _AT_ONCE) for name in ("primary", "replica"))
    with running(primary), running(replica):
        host, port = primary.address.split(":")
        with Redis(port=int(replica.address.split(":")[1])) as follower:
            follower.replicaof(host, port)
        limits = IndexLimits(documents=6_400)
        address = IndexAddress(f"redis://{primary.address}", "replica", STANDARD.name, KEY.fingerprint, limits)
        index = await RedisIndex.open(address, partitions=1, may_create=True)
        await matcher(index.store()).match_all(arrivals([("first", TEXT), ("second", OTHER)], 1))
        await index.cover([Position(0, 1)])
        copy = replace(address, url=f"redis://{replica.address}")

        async def has_all() -> bool:
            with suppress(IndexUnavailableError, IndexLostError):
                reading = await RedisIndex.open_to_read(copy)
                checkpoints = await reading.checkpoints()
                await reading.close()
                return checkpoints == {0: 1}
            return False

        await until(has_all)
        primary.kill()
        reading = await RedisIndex.open_to_read(copy)
        asked = newcomer(sign(TEXT, "third"), STANDARD, KEY, DEFAULT_THRESHOLDS)
        (found,) = await reading.neighbours_of([asked])
        assert [each.earlier.id for each in found.candidates] == ["first"]
        with pytest.raises(IndexReadOnlyError):
            await matcher(reading.store()).match_all(arrivals([("third", TEXT)], 1))
        await reading.close()
        await index.close()
