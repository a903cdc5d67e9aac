"""Serve the HTTP API."""

import argparse
import asyncio
import logging

from nearstream.workers.cli import logs
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

log = logging.getLogger(__name__)


def serve_api(settings: Settings, options: argparse.Namespace) -> Exit:
    """Serve the HTTP API until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, as for a worker: this loads numpy, the Redis client and aiohttp.
    from nearstream.workers.http.server import serve
    from nearstream.workers.pipeline.deployment import Deployment

    if not settings.hash_key:
        log.warning("NEARSTREAM_HASH_KEY is not set: the public key is used, so anyone can construct collisions")
    asyncio.run(serve(Deployment.of(settings), options.timeout, options.since))
    return Exit.OK
