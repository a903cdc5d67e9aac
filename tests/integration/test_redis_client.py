"""Calls to the index: cancellation, refusals, and a frozen server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError, ResponseError
from redis.exceptions import TimeoutError as NoReplyError

from nearstream.workers.redis.server import shared_connection as connection_module
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import ask, connect, open_client, shared_connection
from nearstream.workers.redis.server.shared_connection import SharedConnection
from tests.devstack.redis import redis_server
from tests.devstack.server import running

TURNS = 40


async def test_a_call_is_cancelled_at_whatever_moment_that_comes(redis_url: str) -> None:
    """On Python 3.11 `asyncio.wait_for`, which redis-py uses, may return a result instead."""
    async with open_client(IndexAddress(redis_url, "n", "s")) as client:
        await ask(client, "ECHO", b"connected")
        swallowed = []
        for turns in range(TURNS):
            task = asyncio.create_task(ask(client, "ECHO", b"text"))
            for _ in range(turns):
                await asyncio.sleep(0)
            if task.cancel():
                await asyncio.wait([task])
                swallowed += [] if task.cancelled() else [turns]
        assert swallowed == []
        assert await ask(client, "ECHO", b"again") == b"again"


@pytest.fixture
async def shared(redis_url: str) -> AsyncIterator[SharedConnection]:
    connection = _shared(redis_url)
    yield connection
    await connection.aclose()


def _shared(url: str) -> SharedConnection:
    address = IndexAddress(url, "n", "s")
    connection = shared_connection(address, connect(address))
    assert isinstance(connection, SharedConnection)
    return connection


async def test_a_call_that_is_given_up_takes_no_reply_of_another(shared: SharedConnection) -> None:
    for turns in range(TURNS):
        tasks = [asyncio.create_task(shared.execute_command("ECHO", b"%d" % number)) for number in range(9)]
        for _ in range(turns % 10):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.result() for task in tasks[1::2]] == [b"%d" % number for number in range(1, 9, 2)]


async def test_a_refused_command_fails_alone(shared: SharedConnection) -> None:
    calls = (shared.execute_command("NOTHING"), shared.execute_command("ECHO", b"x"))
    refused, answered = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(refused, ResponseError)
    assert answered == b"x"
    refused, *replies = await shared.execute_commands([("NOTHING",), ("ECHO", b"x"), ("ECHO", b"y")])
    assert isinstance(refused, ResponseError)
    assert replies == [b"x", b"y"]


async def test_calls_to_a_frozen_server_are_bounded_and_answered_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_UNANSWERED", 256)
    with running(redis_server(tmp_path)) as server:
        connection = _shared(f"redis://{server.address}/0")
        assert await connection.execute_command("ECHO", b"x") == b"x"
        server.pause()
        calls = [asyncio.create_task(connection.execute_command("ECHO", b"x")) for _ in range(300)]
        refused, _ = await asyncio.wait(calls[256:], timeout=60)
        assert len(refused) == 44
        for call in refused:
            with pytest.raises(ConnectionError, match="unanswered"):
                call.result()
        assert not any(call.done() for call in calls[:256])
        server.resume()
        assert set(await asyncio.gather(*calls[:256])) == {b"x"}
        await connection.aclose()


async def test_a_call_of_a_lane_to_a_frozen_server_ends_and_the_next_is_answered_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_SILENT_SECONDS", 0.2)
    with running(redis_server(tmp_path)) as server:
        connection = _shared(f"redis://{server.address}/0")
        assert await connection.execute_command("ECHO", b"x") == b"x"
        server.pause()
        calls = [asyncio.create_task(connection.execute_command("ECHO", b"%d" % number)) for number in range(9)]
        for call in calls:
            with pytest.raises(NoReplyError, match="no reply for"):
                await call
        server.resume()
        monkeypatch.setattr(connection_module, "_SILENT_SECONDS", 60)
        assert await connection.execute_command("ECHO", b"y") == b"y"
        await connection.aclose()
