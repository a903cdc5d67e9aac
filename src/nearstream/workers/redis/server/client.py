"""Redis client: index functions, plain commands, facts about the server and its keys."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, urlsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, ResponseError

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.errors import errors_mapped
from nearstream.workers.redis.server.functions import function_name, lacks_functions, load_functions
from nearstream.workers.redis.server.shared_connection import SharedConnection

Client = Redis | RedisCluster
Shared = RedisCluster | SharedConnection
Caller = Client | SharedConnection
_Answer = TypeVar("_Answer")


@runtime_checkable
class Commanded(Protocol):
    """Carries out plain commands, several at a time, as a shared connection does."""

    async def execute_command(self, command: str, key: bytes, *words: bytes | str | int) -> Any:  # noqa: ANN401 - as redis
        """Return the reply to a command about a key."""

    async def execute_commands(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the reply to each command, or its refusal."""


_RETRY_SECONDS = 0.5
_PAGE_KEYS = 1_000
_PIPELINE_COMMANDS = 1_000  # commands in one round trip
_CONNECTIONS = 4  # to one server. Further calls wait for a free one.
# To a node of a cluster, or through Sentinel: more than all lanes can use, because the client does not wait but raises
# an error.
_CLUSTER_CONNECTIONS = 2_048


def connect(address: IndexAddress) -> Client:
    """Return a client without hidden retries, which opens its connections when it needs them."""
    by_sentinel = is_sentinel(address.url)
    most = _CLUSTER_CONNECTIONS if address.cluster or by_sentinel else _CONNECTIONS
    options = _options(address) | {"socket_timeout": 5, "max_connections": most}
    if address.cluster:
        try:
            return RedisCluster.from_url(address.url, **options)
        except RedisClusterException as error:
            raise SettingsError(f"NEARSTREAM_REDIS: {error}") from error
    if by_sentinel:
        return Redis.from_pool(sentinel_pool(address.url, options))
    return Redis.from_pool(BlockingConnectionPool.from_url(address.url, timeout=2, **options))


def shared_connection(address: IndexAddress, client: Client) -> Shared:
    """Return the connection that all calls share. With a cluster, its client is used."""
    if isinstance(client, RedisCluster):
        return client
    # With a timeout, redis-py sends in another task, before which the connection may be lost.
    options = _options(address) | {"socket_timeout": None}
    if is_sentinel(address.url):
        return SharedConnection(sentinel_pool(address.url, options))
    return SharedConnection(ConnectionPool.from_url(address.url, **options))


def _options(address: IndexAddress) -> dict[str, Any]:
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": 1,
        "health_check_interval": 0,
    }
    if address.ca_path is not None and address.url.startswith("rediss"):
        options["ssl_ca_certs"] = address.ca_path
    return options


@asynccontextmanager
async def open_client(address: IndexAddress) -> AsyncIterator[Client]:
    """Yield a client and close it at the end."""
    client = connect(address)
    try:
        with errors_mapped():
            yield client
    finally:
        await client.aclose()


async def until_answered(ask: Callable[[], Awaitable[_Answer]], wait_seconds: float) -> _Answer:
    """Return the answer of `ask`, calling it again while the server is unavailable."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    while True:
        try:
            with errors_mapped():
                async with asyncio.timeout_at(deadline):
                    return await ask()
        except IndexUnavailableError:
            if loop.time() + _RETRY_SECONDS >= deadline:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


async def ask(client: Caller | Commanded, command: str, key: bytes, *arguments: bytes | str | int) -> Any:  # noqa: ANN401 - as redis
    """Return the reply to one plain command about one key."""
    with errors_mapped():
        return await client.execute_command(command, key, *arguments)


async def ask_fields(client: Caller, key: bytes) -> dict[bytes, bytes]:
    """Return the fields of a hash."""
    found = await ask(client, "HGETALL", key)
    # A client answers with a dictionary, a shared connection with the list that the server sends.
    return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))


async def call(client: Caller, name: str, key: bytes, *arguments: bytes | str | int) -> Any:  # noqa: ANN401 - as redis
    """Return the reply of a function of one key. Load the library if it is missing."""
    with errors_mapped():
        # Without a target, the client of a cluster would ask a server which of the arguments are keys.
        target = await _owner(client, key)
        command = ("FCALL", function_name(name), 1, key, *arguments)
        try:
            return await client.execute_command(*command, **target)
        except ResponseError as error:
            if not lacks_functions(error):
                raise
        await load_functions(client)
        return await client.execute_command(*command, **target)


async def _owner(client: Caller, key: bytes) -> dict[str, Any]:
    """Return the option with which the client of a cluster asks the node that has this key."""
    if not isinstance(client, RedisCluster):
        return {}
    tag = key[: key.index(b"}") + 1]  # what decides the slot, and the only part of a key that is always text
    return {"target_nodes": (await client.initialize()).get_node_from_key(tag.decode())}


async def server_facts(client: Client) -> list[dict[str, Any]]:
    """Return what INFO says of each server that has data."""
    with errors_mapped():
        if isinstance(client, Redis):
            return [await client.info()]
        await client.initialize()
        return [await client.info(target_nodes=node) for node in client.get_primaries()]


async def server_time_ms(client: Caller) -> int:
    """Return the server's time in milliseconds since 1970.

    The retention follows this clock. In a cluster it is the clock of any node.
    """
    with errors_mapped():
        seconds, microseconds = await client.execute_command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000


async def keys_of(client: Client, prefix: bytes) -> AsyncIterator[bytes]:
    """Yield all keys that begin like this, some perhaps twice. A `*` in it stands for anything."""
    with errors_mapped():
        async for key in client.scan_iter(match=prefix + b"*", count=_PAGE_KEYS):
            yield key


async def delete_keys(client: Client, keys: AsyncIterable[bytes]) -> int:
    """Delete keys and return their number."""
    deleted, batch = 0, list[tuple[str, bytes]]()
    async for key in keys:
        batch.append(("UNLINK", key))
        if len(batch) == _PIPELINE_COMMANDS:
            deleted += sum(await pipelined(client, batch))
            batch.clear()
    return deleted + int(sum(await pipelined(client, batch)))


async def lengths_of(client: Caller, keys: Sequence[bytes]) -> list[int]:
    """Return the number of fields of each of these hashes, 0 for a missing one."""
    return await pipelined(client, [("HLEN", key) for key in keys])


async def pipelined(
    client: Caller | Commanded, commands: Sequence[tuple[str, bytes, *tuple[bytes | str | int, ...]]]
) -> list[Any]:
    """Return the replies to plain commands, each about one key, in few round trips."""
    replies: list[Any] = []
    for start in range(0, len(commands), _PIPELINE_COMMANDS):
        some = commands[start : start + _PIPELINE_COMMANDS]
        with errors_mapped():
            if isinstance(client, Commanded):
                replies += await client.execute_commands(some)
                refusals = [reply for reply in replies if isinstance(reply, ResponseError)]
                if refusals:
                    raise refusals[0]
                continue
            async with client.pipeline(transaction=False) as pipeline:
                for command in some:
                    # Without a target, the client of a cluster would look for the owner of each key.
                    pipeline.execute_command(*command, **await _owner(client, command[1]))
                replies += await pipeline.execute()
    return replies


_SCHEMES = ("redis+sentinel://", "rediss+sentinel://")


def is_sentinel(url: str) -> bool:
    """Return whether an address is that of sentinels."""
    return url.startswith(_SCHEMES)


def sentinel_pool(url: str, options: dict[str, Any]) -> ConnectionPool:
    """Return a pool of connections to the primary that the sentinels of an address name.

    A new connection asks them again. An address is `redis+sentinel://user:password@host:port,host:port/service/db`,
    with TLS for sentinels and servers `rediss+sentinel://`. User and password are for the servers. Sentinels are asked
    without them.
    """
    split = urlsplit(url)
    credentials, _, hosts = split.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    service, _, database = split.path.strip("/").partition("/")
    secured = {**options, "ssl": True} if split.scheme.startswith("rediss") else options
    places = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in hosts.split(","))]
    asking = {name: value for name, value in secured.items() if name != "max_connections"}
    sentinel = Sentinel(places, sentinel_kwargs={**asking, "socket_timeout": 1})  # type: ignore[no-untyped-call]
    login = {"username": unquote(user) or None, "password": unquote(password) or None}
    return SentinelConnectionPool(service, sentinel, db=int(database or 0), **login, **secured)  # type: ignore[no-untyped-call]
