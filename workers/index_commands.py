"""What the commands about the index do: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from functools import partial

import msgspec

from schemas.document import document_key
from schemas.topics import SIGNATURES
from streams.index import IndexLostError, IndexState
from workers import assembly, index_view
from workers.exits import Exit
from workers.inspection import Standing, inspect
from workers.rebuild import rebuild
from workers.redis_address import IndexAddress
from workers.redis_calls import until_answered
from workers.redis_index import RedisIndex
from workers.redis_rebuild import RebuildRefusedError
from workers.redis_schemes import SchemeRefusedError, drop_scheme, schemes, switch_scheme
from workers.redis_stats import index_facts
from workers.settings import Settings, SettingsError
from workers.show import escaped


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """A lost index, filled anew from the signatures."""
    return _rebuild(settings, options, _address(settings))


def inspect_document(settings: Settings, options: argparse.Namespace) -> Exit:
    """What became of one document."""
    name = document_key(options.collection, options.id)
    inspected = asyncio.run(inspect(settings, name, options.timeout, quiet=options.quiet))
    if options.json:
        print(_json(index_view.document_object(inspected)))
    else:
        for told in index_view.document_lines(inspected, time.time_ns() // 1_000_000):
            print(told)
    return Exit.NO if inspected.standing is Standing.UNKNOWN else Exit.OK


def stats(settings: Settings, options: argparse.Namespace) -> Exit:
    """How full the index is, and what it takes."""
    address = _beside(_address(settings))

    async def read() -> None:
        index = await until_answered(partial(RedisIndex.open_to_read, address), options.timeout)
        try:
            parts = await index_facts(index)
        finally:
            await index.close()
        for at, part in enumerate(parts):
            if options.json:
                print(_json(index_view.part_object(part, address.scheme, at)))
                continue
            name = f"{address.namespace}, scheme {address.scheme}"
            for told in index_view.part_lines(part, name if len(parts) == 1 else f"{name}, part {at} of {len(parts)}"):
                print(told)

    asyncio.run(read())
    return Exit.OK


def list_schemes(settings: Settings, options: argparse.Namespace) -> Exit:
    """The schemes of the namespace, with the state of each one's index."""
    asyncio.run(_show_schemes(_address(settings), options))
    return Exit.OK


def build_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """The index of the settings' scheme beside the active one, filled from its signatures."""
    return _rebuild(settings, options, _beside(_address(settings)))


def switch_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """Another scheme made the active one."""
    address = _address(settings)

    async def switch() -> None:
        target = await _named(address, options.scheme or address.scheme, options.timeout)
        filling = await _filling(target)
        if filling != IndexState.READY:
            raise SchemeRefusedError(f"the index of {target.scheme} is not ready: {filling}")
        await switch_scheme(target)
        await _show_schemes(address, options)

    return _scheme_step(switch)


def drop_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """A scheme that is not active, forgotten with all that its index holds."""

    async def drop() -> None:
        deleted = await drop_scheme(await _named(_address(settings), options.scheme, options.timeout))
        print(f"deleted {deleted} keys")

    return _scheme_step(drop)


def _rebuild(settings: Settings, options: argparse.Namespace, address: IndexAddress) -> Exit:
    try:
        rebuilt = asyncio.run(rebuild(settings, address, options.timeout, quiet=options.quiet))
    except RebuildRefusedError as error:
        return _refused(error)
    print(f"admitted {rebuilt.admitted}, removed {rebuilt.removed}, skipped {rebuilt.skipped}")
    if rebuilt.skipped and not rebuilt.admitted:
        topic = settings.topic_prefix + SIGNATURES.name
        sys.stderr.write(f"nearstream: {topic} holds no signature of {address.scheme}: an empty index was made\n")
        return Exit.NO
    return Exit.OK


def _scheme_step(step: Callable[[], Awaitable[None]]) -> Exit:
    async def run() -> None:
        await step()

    try:
        asyncio.run(run())
    except SchemeRefusedError as error:
        return _refused(error)
    return Exit.OK


def _refused(error: Exception) -> Exit:
    sys.stderr.write(f"nearstream: {error}\n")
    return Exit.NO


def _address(settings: Settings) -> IndexAddress:
    return assembly.index_address(settings, assembly.hash_key(settings))


def _beside(address: IndexAddress) -> IndexAddress:
    return replace(address, beside=True)


async def _named(address: IndexAddress, scheme: str, wait_seconds: float) -> IndexAddress:
    """The address of a scheme that the namespace holds, with the key that its index was filled with."""
    known = await until_answered(partial(schemes, address), wait_seconds)
    keys = {each.name: each.key_fingerprint for each in known}
    if scheme not in keys:
        held = f"holds {', '.join(keys)}" if keys else "holds no index yet"
        remedy = "; `nearstream index build` makes it" if scheme == address.scheme else ""
        raise SchemeRefusedError(f"no scheme {escaped(scheme)}: the namespace {address.namespace} {held}{remedy}")
    return replace(_beside(address), scheme=scheme, key_fingerprint=keys[scheme])


async def _filling(address: IndexAddress) -> str:
    """The state of a scheme's index, or why it cannot be told."""
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
        print(f"{'scheme':<36}  {'state':<8}  {'index':<10}  since")
    for each in known:
        filling = await _filling(replace(_beside(address), scheme=each.name, key_fingerprint=each.key_fingerprint))
        is_ours = each.name == address.scheme
        if options.json:
            print(_json({**asdict(each), "index": filling, "ours": is_ours}))
            continue
        since = f"{index_view.when(each.created_ms)}{'  (these settings)' if is_ours else ''}"
        print(f"{each.name:<36}  {each.state:<8}  {filling:<10}  {since}")
    if not known:
        sys.stderr.write(f"{address.namespace} holds no index yet; the first worker makes one\n")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
