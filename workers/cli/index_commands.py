"""Inspect documents, show and rebuild the index, manage schemes."""

import argparse
import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, replace
from functools import partial

from nearstream.schemas.document import document_key
from nearstream.schemas.topics import SIGNATURES
from nearstream.streams.index.contract import IndexLostError, IndexState
from nearstream.workers.cli import index_report
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.operations.claim import claim_deployment
from nearstream.workers.operations.inspection import DocumentStatus, inspect
from nearstream.workers.operations.rebuild import Rebuilt, rebuild, require_own_signatures
from nearstream.workers.operations.remove import remove_documents
from nearstream.workers.operations.terminal import escaped, print_json, print_line, print_message, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.deployments import forget_scheme
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.rebuild import RebuildRefusedError
from nearstream.workers.redis_index.schemes import SchemeRefusedError, drop_scheme, schemes, switch_scheme

_STATUS_BEFORE = {
    DocumentStatus.LIVE: "live",
    DocumentStatus.EXPIRED: "expired",
    DocumentStatus.UNKNOWN: "not in the index",
}


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Rebuild a lost index from the signatures topic."""
    deployment = Deployment.of(settings)

    async def claim() -> None:
        # The record of the deployment was lost with the index, so only the signatures know the former settings.
        await require_own_signatures(deployment, options.timeout)
        await claim_deployment(deployment, "match", options.timeout)

    asyncio.run(claim())
    return _rebuild(deployment, options, deployment.index_address())


def show_document(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what is known of one document: its status, its states, its buckets."""
    name = document_key(options.collection, options.id)
    inspected = asyncio.run(inspect(Deployment.of(settings), name, options.timeout, quiet=options.quiet))
    if options.json:
        print_json(index_report.document_object(inspected))
    else:
        for line in index_report.document_lines(inspected, time.time_ns() // 1_000_000):
            print_line(line)
    return Exit.NO if inspected.status is DocumentStatus.UNKNOWN else Exit.OK


def remove_by_id(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the removal of documents, and print what the index held of each."""
    deployment = Deployment.of(settings)
    removed = asyncio.run(remove_documents(deployment, options.ids, options.collection, options.timeout))
    for document in removed:
        if options.json:
            print_json({"document": document.document_key, "status": document.status})
        else:
            print_line(f"{escaped(document.document_key)}: {_STATUS_BEFORE[document.status]}, removal sent")
    return Exit.OK if all(document.status is DocumentStatus.LIVE for document in removed) else Exit.NO


def list_schemes(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the schemes of the namespace with the state of each index."""
    asyncio.run(_show_schemes(_address(settings), options))
    return Exit.OK


def build_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Build the index of the scheme in the settings from its signatures, beside the active one."""
    deployment = Deployment.of(settings)
    return _rebuild(deployment, options, _beside(deployment.index_address()))


def switch_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Make another scheme the active one."""
    address = _address(settings)

    async def switch() -> None:
        target = await _address_of_scheme(address, options.scheme or address.scheme, options.timeout)
        state = await _index_state(target)
        if state != IndexState.READY:
            raise SchemeRefusedError(f"the index of {target.scheme} is not ready: {state}")
        await switch_scheme(target)
        await _show_schemes(address, options)

    return _change_scheme(switch)


def drop_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Delete a scheme that is not active, with its index, and forget which topic has it."""
    deployment = Deployment.of(settings)
    address = deployment.index_address()

    async def drop() -> None:
        try:
            target = await _address_of_scheme(address, options.scheme, options.timeout)
        except SchemeRefusedError:
            topics = await forget_scheme(address, options.scheme)
            if not topics:
                raise
        else:
            print_line(f"deleted {await drop_scheme(target)} keys")
            topics = await forget_scheme(address, options.scheme)
        for topic in topics:
            print_line(f"forgot that {topic} has this scheme")
        if deployment.topic(SIGNATURES) in topics and options.scheme != address.scheme:
            # A worker that only signs is refused without a record if its group has read documents before.
            await claim_deployment(deployment, "sign", options.timeout)
            print_line(f"{deployment.topic(SIGNATURES)} has the scheme {address.scheme} now")

    return _change_scheme(drop)


def _rebuild(deployment: Deployment, options: argparse.Namespace, address: IndexAddress) -> Exit:
    try:
        rebuilt = asyncio.run(_interruptible(rebuild(deployment, address, options.timeout, quiet=options.quiet)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except RebuildRefusedError as error:
        return _refused(error)
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


def _change_scheme(change: Callable[[], Coroutine[None, None, None]]) -> Exit:
    try:
        asyncio.run(change())
    except SchemeRefusedError as error:
        return _refused(error)
    return Exit.OK


def _refused(error: Exception) -> Exit:
    print_message(f"nearstream: {error}")
    return Exit.NO


def _address(settings: Settings) -> IndexAddress:
    return Deployment.of(settings).index_address()


def _beside(address: IndexAddress) -> IndexAddress:
    return replace(address, beside=True)


async def _address_of_scheme(address: IndexAddress, scheme: str, wait_seconds: float) -> IndexAddress:
    """Return the address of the index of a scheme.

    It has the fingerprint of the hash key that the index was built with, which need not be that of the settings.

    Raises:
        SchemeRefusedError: The namespace has no such scheme.
    """
    known = await until_answered(partial(schemes, address), wait_seconds)
    keys = {each.name: each.key_fingerprint for each in known}
    if scheme not in keys:
        existing = f"has {', '.join(keys)}" if keys else "has no index"
        remedy = "; build it with `nearstream index build`" if scheme == address.scheme else ""
        raise SchemeRefusedError(f"no scheme {escaped(scheme)}: the namespace {address.namespace} {existing}{remedy}")
    return replace(_beside(address), scheme=scheme, key_fingerprint=keys[scheme])


async def _index_state(address: IndexAddress) -> str:
    """Return the state of an index, or why it cannot be opened."""
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
    known = await until_answered(partial(schemes, address), options.timeout)
    if known and not options.json:
        print_line(f"{'scheme':<36}  {'state':<8}  {'index':<10}  since")
    for each in known:
        state = await _index_state(replace(_beside(address), scheme=each.name, key_fingerprint=each.key_fingerprint))
        is_ours = each.name == address.scheme
        if options.json:
            print_json({**asdict(each), "index": state, "ours": is_ours})
            continue
        since = f"{utc_time(each.created_ms)}{'  (these settings)' if is_ours else ''}"
        print_line(f"{each.name:<36}  {each.state:<8}  {state:<10}  {since}")
    if not known:
        print_message(f"{address.namespace} has no index: `nearstream doctor` says whether it is lost, or not made yet")
