"""Check the server, our rights, the scheme and the key before an index is used."""

import asyncio
import logging

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.index.schemes import claim_scheme
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import Client, call, server_facts
from nearstream.workers.redis.server.errors import IS_CLUSTER_NODE, errors_mapped
from nearstream.workers.redis.server.layout import KeyKind

_log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 5


async def check_requirements(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Refuse a server, rights, a scheme or a key that do not fit.

    If `may_create` is true, a new scheme is added to the namespace.
    """
    with errors_mapped():
        async with asyncio.timeout(_DEADLINE_SECONDS):
            for facts in await server_facts(client):
                _check_server(facts)
                if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")) and not address.cluster:
                    raise SettingsError(IS_CLUSTER_NODE)
            for slot in range(address.slots):
                await _check_rights(client, address.tag(slot) + KeyKind.PROBE)
            await claim_scheme(client, address, may_create=may_create)


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
