"""Run what answers others: a worker, the HTTP API, the servers of mail, and the tools of agents."""

import argparse
import asyncio
import gc
import logging
import os
import signal

from nearstream.workers.cli import logs
from nearstream.workers.cli.arguments import add_collection, add_since, add_timeout, declare, loopback, positive_seconds
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import print_message

log = logging.getLogger(__name__)
ROLES = ("sign", "match", "decide", "alert", "all")
MILTER_STATUS, LMTP_STATUS = "127.0.0.1:9468", "127.0.0.1:9469"  # for NEARSTREAM_STATUS=auto


def add_worker(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream worker`."""
    crash = "a crash, with nothing of the batch acknowledged"
    declare(parser, start_worker, example="nearstream worker match", no=crash)
    parser.add_argument("role", nargs="?", choices=ROLES, default="all", help="agents to run (all: sign and match)")
    parser.add_argument(
        "--new-group", action="store_true", help="take the place of the group that has read the topics so far"
    )
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
    run_worker(settings, options.role, options.timeout, new_group=options.new_group)
    return Exit.OK


def _stop(number: int, _: object) -> None:
    """Exit at once, which is safe as long as nothing was consumed."""
    try:
        log.info("stopped by %s before it joined the group", signal.Signals(number).name)
    finally:
        os._exit(Exit.OK)


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream serve`."""
    declare(parser, serve_api, example="NEARSTREAM_API=127.0.0.1:8080 nearstream serve")
    add_since(parser, "the live page begins with the events", None, ending=", by default 1h")
    add_timeout(parser, 30.0)


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


def add_milter(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream milter`."""
    declare(parser, run_milter, example="nearstream milter --listen 127.0.0.1:9466")
    _add_listener(parser, "127.0.0.1:9466")
    meaning = "let the API send each message to the workers too, so that it is in the index for later ones"
    parser.add_argument("--learn", action="store_true", help=meaning)


def run_milter(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run the mail filter until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    # Imported on use, because this loads aiohttp.
    from nearstream.workers.http.client import mail_client
    from nearstream.workers.mail.milter import milter

    async def run() -> None:
        asking = mail_client(settings, options.collection, learns=options.learn)
        async with asking as client, milter(options.listen, client) as address:
            _serve_status(settings, MILTER_STATUS)
            await _until_stopped("milter", address, asyncio.get_running_loop().create_future())

    asyncio.run(run())
    return Exit.OK


def add_lmtp(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream lmtp`."""
    declare(parser, run_lmtp, example="nearstream lmtp --collection inbox")
    _add_listener(parser, "127.0.0.1:9467")
    add_timeout(parser, 30.0)


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


def _add_listener(parser: argparse.ArgumentParser, address: str) -> None:
    """Add `--listen` with this default, and `--collection`."""
    parser.add_argument(
        "--listen",
        type=loopback,
        default=address,
        metavar="HOST:PORT",
        help=f"where the mail server connects, on loopback only (default {address})",
    )
    add_collection(parser, "messages")


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


def add_mcp(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream mcp`."""
    declare(parser, answer_agent, example="NEARSTREAM_API=127.0.0.1:8080 nearstream mcp")
    meaning = "seconds to wait for an answer (default 5)"
    parser.add_argument("--timeout", type=positive_seconds, default=5.0, metavar="S", help=meaning)


def answer_agent(settings: Settings, options: argparse.Namespace) -> Exit:
    """Answer an agent on stdin and stdout until it closes them."""
    # Imported on use, because these load aiohttp and the SDK, which is an extra.
    from nearstream.workers.http.client import api_client

    try:
        from nearstream.workers.http.client.agent_tools import agent_tools
    except ModuleNotFoundError as error:
        print_message(f"nearstream mcp: needs the extra `mcp`, in which {error.name} is: pip install 'nearstream[mcp]'")
        return Exit.MISCONFIGURED

    async def run() -> None:
        async with api_client(settings, "", "the agent is told so", seconds=options.timeout) as client:
            await agent_tools(client).run_stdio_async()

    asyncio.run(run())
    return Exit.OK
