"""Check, and if needed create, an index on a server before it is used."""

import asyncio
import logging
import os

from nearstream.streams.index.contract import ANCHOR_HEADS, IndexLimits, IndexLostError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import Client, ask, call, server_facts
from nearstream.workers.redis_index.errors import IS_CLUSTER_NODE, errors_mapped
from nearstream.workers.redis_index.layout import (
    CHUNKED_KINDS,
    EPOCH_BYTES,
    FORMAT,
    LAYOUT_FIELDS,
    IndexLayout,
    KeyKind,
)
from nearstream.workers.redis_index.schemes import claim_scheme

_log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 5
# Planned fields of a chunk. The server goes through a chunk twice to add a field, and a chunk costs some 60 bytes.
_CHUNK_FIELDS = 48
# Keys of a usual document.
_KEYS = {KeyKind.DIGEST: 1, KeyKind.LINEAGE: 1, KeyKind.BAND: 25, KeyKind.ANCHOR: 40, KeyKind.REGISTRY: 1}
_LARGEST_BUCKET = 4_096


async def open_layouts(client: Client, address: IndexAddress, *, may_create: bool) -> list[IndexLayout]:
    """Check everything and return the layouts of the index's shards.

    A missing shard is created if `may_create` is true.

    Raises:
        SettingsError: The server, our rights, the scheme or the key do not fit.
        IndexLostError: There is no index, and none may be created.
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await check(client, address, may_create=may_create)
            return [await _open(client, address, index, may_create=may_create) for index in range(address.shards)]


async def read_layouts(client: Client, address: IndexAddress) -> list[IndexLayout]:
    """Return the layouts of the index's shards for a client that only reads.

    This writes nothing and does not check rights, so it works on a full server too.

    Raises:
        SettingsError: The scheme or the key do not fit, or another release made the index.
        IndexLostError: There is no index.
        IndexUnavailableError: The server does not answer.
    """
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await claim_scheme(client, address, may_create=False)
            return [await _read(client, address, index) for index in range(address.shards)]


async def check(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Refuse a server, rights, a scheme or a key that do not fit.

    If `may_create` is true, a new scheme is added to the namespace.

    Raises:
        SettingsError: One of them does not fit.
        IndexLostError: The namespace is empty, and nothing may be created.
        IndexUnavailableError: The server does not answer.
    """
    if not ANCHOR_HEADS <= address.limits.bucket_cap <= _LARGEST_BUCKET:
        cap = address.limits.bucket_cap
        raise SettingsError(f"NEARSTREAM_BUCKET_CAP: expected {ANCHOR_HEADS} to {_LARGEST_BUCKET}, got {cap}")
    for facts in await server_facts(client):
        _check_server(facts)
        if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")) and not address.cluster:
            raise SettingsError(IS_CLUSTER_NODE)
    for index in range(address.shards):
        await _check_rights(client, address.key_of(index))
    await claim_scheme(client, address, may_create=may_create)


def layout_fields(limits: IndexLimits, shards: int) -> list[str]:
    """Return names and values of the facts that fix the layout of a new shard."""
    counts = [max(1, limits.documents * _KEYS[kind] // _CHUNK_FIELDS // shards) for kind in CHUNKED_KINDS]
    _, _, *names = LAYOUT_FIELDS
    return [text for name, count in zip(names, (shards, *counts), strict=True) for text in (name, str(count))]


def layout_of(facts: list[bytes], address: IndexAddress) -> IndexLayout:
    """Return the layout of a shard.

    Args:
        facts: Values of `LAYOUT_FIELDS`.
        address: The address of the index.

    Raises:
        SettingsError: Another release made the shard, or the index has another number of shards.
    """
    epoch, found, shards, *counts = facts
    if found != FORMAT.encode():
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {address.namespace} holds an index of format {found.decode()}, this release keeps "
            f"{FORMAT}: name another one and run `nearstream rebuild`"
        )
    if int(shards) != address.shards:
        raise SettingsError(
            f"NEARSTREAM_INDEX_SHARDS: {address.namespace} is spread over {int(shards)} shards, not {address.shards}:"
            " restore the former value, or name another namespace and run `nearstream rebuild`"
        )
    return IndexLayout(epoch, dict(zip(CHUNKED_KINDS, map(int, counts), strict=True)))


def _check_server(info: dict[str, object]) -> None:
    valkey, redis = str(info.get("valkey_version", "")), str(info.get("redis_version", "0"))
    if valkey and _major(valkey) < 8:
        raise SettingsError(f"NEARSTREAM_REDIS: expected Valkey 8 or newer, got {valkey}")
    if not valkey and _major(redis) < 7:
        raise SettingsError(f"NEARSTREAM_REDIS: expected Redis 7.0 or newer, got {redis}")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise SettingsError(f"NEARSTREAM_REDIS: expected maxmemory-policy noeviction, got {policy}")


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


async def _check_rights(client: Client, key: bytes) -> None:
    # A function finds a missing right only halfway through, so each command is tried before.
    refused, encoding = await call(client, "probe", key)
    if refused:
        names = ", ".join(name.decode() for name in refused)
        raise SettingsError(f"NEARSTREAM_REDIS: our user may not run {names}: grant these commands")
    if encoding != b"listpack":
        _log.warning("Redis needs more memory than necessary for records: set hash-max-listpack-value to 8192")


async def _open(client: Client, address: IndexAddress, index: int, *, may_create: bool) -> IndexLayout:
    fields = layout_fields(address.limits, address.shards)
    facts = await call(client, "open", address.key_of(index), int(may_create), os.urandom(EPOCH_BYTES), *fields)
    if not facts:
        raise _no_index(address)
    return layout_of(facts, address)


async def _read(client: Client, address: IndexAddress, index: int) -> IndexLayout:
    facts = await ask(client, "HMGET", address.key_of(index), *LAYOUT_FIELDS)
    if facts[0] is None:
        raise _no_index(address)
    return layout_of(facts, address)


def _no_index(address: IndexAddress) -> IndexLostError:
    return IndexLostError(f"{address.namespace} holds no index of {address.scheme}: run `nearstream rebuild`")
