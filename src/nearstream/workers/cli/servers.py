"""Run what answers others: a worker, the HTTP API, and the mail filter."""

import argparse
import asyncio
import gc
import logging
import os
import signal

from nearstream.workers.cli import logs
from nearstream.workers.cli.arguments import add_collection, add_index, add_timeout, declare, loopback
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

log = logging.getLogger(__name__)
ROLES = ("sign", "match", "decide", "alert", "all")
MILTER_STATUS = "127.0.0.1:9468"  # for NEARSTREAM_STATUS=auto


def add_worker(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream worker`."""
    crash = "a crash, with nothing of the batch acknowledged"
    declare(parser, start_worker, example="nearstream worker match", no=crash)
    parser.add_argument("role", nargs="?", choices=ROLES, default="all", help="agents to run (all: sign and match)")
    parser.add_argument(
        "--new-group", action="store_true", help="take the place of the group that has read the topics so far"
    )
    meaning = "do not halt at records that were sent before now: each that is refused becomes a dead letter"
    parser.add_argument("--drain", action="store_true", help=meaning)
    add_timeout(parser, 30.0)


def start_worker(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run one worker process until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)  # until Faust runs, which has handlers of its own
    # Imported on use: this loads numpy and the clients, which takes a second in which a signal may come too.
    gc.disable()
    from nearstream.workers.worker.composition import run_worker

    gc.enable()
    run_worker(settings, options.role, options.timeout, new_group=options.new_group, drain=options.drain)
    return Exit.OK


def _stop(number: int, _: object) -> None:
    """Exit at once, which is safe as long as nothing was consumed."""
    try:
        log.info("stopped by %s before it joined the group", signal.Signals(number).name)
    finally:
        os._exit(Exit.OK)


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream serve`."""
    declare(parser, serve_api, example="NEARSTREAM_API=127.0.0.1:8080 nearstream serve --index FILE")
    add_index(parser, "checks, learns and decides in this process, without Kafka and Redis")
    add_timeout(parser, 30.0)


def serve_api(settings: Settings, options: argparse.Namespace) -> Exit:
    """Serve the HTTP API until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, as for a worker: this loads numpy, the Redis client and aiohttp.
    from nearstream.workers.http.server import serve, serve_alone
    from nearstream.workers.pipeline.deployment import Deployment

    if not settings.hash_key:
        log.warning("NEARSTREAM_HASH_KEY is not set: the public key is used, so anyone can construct collisions")
    deployment = Deployment.of(settings)
    asyncio.run(serve_alone(deployment, options.index) if options.index else serve(deployment, options.timeout))
    return Exit.OK


def add_milter(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream milter`."""
    declare(parser, run_milter, example="nearstream milter --listen 127.0.0.1:9466")
    parser.add_argument(
        "--listen",
        type=loopback,
        default="127.0.0.1:9466",
        metavar="HOST:PORT",
        help="where the mail server connects, on loopback only (default 127.0.0.1:9466)",
    )
    add_collection(parser, "messages")
    meaning = "let the API send each message to the workers too, so that it is in the index for later ones"
    parser.add_argument("--learn", action="store_true", help=meaning)


def run_milter(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run the mail filter until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, because this loads aiohttp.
    from nearstream.workers.config.reloading import reload_on_hangup
    from nearstream.workers.http.client import mail_client, only_token
    from nearstream.workers.http.requests import Gate
    from nearstream.workers.http.status import serve_status
    from nearstream.workers.mail.milter import milter
    from nearstream.workers.monitoring.health import Health

    async def run() -> None:
        asking = mail_client(settings, options.collection, learns=options.learn)
        async with asking as (ask, client), milter(options.listen, ask) as address:
            gate = Gate(settings.status_token)

            def take_tokens(read: Settings) -> None:
                client.token = only_token(read)
                gate.take(read.status_token)

            reload_on_hangup(asyncio.get_running_loop(), take_tokens)
            # It reads no partitions, so it is ready when it listens.
            serve_status(settings, Health(assigned=frozenset()), gate, MILTER_STATUS)
            await _until_stopped(address)

    asyncio.run(run())
    return Exit.OK


async def _until_stopped(address: str) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    log.info("milter: %s", address)
    await stopped.wait()
    log.info("stopped")
