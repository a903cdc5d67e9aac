"""What stands still is seen by doctor, by the HTTP API and on the live page, and no longer when it goes on."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp

from nearstream.schemas.documents.document import EPOCH
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, VERDICTS
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.sources import fed_by_kafka
from nearstream.workers.redis.kept.worker_states import (
    GONE_SECONDS,
    SAID_SECONDS,
    WorkerState,
    forget_worker,
    say_state,
    worker_states,
)
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.support.api import served
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until
from tests.support.mail import command

Condition = Callable[[], Awaitable[bool]]
WITHIN_SECONDS = 30.0  # it takes two, and on a busy machine more, but clients of Kafka alone need 40
HALT = WorkerState(worker="host:1", role="sign", group="g", state="halted", since=EPOCH, why="4 dead letters in a row")


@asynccontextmanager
async def _api(deployment: LocalDeployment, log: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Run `nearstream serve` for the block, and yield a client of it when it is ready."""
    (port,) = free_ports(1)
    with command(log, "serve", **deployment.given() | {"api": f"127.0.0.1:{port}", "api_seconds": "60"}):
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def is_ready() -> bool:
                try:
                    return (await _get(session, "/readyz"))[0] == 200
                except aiohttp.ClientError:
                    return False

            await until(is_ready)
            yield session


async def _get(session: aiohttp.ClientSession, path: str) -> tuple[int, dict[str, object]]:
    async with session.get(path) as response:
        return response.status, await response.json()


async def test_a_halted_worker_of_any_role_is_seen_until_it_is_stopped(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        roles = ("all", "sign", "decide")
        with ExitStack() as running_workers:
            workers = [running_workers.enter_context(deployment.worker(role)) for role in roles]
            await deployment.send([deployment.document("a", TEXTS[0])])
            async with _api(deployment, tmp_path / "api.log") as session:

                async def seen() -> tuple[list[str], object, int]:
                    _, ready = await _get(session, "/readyz")
                    _, live = await _get(session, "/v1/live")
                    return cast(list[str], ready.get("halted", [])), live["troubles"], (await _doctor(deployment))[0]

                async def all_live() -> bool:
                    _, ready = await _get(session, "/readyz")
                    _, live = await _get(session, "/v1/live")
                    count = str(ready["workers"]).count("is live")
                    return (ready["halted"], live["troubles"], count) == ([], [], len(roles))

                await until(all_live)
                assert (await _doctor(deployment))[1].count(" is live since ") == len(roles)
                for topic in map(deployment.topic, (DOCUMENTS, VERDICTS)):
                    await deployment.send([ProducerRecord(topic, b"%d" % n, b"{bad", []) for n in range(600)])

                async def all_see_it() -> bool:
                    ready, live, code = await seen()
                    return len(ready) == len(roles) and bool(live) and code == Exit.NO

                await until(all_see_it)
                status, ready = await _get(session, "/readyz")
                assert (status, ready["ready"]) == (200, True)
                assert " is halted: " in str(ready["halted"])
                assert "nearstream dlq list" in (await _doctor(deployment))[1]
                for process in workers:
                    process.send_signal(signal.SIGTERM)
                for process in workers:
                    await asyncio.to_thread(process.wait, 60)

                async def no_worker_reads() -> bool:
                    _, ready = await _get(session, "/readyz")
                    _, live = await _get(session, "/v1/live")
                    return not ready["halted"] and "no worker of group" in str(live["troubles"])

                await until(no_worker_reads)
                code, shown = await _doctor(deployment)
                assert code == Exit.NO
                assert "halted" not in shown
                assert "no worker of group" in shown
                assert b"no worker of group" in (await asyncio.to_thread(deployment.run, "lag")).stderr


async def _doctor(deployment: LocalDeployment) -> tuple[int, str]:
    done = await asyncio.to_thread(deployment.run, "doctor")
    return done.returncode, done.stdout.decode()


async def test_a_worker_that_says_nothing_more_is_gone_and_later_forgotten(redis_url: str) -> None:
    async with served(redis_url) as api:
        client, namespace = api.index.client, api.deployment.settings.namespace
        key = f"{{{namespace}}}:workers".encode()

        async def said(seconds_ago: float) -> None:
            """Say a state as if that had been so long ago."""
            await say_state(client, namespace, HALT)
            told = json.loads(await client.execute_command("HGET", key, b"host:1"))
            told["at_ms"] -= int(1000 * seconds_ago)
            await client.execute_command("HSET", key, b"host:1", json.dumps(told).encode())

        await said(0)
        assert await worker_states(api.index.connection, namespace) == [HALT]
        assert 0 < await client.execute_command("PTTL", key) <= 1000 * GONE_SECONDS
        for number, junk in enumerate((b"{", b'{"at_ms":"soon"}', b"\xff", b'{"at_ms":9007199254740991,"state":{}}')):
            await client.execute_command("HSET", key, b"junk-%d" % number, junk)
        assert await worker_states(api.index.connection, namespace) == [HALT]
        assert (await api.get("/readyz"))[0] == 200
        await said(SAID_SECONDS + 1)
        (gone,) = await worker_states(api.index.connection, namespace)
        assert (gone.state, gone.why) == ("gone", "its last state was halted: 4 dead letters in a row")
        await said(GONE_SECONDS + 1)
        assert await worker_states(api.index.connection, namespace) == []
        await forget_worker(client, namespace, "host:2")
        assert await client.execute_command("HLEN", key) == 0


async def test_the_page_says_within_seconds_that_redis_does_not_answer(tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        async with served(f"redis://{redis.address}/0") as api:
            api.feed.why = ""
            await _is_told(api.feed, redis, "Redis")


async def test_without_a_broker_the_page_says_so_within_seconds_and_a_worker_is_paused(
    broker: LocalServer, redis_url: str, tmp_path: Path
) -> None:
    async with (
        deployed(broker.address, redis_url, tmp_path) as deployment,
        served(redis_url, namespace=deployment.settings.namespace) as api,
        fed_by_kafka(deployment.settings, api.feed),
    ):

        async def is_paused() -> bool:
            return "is paused by an outage" in str(api.feed.state("").troubles)

        async def is_live() -> bool:
            return "state='live'" in str(api.feed.state("").workers)

        with deployment.worker():
            await until(is_live)
            await _is_told(api.feed, broker, "Kafka", is_paused)
            await until(is_live)


async def _is_told(feed: Feed, server: LocalServer, name: str, also: Condition | None = None) -> None:
    """Freeze a server, and require that the page is told within seconds, and then what else follows from it."""

    async def is_away() -> bool:
        state = feed.state("")
        return not state.connected and name in state.why

    async def is_back() -> bool:
        return feed.state("").connected

    await until(is_back)
    await asyncio.to_thread(server.pause)
    try:
        await until(is_away, WITHIN_SECONDS)
        if also is not None:
            await until(also)
    finally:
        await asyncio.to_thread(server.resume)
    await until(is_back)
