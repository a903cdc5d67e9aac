"""Manage the schemes of the index, rebuild a lost index, and build the index of another scheme."""

import argparse
import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial

from nearstream.schemas.topics.table import SIGNATURES
from nearstream.streams.store.limits import IndexLostError, IndexState
from nearstream.workers.cli.arguments import add, add_json, add_quiet, add_timeout, declare
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.operations.terminal import escaped, print_line, print_message, print_report, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.server.address import IndexAddress

_NOT_REBUILT = "the index is not empty, another rebuild runs, or no signature has the scheme"


def add_index(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `nearstream index`."""
    actions = parser.add_subparsers(required=True, metavar="action")
    summary = "list the schemes: active, building or retired; their indexes"
    listing = add(actions, "list", summary, list_schemes, example="nearstream index list")
    summary = "build the index of another scheme beside the active one"
    example = "NEARSTREAM_SCHEME=compact nearstream index build"
    build = add(actions, "build", summary, build_index, example=example, no=_NOT_REBUILT)
    add_quiet(build)
    summary, no = "make a scheme active and retire the active one", "the scheme is unknown, or its index is not ready"
    switch = add(actions, "switch", summary, switch_index, example="nearstream index switch", no=no)
    switch.add_argument("scheme", nargs="?", metavar="SCHEME", help="name of the scheme (default: from the settings)")
    for command in (listing, switch):
        add_json(command, "one JSON object per line")
    summary, no = "delete the index of a scheme that is not active", "the scheme is unknown or active"
    example = "nearstream index drop fine-1-u14-k0d3e89c8-547a5fec"
    drop = add(actions, "drop", summary, drop_index, example=example, no=no)
    drop.add_argument("scheme", metavar="SCHEME", help="name of the scheme")
    for command in (listing, build, switch, drop):
        add_timeout(command, 10.0)


def list_schemes(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the schemes of the namespace with the state of each index."""
    asyncio.run(_show_schemes(Deployment.of(settings).index_address(), options))
    return Exit.OK


def switch_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Make another scheme the active one."""
    from nearstream.workers.redis.index.schemes import switch_scheme

    address = Deployment.of(settings).index_address()

    async def switch() -> None:
        target = await _address_of_scheme(address, options.scheme or address.scheme, options.timeout)
        state = await _index_state(target)
        if state != IndexState.READY:
            raise RefusalError(f"the index of {target.scheme} is not ready: {state}")
        await switch_scheme(target)
        await _show_schemes(address, options)

    asyncio.run(switch())
    return Exit.OK


def drop_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Delete a scheme that is not active, with its index, and forget which topic has it."""
    from nearstream.workers.redis.index.schemes import drop_scheme
    from nearstream.workers.redis.kept.deployments import forget_scheme

    deployment = Deployment.of(settings)
    address = deployment.index_address()

    async def drop() -> None:
        try:
            target = await _address_of_scheme(address, options.scheme, options.timeout)
        except RefusalError:
            topics = await forget_scheme(address, options.scheme)
            if not topics:
                raise
        else:
            print_line(f"deleted {await drop_scheme(target)} keys")
            topics = await forget_scheme(address, options.scheme)
        for topic in topics:
            print_line(f"forgot that {topic} has this scheme")
        if deployment.topic(SIGNATURES) in topics and options.scheme != address.scheme:
            from nearstream.workers.operations.claim import claim_deployment  # which loads the client of Kafka

            # A worker that only signs is refused without a record if its group has read documents before.
            await claim_deployment(deployment, "sign", options.timeout)
            print_line(f"{deployment.topic(SIGNATURES)} has the scheme {address.scheme} now")

    asyncio.run(drop())
    return Exit.OK


async def _address_of_scheme(address: IndexAddress, scheme: str, wait_seconds: float) -> IndexAddress:
    """Return the address of the index of a scheme."""
    from nearstream.workers.redis.index.schemes import schemes
    from nearstream.workers.redis.server.client import until_answered

    known = await until_answered(partial(schemes, address), wait_seconds)
    if scheme not in known:
        existing = f"has {', '.join(known)}" if known else "has no index"
        remedy = "; build it with `nearstream index build`" if scheme == address.scheme else ""
        raise RefusalError(f"no scheme {escaped(scheme)}: the namespace {address.namespace} {existing}{remedy}")
    return replace(address, beside=True, scheme=scheme)


async def _index_state(address: IndexAddress) -> str:
    from nearstream.workers.redis.index.index import RedisIndex

    try:
        index = await RedisIndex.open_to_read(address)
    except IndexLostError:
        return IndexState.LOST
    except SettingsError as error:
        return str(error)
    try:
        return await index.state()
    finally:
        await index.close()


async def _show_schemes(address: IndexAddress, options: argparse.Namespace) -> None:
    from nearstream.workers.redis.index.schemes import schemes
    from nearstream.workers.redis.server.client import until_answered

    known = await until_answered(partial(schemes, address), options.timeout)
    if known and not options.json:
        print_line(f"{'scheme':<36}  {'state':<8}  {'index':<10}  since")
    for name, claim in known.items():
        state = await _index_state(replace(address, beside=True, scheme=name))
        is_ours = name == address.scheme
        since = f"{utc_time(claim.created_ms)}{'  (these settings)' if is_ours else ''}"
        line = f"{name:<36}  {claim.state:<8}  {state:<10}  {since}"
        fields = {"name": name, "state": claim.state, "created_ms": claim.created_ms}
        print_report({**fields, "index": state, "ours": is_ours}, [line], is_json=options.json)
    if not known:
        print_message(f"{address.namespace} has no index: `nearstream doctor` says whether it is lost, or not made yet")


def add_rebuild(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream rebuild`."""
    declare(parser, rebuild_index, example="nearstream rebuild", no=_NOT_REBUILT)
    add_quiet(parser)
    add_timeout(parser, 10.0)


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Rebuild a lost index from the signatures topic."""
    # Imported on use, as below: this loads the client of Kafka.
    from nearstream.workers.operations.claim import claim_deployment
    from nearstream.workers.operations.rebuild import require_own_signatures

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
    from nearstream.workers.operations.rebuild import rebuild

    try:
        rebuilt = asyncio.run(_interruptible(rebuild(deployment, address, options.timeout, quiet=options.quiet)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    outcomes = [f"{name} {rebuilt[name]}" for name in ("admitted", "removed", "skipped")]
    print_line(", ".join([*outcomes, *([f"labels {rebuilt['labels']}"] if rebuilt["labels"] else [])]))
    if rebuilt["skipped"] and not rebuilt["admitted"]:
        topic = deployment.topic(SIGNATURES)
        print_message(f"nearstream: {topic} holds no signature of {address.scheme}, the new index is empty")
        return Exit.NO
    return Exit.OK


async def _interruptible(rebuilding: Awaitable[Counter[str]]) -> Counter[str]:
    """Let Ctrl-C cancel the rebuild between two steps of the event loop.

    Our usual handler raises an error in whatever runs at that moment, which can end the loop before that.
    """
    task = asyncio.ensure_future(rebuilding)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await task
