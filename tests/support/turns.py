"""Waiting for other tasks of the event loop in tests of one process."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds, a minute at most."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def turns(count: int = 50) -> None:
    """Let all ready tasks run, including calls from threads."""
    for _ in range(count):
        await asyncio.sleep(0)
