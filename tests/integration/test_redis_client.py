"""Cancellation of calls to the index."""

import asyncio
from urllib.parse import urlsplit

import pytest

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis_index.address import Connection
from nearstream.workers.redis_index.client import ask, open_client

TURNS = 40


async def test_a_call_is_cancelled_at_whatever_moment_that_comes(redis_url: str) -> None:
    """On Python 3.11 `asyncio.wait_for`, which redis-py uses, may return a result instead."""
    async with open_client(Connection(redis_url, None, False)) as client:
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


async def test_a_database_that_the_server_does_not_have_is_a_wrong_setting(redis_url: str) -> None:
    url = urlsplit(redis_url)._replace(path="/9999").geturl()
    with pytest.raises(SettingsError, match="the server refuses us: DB index is out of range"):
        async with open_client(Connection(url, None, False)) as client:
            await ask(client, "EXISTS", b"key")
