"""A backup of Redis is restored as the page says, and the workers add what came after it."""

import asyncio
import json
import shutil
from pathlib import Path

from redis.asyncio import Redis

from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.deployment import LINES, LocalDeployment, deployed, until


async def test_a_restored_backup_is_given_what_it_misses(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as server:
        async with (
            Redis.from_url(url := f"redis://{server.address}/0") as client,
            deployed(kafka, url, tmp_path) as deployment,
        ):
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[:40]))
                await deployment.drained()
                assert await _has(deployment, 40)
                await client.bgsave()
                await until(lambda: _saved(client))
                shutil.copy(tmp_path / "redis/dump.rdb", tmp_path / "backup.rdb")
                await deployment.send(deployment.examples(LINES[40:80]))
                await deployment.drained()
            await asyncio.to_thread(server.stop)
            shutil.rmtree(tmp_path / "redis/appendonlydir")
            shutil.copy(tmp_path / "backup.rdb", tmp_path / "redis/dump.rdb")
            server.command = [*server.command, "--appendonly", "no"]
            await asyncio.to_thread(server.start)
            async with Redis.from_url(url) as restored:
                await restored.config_set("appendonly", "yes")
            with deployment.worker():
                await deployment.send(deployment.examples(LINES[80:90]))
                await deployment.drained()
                await until(lambda: _has(deployment, 90))
            assert await deployment.letters() == []
            assert {each.id for each in await deployment.verdicts()} == {json.loads(line)["id"] for line in LINES[:90]}


async def _saved(client: Redis) -> bool:
    return not (await client.info("persistence"))["rdb_bgsave_in_progress"]


async def _has(deployment: LocalDeployment, documents: int) -> bool:
    done = await asyncio.to_thread(deployment.run, "stats", "--json")
    return bool(json.loads(done.stdout)["documents"] == documents)
