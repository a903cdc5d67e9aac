"""A Redis that is frozen, full, slow, gone."""

import asyncio

import pytest

from streams.index import Admission, IndexUnavailableError
from streams.scheme import Keys
from tests.fault.conftest import Stage
from workers import assembly
from workers.redis_index import RedisIndex

NO_KEYS = Keys(b"", None, (), ())


async def test_f06_a_paused_redis_loses_nothing(stage: Stage) -> None:
    async with stage("F06") as run:
        before = run.rebalances()
        async with run.load():
            run.redis.pause()
            await asyncio.sleep(6)
            run.redis.resume()
        assert run.rebalances() == before
        report = await run.finish()
        assert report.verdict == "ok"
        assert report.exits == [0, 0, 0]


async def test_f08_a_full_redis_is_read_and_never_half_written(stage: Stage) -> None:
    async with stage("F08") as run:
        settings = run.deployment.settings
        index = await RedisIndex.open(assembly.index_address(settings, assembly.hash_key(settings)), may_create=False)
        async with run.load():
            await index.client.config_set("maxmemory", "1mb")
            await asyncio.sleep(4)
            with pytest.raises(IndexUnavailableError, match="refuses writes"):
                await index.admit([Admission("news/none", None, NO_KEYS)])
            assert await index.look_up(NO_KEYS, 1) == ()
            await index.client.config_set("maxmemory", "2gb")
        report = await run.finish()
        await index.close()
        assert report.verdict == "ok"
        assert report.exits == [0, 0, 0]
