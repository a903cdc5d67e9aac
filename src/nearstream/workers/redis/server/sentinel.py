"""Find the primary of an index through Redis Sentinel."""

from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio import ConnectionPool
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

_SCHEMES = ("redis+sentinel://", "rediss+sentinel://")


def is_sentinel(url: str) -> bool:
    """Return whether an address is that of sentinels."""
    return url.startswith(_SCHEMES)


def sentinel_pool(url: str, options: dict[str, Any]) -> ConnectionPool:
    """Return a pool of connections to the primary that the sentinels of an address name.

    A new connection asks them again. An address is `redis+sentinel://user:password@host:port,host:port/service/db`.
    User and password are for the servers. Sentinels are asked without them.

    Args:
        url: The address. `rediss+sentinel://` uses TLS for sentinels and servers.
        options: Those of the connections. They are Any as in redis.
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
