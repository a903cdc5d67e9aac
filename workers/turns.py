"""Turns of the event loop during work that takes long."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

YIELD_SECONDS = 0.05


def giving_turns() -> Callable[[], Awaitable[None]]:
    """A function to be awaited between pieces of work: it lets the loop turn if it has not for `YIELD_SECONDS`."""
    since = monotonic()

    async def pause() -> None:
        nonlocal since
        if monotonic() - since > YIELD_SECONDS:
            await asyncio.sleep(0)
            since = monotonic()

    return pause
