"""Report a server that is waited for."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

FIRST_SECONDS = 1.0
PAUSE_SECONDS = 10.0

log = logging.getLogger(__name__)


@asynccontextmanager
async def reported(server: str, wait_seconds: float) -> AsyncIterator[None]:
    """Log that a server is waited for, after a second and then every 10 s.

    Args:
        server: Name and address of the server.
        wait_seconds: How long it is waited for.
    """
    reporting = asyncio.create_task(_report(server, wait_seconds))
    try:
        yield
    finally:
        reporting.cancel()


async def _report(server: str, wait_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    await asyncio.sleep(FIRST_SECONDS)
    while (left := deadline - loop.time()) > 0:
        log.warning("waiting for %s, at most %.0f s more", server, left)
        await asyncio.sleep(PAUSE_SECONDS)
