"""Calls of the index functions on the server, its errors told in our words."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from streams.index import IndexUnavailableError
from workers.redis_address import Connection
from workers.settings import SettingsError

Client = Redis | RedisCluster
_Answer = TypeVar("_Answer")

_RETRY_SECONDS = 0.5
_REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)
_READ_ONLY = (ReadOnlyError, OutOfMemoryError)
_OUTAGES = (
    ConnectionError,
    TimeoutError,
    BusyLoadingError,
    MasterDownError,
    ClusterDownError,
    TryAgainError,
    asyncio.TimeoutError,
)
_SOURCES = ("index.lua", "index_calls.lua")
_OUTAGE_WORDS = ("BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN")
_NO_DATABASE_WORDS = ("DB index", "SELECT is not allowed")
_READ_ONLY_WORDS = ("MISCONF", "READONLY", "OOM", "NOREPLICAS")


class IndexReadOnlyError(IndexUnavailableError):
    """The server answers, but refuses writes: it is full, a replica, or cannot save."""


@cache
def function_library() -> tuple[str, str]:
    """Suffix of the function names, and the source that defines them.

    The suffix is derived from the source, so two releases run side by side.
    """
    source = "".join((files("workers") / name).read_text("utf-8") for name in _SOURCES)
    suffix = blake2b(source.encode(), digest_size=4).hexdigest()
    return suffix, source.replace("@@", suffix)


def connect(connection: Connection) -> Client:
    """A client without hidden retries; its connections are opened when needed.

    Raises:
        SettingsError: The address cannot be one of a cluster.
    """
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": 1,
        "socket_timeout": 5,
        "health_check_interval": 0,
        "max_connections": 4,
    }
    if connection.ca_path is not None and connection.url.startswith("rediss://"):
        options["ssl_ca_certs"] = connection.ca_path
    if connection.cluster:
        try:
            return RedisCluster.from_url(connection.url, **options)
        except RedisClusterException as error:
            raise SettingsError(f"NEARSTREAM_REDIS, NEARSTREAM_REDIS_CLUSTER: {error}") from error
    return Redis.from_pool(BlockingConnectionPool.from_url(connection.url, timeout=2, **options))


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[Client]:
    """A client that is closed at the end.

    Raises:
        IndexUnavailableError: An outage.
        SettingsError: The server refuses our name, password or rights.
    """
    client = connect(connection)
    try:
        with errors_mapped():
            yield client
    finally:
        await client.aclose()


async def until_answered(ask: Callable[[], Awaitable[_Answer]], wait_seconds: float) -> _Answer:
    """The answer of `ask`, which is called again while the server is away.

    Raises:
        IndexUnavailableError: There was none within `wait_seconds`.
    """
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


async def server_facts(client: Client) -> list[dict[str, Any]]:
    """What each server that holds data says of itself; IndexUnavailableError in an outage."""
    with errors_mapped():
        if isinstance(client, Redis):
            return [await client.info()]
        await client.initialize()
        return [await client.info(target_nodes=node) for node in client.get_primaries()]


async def ask(client: Client, command: str, key: bytes, *arguments: bytes | str | int) -> Any:  # noqa: ANN401 - as redis
    """The reply of one plain command about one key; Any: its form is the command's own matter.

    Raises:
        IndexUnavailableError: An outage.
    """
    with errors_mapped():
        return await client.execute_command(command, key, *arguments)


async def call(client: Client, name: str, key: bytes, *arguments: bytes | str | int) -> list[Any]:
    """The reply of an index function, which is loaded when the server does not have it.

    Any: what is in a reply is its function's own matter.

    Raises:
        IndexUnavailableError: An outage; the call may have run.
        SettingsError: The server refuses our name, password or rights.
    """
    suffix, source = function_library()
    with errors_mapped():
        try:
            return await _fcall(client, f"nearstream_{name}_{suffix}", key, arguments)
        except ResponseError as error:
            if "Function not found" not in str(error):
                raise
        await _load(client, source)
        return await _fcall(client, f"nearstream_{name}_{suffix}", key, arguments)


@contextmanager
def errors_mapped() -> Iterator[None]:
    """Raises what the server or the way to it did wrong as an outage or a wrong setting; the rest is a bug.

    A cancellation that came meanwhile is raised too: on Python 3.11 `asyncio.wait_for`, by which redis-py sends, may
    keep it to itself.
    """
    before = _cancellations()
    try:
        yield
    except (*_OUTAGES, RedisError, RedisClusterException) as error:
        _require_no_more_than(before)
        ours = _of_cluster(error) or _of_server(error)
        if ours is None:
            raise
        raise ours from error
    _require_no_more_than(before)


def _require_no_more_than(cancellations: int) -> None:
    if _cancellations() > cancellations:
        raise asyncio.CancelledError


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _of_cluster(error: Exception) -> Exception | None:
    """Our word for an error about the form of the deployment."""
    if isinstance(error, MovedError):
        return SettingsError("NEARSTREAM_REDIS_CLUSTER: no, but the server is a node of a cluster")
    if not isinstance(error, RedisClusterException):
        return None
    if isinstance(error.__cause__, _REFUSED):
        return SettingsError(f"NEARSTREAM_REDIS: the server refuses us: {error.__cause__}")
    if "Cluster mode is not enabled" in str(error):
        return SettingsError("NEARSTREAM_REDIS_CLUSTER: yes, but the server is no node of one, or denies CLUSTER SLOTS")
    return IndexUnavailableError(f"Redis does not answer: {error}")


def _of_server(error: Exception) -> Exception | None:
    """Our word for an error of one server; None for a bug."""
    text = str(error)
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        reason = error.__context__.verify_message
        return SettingsError(f"NEARSTREAM_REDIS_CA_PATH: the server's certificate is not accepted: {reason}")
    if isinstance(error, _REFUSED) or (isinstance(error, ResponseError) and text.startswith(_NO_DATABASE_WORDS)):
        return SettingsError(f"NEARSTREAM_REDIS: the server refuses us: {text}")
    if isinstance(error, _READ_ONLY) or (isinstance(error, ResponseError) and text.startswith(_READ_ONLY_WORDS)):
        return IndexReadOnlyError(f"Redis refuses writes: {text}")
    if isinstance(error, _OUTAGES) or (isinstance(error, ResponseError) and text.startswith(_OUTAGE_WORDS)):
        return IndexUnavailableError(f"Redis does not answer: {text or 'deadline passed'}")
    return None


async def _fcall(client: Client, name: str, key: bytes, arguments: tuple[bytes | str | int, ...]) -> list[Any]:
    # Functions that only read answer while writes are refused, and on replicas.
    command = "FCALL_RO" if "_look_up_" in name or "_state_" in name else "FCALL"
    # Left to itself, the client of a cluster asks a server which of the arguments are keys.
    target: dict[str, Any] = {}
    if isinstance(client, RedisCluster):
        target["target_nodes"] = (await client.initialize()).get_node_from_key(key.decode())
    reply: list[Any] = await client.execute_command(command, name, 1, key, *arguments, **target)
    return reply


async def _load(client: Client, source: str) -> None:
    if isinstance(client, Redis):
        targets: list[dict[str, Any]] = [{}]
    else:
        targets = [{"target_nodes": node} for node in client.get_primaries()]
    for target in targets:
        try:
            await client.execute_command("FUNCTION LOAD", source, **target)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise
