"""Calls of the index functions on the server, its errors told in our words."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from streams.index import IndexUnavailableError
from workers.settings import SettingsError

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
_READ_ONLY_WORDS = ("MISCONF", "READONLY", "OOM", "NOREPLICAS")


class IndexReadOnlyError(IndexUnavailableError):
    """The server answers, but refuses writes: it is full, a replica, or cannot save."""


@cache
def library() -> tuple[str, str]:
    """Suffix of the function names, and the source that defines them.

    The suffix is derived from the source, so two releases run side by side.
    """
    source = "".join((files("workers") / name).read_text("utf-8") for name in _SOURCES)
    suffix = blake2b(source.encode(), digest_size=4).hexdigest()
    return suffix, source.replace("@@", suffix)


def connect(url: str, ca_path: str | None = None) -> Redis:
    """A client without hidden retries; its connections are opened when needed."""
    secure = {"ssl_ca_certs": ca_path} if ca_path is not None and url.startswith("rediss://") else {}
    pool = BlockingConnectionPool.from_url(
        url,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=1,
        socket_timeout=5,
        health_check_interval=0,
        max_connections=4,
        timeout=2,
        **secure,
    )
    return Redis.from_pool(pool)


async def call(client: Redis, name: str, key: bytes, *arguments: bytes | str | int) -> list[Any]:
    """The reply of an index function, which is loaded when the server does not have it.

    Any: what is in a reply is its function's own matter.

    Raises:
        IndexUnavailableError: An outage; the call may have run.
        SettingsError: The server refuses our name, password or rights.
    """
    suffix, source = library()
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
    """Raises what the server or the way to it did wrong as an outage or a wrong setting; the rest is a bug."""
    try:
        yield
    except _REFUSED as error:
        raise SettingsError(f"NEARSTREAM_REDIS: the server refuses us: {error}") from error
    except _READ_ONLY as error:
        raise IndexReadOnlyError(f"Redis refuses writes: {error}") from error
    except _OUTAGES as error:
        raise IndexUnavailableError(f"Redis does not answer: {str(error) or 'deadline passed'}") from error
    except ResponseError as error:
        text = str(error)
        if text.startswith(_READ_ONLY_WORDS):
            raise IndexReadOnlyError(f"Redis refuses writes: {text}") from error
        if text.startswith(_OUTAGE_WORDS):
            raise IndexUnavailableError(f"Redis does not answer: {text}") from error
        raise


async def _fcall(client: Redis, name: str, key: bytes, arguments: tuple[bytes | str | int, ...]) -> list[Any]:
    # Functions that only read answer while writes are refused, and on replicas.
    command = "FCALL_RO" if "_look_up_" in name or "_state_" in name else "FCALL"
    reply: list[Any] = await client.execute_command(command, name, 1, key, *arguments)  # type: ignore[no-untyped-call]  # of redis
    return reply


async def _load(client: Redis, source: str) -> None:
    try:
        await client.execute_command("FUNCTION LOAD", source)  # type: ignore[no-untyped-call]  # of redis
    except ResponseError as error:
        if "already exists" not in str(error):
            raise
