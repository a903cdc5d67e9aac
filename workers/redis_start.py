"""What is checked, and created, before an index on a server is used."""

import asyncio
import logging
import os
import time
from dataclasses import dataclass

import msgspec
from redis.asyncio import Redis

from streams.index import ANCHOR_HEADS, IndexLimits, IndexLostError
from workers.redis_calls import call, errors_mapped
from workers.redis_reply import Layout
from workers.settings import SettingsError

_log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 5
_FORMAT = b"2"
_CHUNK_FIELDS = 128  # what a chunk is planned for; the server packs it tightly up to 512
_BANDS, _ANCHORS = 25, 57  # keys of a usual document
_LARGEST_BUCKET = 4_096
_LIMITS = IndexLimits()


@dataclass(frozen=True)
class IndexAddress:
    """Where an index stands, and whose it is.

    Attributes:
        url: `redis://` or `rediss://`.
        namespace: First part of every key.
        scheme: Name of the scheme, second part of every key.
        key_fingerprint: Of the deployment's key; another one is refused.
        limits: Bounds of the index.
        part: Third part of every key; parts do not meet.
        ca_path: Certificates that `rediss://` trusts; None: the system's.
    """

    url: str
    namespace: str
    scheme: str
    key_fingerprint: str
    limits: IndexLimits = _LIMITS
    part: int = 0
    ca_path: str | None = None

    @property
    def key(self) -> bytes:
        """The key of the index's own facts; it holds the hash tag that all keys share."""
        return f"{{{self.namespace}:{self.scheme}:{self.part}}}m".encode()


class _Claim(msgspec.Struct, frozen=True):
    """What the namespace says of one scheme."""

    key: str
    state: str
    created_ms: int


async def start(client: Redis, address: IndexAddress, *, may_create: bool) -> Layout:
    """The layout of the index at this address, once everything was found in order.

    Raises:
        SettingsError: Server, rights, scheme or key do not fit.
        IndexLostError: There is no index and none may be created.
        IndexUnavailableError: An outage.
    """
    if not ANCHOR_HEADS <= address.limits.bucket_cap <= _LARGEST_BUCKET:
        cap = address.limits.bucket_cap
        raise SettingsError(f"NEARSTREAM_BUCKET_CAP: {ANCHOR_HEADS} to {_LARGEST_BUCKET} expected, not {cap}")
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            _check_server(await client.info())
            await _check_rights(client, address)
            await _check_claim(client, address)
            return await _open(client, address, may_create=may_create)


def _check_server(info: dict[str, object]) -> None:
    valkey, redis = str(info.get("valkey_version", "")), str(info.get("redis_version", "0"))
    if valkey and _major(valkey) < 8:
        raise SettingsError(f"NEARSTREAM_REDIS: Valkey 8 or newer expected, not {valkey}")
    if not valkey and _major(redis) < 7:
        raise SettingsError(f"NEARSTREAM_REDIS: Redis 7.0 or newer expected, not {redis}")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise SettingsError(f"NEARSTREAM_REDIS: maxmemory-policy noeviction expected, not {policy}")
    if not info.get("maxmemory"):
        _log.warning("Redis has no maxmemory: it can fill the machine")
    if not info.get("aof_enabled"):
        _log.warning("Redis keeps no append-only file: after a restart the index has to be rebuilt")


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


async def _check_rights(client: Redis, address: IndexAddress) -> None:
    # Inside a function a missing right shows half-way, so each command is tried before.
    refused, encoding = await call(client, "probe", address.key)
    if refused:
        names = ", ".join(name.decode() for name in refused)
        raise SettingsError(f"NEARSTREAM_REDIS: our user may not run {names}")
    if encoding != b"listpack":
        _log.warning("Redis keeps records loosely: set hash-max-listpack-value to 8192")


async def _check_claim(client: Redis, address: IndexAddress) -> None:
    """Finds, or writes, that this namespace holds our scheme under our key."""
    name = f"{{{address.namespace}}}:schemes"
    claims = await _claims(client, name)
    if not claims:
        claim = _Claim(address.key_fingerprint, "active", time.time_ns() // 1_000_000)
        await client.hsetnx(name, address.scheme, msgspec.json.encode(claim).decode())
        claims = await _claims(client, name)
    held = claims.get(address.scheme)
    if held is None:
        others = ", ".join(sorted(claims))
        raise SettingsError(f"NEARSTREAM_SCHEME: {address.namespace} holds {others}, not {address.scheme}")
    if held.key != address.key_fingerprint:
        ours = address.key_fingerprint
        raise SettingsError(f"NEARSTREAM_KEY: {address.namespace} was filled with key {held.key}, not {ours}")
    if held.state != "active":
        raise SettingsError(f"NEARSTREAM_SCHEME: {address.scheme} is {held.state} in {address.namespace}, not active")


async def _claims(client: Redis, name: str) -> dict[str, _Claim]:
    found = await client.hgetall(name)
    return {_text(scheme): msgspec.json.decode(claim, type=_Claim) for scheme, claim in found.items()}


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()


async def _open(client: Redis, address: IndexAddress, *, may_create: bool) -> Layout:
    documents = address.limits.documents
    chunks = {"x": 1, "l": 1, "b": _BANDS, "a": _ANCHORS, "i": 1}
    counts: list[str] = []
    for kind, keys in chunks.items():
        counts += [f"chunks_{kind}", str(max(1, documents * keys // _CHUNK_FIELDS))]
    reply = await call(client, "open", address.key, int(may_create), os.urandom(8), *counts)
    if not reply:
        raise IndexLostError(f"{address.namespace} holds no index of {address.scheme}: run nearstream rebuild")
    epoch, found, *planned = reply
    if found != _FORMAT:
        raise SettingsError(f"NEARSTREAM_NAMESPACE: {address.namespace} holds an index of format {found.decode()}")
    digests, lineages, bands, anchors, registry = map(int, planned)
    return Layout(epoch, digests, lineages, bands, anchors, registry)
