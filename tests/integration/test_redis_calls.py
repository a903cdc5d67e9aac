"""What a client of the index does when its task is to end."""

import asyncio

from workers.redis_address import Connection
from workers.redis_calls import ask, connected

TURNS = 40


async def test_a_call_is_cancelled_at_whatever_moment_that_comes(redis_url: str) -> None:
    """On Python 3.11 `asyncio.wait_for`, which redis-py sends by, returns what was done instead."""
    async with connected(Connection(redis_url, None, False)) as client:
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
