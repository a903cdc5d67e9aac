"""Rebuild a lost index, and build the index of another scheme."""

import argparse
import asyncio
import signal
from collections.abc import Awaitable
from dataclasses import replace

from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.claim import claim_deployment
from nearstream.workers.operations.rebuild import Rebuilt, rebuild, require_own_signatures
from nearstream.workers.operations.terminal import print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.store.opening import RebuildRefusedError


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Rebuild a lost index from the signatures topic."""
    deployment = Deployment.of(settings)

    async def claim() -> None:
        # The record of the deployment was lost with the index, so only the signatures know the former settings.
        await require_own_signatures(deployment, options.timeout)
        await claim_deployment(deployment, "match", options.timeout)

    asyncio.run(claim())
    return _rebuild(deployment, options, deployment.index_address())


def build_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Build the index of the scheme in the settings from its signatures, beside the active one."""
    deployment = Deployment.of(settings)
    return _rebuild(deployment, options, replace(deployment.index_address(), beside=True))


def _rebuild(deployment: Deployment, options: argparse.Namespace, address: IndexAddress) -> Exit:
    try:
        rebuilt = asyncio.run(_interruptible(rebuild(deployment, address, options.timeout, quiet=options.quiet)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except RebuildRefusedError as error:
        print_message(f"nearstream: {error}")
        return Exit.NO
    labels = f", labels {rebuilt.labels}" if rebuilt.labels else ""
    print_line(f"admitted {rebuilt.admitted}, removed {rebuilt.removed}, skipped {rebuilt.skipped}{labels}")
    if rebuilt.skipped and not rebuilt.admitted:
        topic = deployment.topic(SIGNATURES)
        print_message(f"nearstream: {topic} holds no signature of {address.scheme}, the new index is empty")
        return Exit.NO
    return Exit.OK


async def _interruptible(rebuilding: Awaitable[Rebuilt]) -> Rebuilt:
    """Let Ctrl-C cancel the rebuild between two steps of the event loop.

    Our usual handler raises an error in whatever runs at that moment, which can end the loop before that.
    """
    task = asyncio.ensure_future(rebuilding)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await task
