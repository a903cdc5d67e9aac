"""Serve mail servers: the filter that marks messages."""

import argparse
import asyncio
import logging
import signal
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from nearstream.workers.cli import logs
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

log = logging.getLogger(__name__)


def run_milter(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run the mail filter until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, because this loads aiohttp.
    from nearstream.workers.mail.check_client import check_client
    from nearstream.workers.mail.milter import milter

    async def run() -> None:
        async with AsyncExitStack() as resources:
            client = await resources.enter_async_context(check_client(settings, options.collection))
            await _until_stopped("milter", milter(options.listen, client))

    asyncio.run(run())
    return Exit.OK


async def _until_stopped(name: str, serving: AbstractAsyncContextManager[str]) -> None:
    """Serve until SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving as address:
        log.info("%s: %s", name, address)
        await stopped.wait()
    log.info("stopped")
