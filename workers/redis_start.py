"""What is checked, and created, before an index on a server is used."""

import asyncio
import logging
import os

from streams.index import ANCHOR_HEADS, IndexLimits, IndexLostError
from workers.redis_address import IndexAddress, Layout
from workers.redis_calls import Client, ask, call, errors_mapped, server_facts
from workers.redis_schemes import claim_scheme
from workers.settings import SettingsError

_log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 5
_FORMAT = b"4"
_FACTS = ("epoch", "format", "parts", "chunks_x", "chunks_l", "chunks_b", "chunks_a", "chunks_i")  # as index_calls.lua
_CHUNK_FIELDS = 96  # what a chunk is planned for; the server packs it tightly up to 512
_BANDS, _ANCHORS = 25, 40  # keys of a usual document
_LARGEST_BUCKET = 4_096


async def start(client: Client, address: IndexAddress, *, may_create: bool) -> list[Layout]:
    """The layouts of the parts of the index at this address, once everything was found in order.

    Raises:
        SettingsError: Server, rights, scheme or key do not fit.
        IndexLostError: There is no index and none may be created.
        IndexUnavailableError: An outage.
    """
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await check(client, address, may_create=may_create)
            return [await _open(client, address, index, may_create=may_create) for index in range(address.parts)]


async def look(client: Client, address: IndexAddress) -> list[Layout]:
    """The same for who only reads: nothing is written or tried, so that a full server is looked into too.

    Raises:
        SettingsError: Scheme or key do not fit, or another release made the index.
        IndexLostError: There is no index.
        IndexUnavailableError: An outage.
    """
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await claim_scheme(client, address, may_create=False)
            return [await _found(client, address, index) for index in range(address.parts)]


async def check(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Refuses servers, rights, schemes and keys that do not fit; notes a new scheme where an index may be created.

    Raises:
        SettingsError: One of them does not.
        IndexLostError: The namespace holds nothing, and nothing may be created.
    """
    if not ANCHOR_HEADS <= address.limits.bucket_cap <= _LARGEST_BUCKET:
        cap = address.limits.bucket_cap
        raise SettingsError(f"NEARSTREAM_BUCKET_CAP: {ANCHOR_HEADS} to {_LARGEST_BUCKET} expected, not {cap}")
    for facts in await server_facts(client):
        _check_server(facts)
        if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")) and not address.cluster:
            raise SettingsError("NEARSTREAM_REDIS_CLUSTER: no, but the server is a node of a cluster")
    for index in range(address.parts):
        await _check_rights(client, address.key_of(index))
    await claim_scheme(client, address, may_create=may_create)


def chunk_counts(limits: IndexLimits, parts: int) -> list[str]:
    """Fields that fix the layout of a part when it is created."""
    chunks = {"x": 1, "l": 1, "b": _BANDS, "a": _ANCHORS, "i": 1}
    fields = ["parts", str(parts)]
    for kind, keys in chunks.items():
        fields += [f"chunks_{kind}", str(max(1, limits.documents * keys // _CHUNK_FIELDS // parts))]
    return fields


def layout_of(facts: list[bytes], address: IndexAddress) -> Layout:
    """The layout that a part's facts tell.

    Raises:
        SettingsError: It was made by another release, or with another number of parts.
    """
    epoch, found, parts, *planned = facts
    if found != _FORMAT:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {address.namespace} holds an index of format {found.decode()}, this release keeps "
            f"{_FORMAT.decode()}: name another one and run `nearstream rebuild`"
        )
    if int(parts) != address.parts:
        raise SettingsError(
            f"NEARSTREAM_INDEX_PARTS: {address.namespace} is spread over {int(parts)} parts, not {address.parts}"
        )
    digests, lineages, bands, anchors, registry = map(int, planned)
    return Layout(epoch, digests, lineages, bands, anchors, registry)


def _check_server(info: dict[str, object]) -> None:
    valkey, redis = str(info.get("valkey_version", "")), str(info.get("redis_version", "0"))
    if valkey and _major(valkey) < 8:
        raise SettingsError(f"NEARSTREAM_REDIS: Valkey 8 or newer expected, not {valkey}")
    if not valkey and _major(redis) < 7:
        raise SettingsError(f"NEARSTREAM_REDIS: Redis 7.0 or newer expected, not {redis}")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise SettingsError(f"NEARSTREAM_REDIS: maxmemory-policy noeviction expected, not {policy}")


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


async def _check_rights(client: Client, key: bytes) -> None:
    # Inside a function a missing right shows half-way, so each command is tried before.
    refused, encoding = await call(client, "probe", key)
    if refused:
        names = ", ".join(name.decode() for name in refused)
        raise SettingsError(f"NEARSTREAM_REDIS: our user may not run {names}")
    if encoding != b"listpack":
        _log.warning("Redis keeps records loosely: set hash-max-listpack-value to 8192")


async def _open(client: Client, address: IndexAddress, index: int, *, may_create: bool) -> Layout:
    counts = chunk_counts(address.limits, address.parts)
    facts = await call(client, "open", address.key_of(index), int(may_create), os.urandom(8), *counts)
    if not facts:
        raise _no_index(address)
    return layout_of(facts, address)


async def _found(client: Client, address: IndexAddress, index: int) -> Layout:
    facts = await ask(client, "HMGET", address.key_of(index), *_FACTS)
    if facts[0] is None:
        raise _no_index(address)
    return layout_of(facts, address)


def _no_index(address: IndexAddress) -> IndexLostError:
    return IndexLostError(f"{address.namespace} holds no index of {address.scheme}: run `nearstream rebuild`")
