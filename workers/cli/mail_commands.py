"""Serve mail servers: the filter that marks messages, and the server that takes them."""

import argparse
import asyncio
import logging
import signal

from nearstream.workers.cli import logs
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

MILTER_STATUS, LMTP_STATUS = "127.0.0.1:9468", "127.0.0.1:9469"  # for NEARSTREAM_STATUS=auto

log = logging.getLogger(__name__)


def run_milter(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run the mail filter until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, because this loads aiohttp.
    from nearstream.workers.mail.check_client import check_client
    from nearstream.workers.mail.milter import milter

    async def run() -> None:
        async with check_client(settings, options.collection) as client, milter(options.listen, client) as address:
            _serve_status(settings, MILTER_STATUS)
            await _until_stopped("milter", address, asyncio.get_running_loop().create_future())

    asyncio.run(run())
    return Exit.OK


def run_lmtp(settings: Settings, options: argparse.Namespace) -> Exit:
    """Take mail until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, because this loads numpy and the Kafka client.
    from nearstream.workers.operations.receive_mail import receiving
    from nearstream.workers.pipeline.deployment import Deployment

    deployment = Deployment.of(settings)

    async def run() -> None:
        async with receiving(deployment, options.listen, options.collection, options.timeout) as (address, broken):
            _serve_status(settings, LMTP_STATUS)
            await _until_stopped("LMTP", address, broken)

    asyncio.run(run())
    return Exit.OK


def _serve_status(settings: Settings, default: str) -> None:
    """Serve metrics and health, unless `NEARSTREAM_STATUS` is off.

    Raises:
        SettingsError: The address cannot be used.
    """
    from nearstream.workers.monitoring.health import Health
    from nearstream.workers.monitoring.status_server import serve_status

    if settings.status != "off":
        health = Health(assigned=frozenset())  # it reads no partitions, so it is ready when it listens
        log.info(
            "status: http://%s/metrics /healthz /readyz",
            serve_status(settings.status, health, settings.status_token, default),
        )


async def _until_stopped(name: str, address: str, ending: "asyncio.Future[None]") -> None:
    """Wait for SIGINT or SIGTERM, or until the server raises what makes further work useless."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _end, ending)
    log.info("%s: %s", name, address)
    await ending
    log.info("stopped")


def _end(ending: "asyncio.Future[None]") -> None:
    if not ending.done():
        ending.set_result(None)
