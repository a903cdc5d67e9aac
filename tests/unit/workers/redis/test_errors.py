"""Errors of redis-py are mapped to ours."""

import ssl

import pytest
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    ConnectionError,
    InvalidResponse,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.errors import errors_mapped


async def mapped(error: Exception) -> Exception:
    with pytest.raises(Exception) as caught, errors_mapped():  # noqa: PT011 - the caller looks at it
        raise error
    return caught.value


async def test_an_error_is_an_outage_or_a_wrong_setting() -> None:
    for theirs, ours, text in (
        *((error, IndexUnavailableError, f"Redis does not answer: {why}") for error, why in NO_ANSWER.items()),
        (OutOfMemoryError("full"), IndexUnavailableError, "Redis refuses writes: full"),
        (ResponseError("MISCONF disk"), IndexUnavailableError, "Redis refuses writes: MISCONF disk"),
        *((error, SettingsError, f"NEARSTREAM_REDIS: {why}") for error, why in WRONG_SETTINGS.items()),
    ):
        found = await mapped(theirs)
        assert type(found) is ours
        assert str(found).startswith(text)
        assert found.__cause__ is theirs


NO_ANSWER: dict[Exception, str] = {
    ConnectionError("refused."): "refused",
    TimeoutError(): "deadline passed",
    ConnectionError("Error -2 connecting to hunter2:6379. Name or service not known."): (
        "NEARSTREAM_REDIS names a host that is not known: Name or service not known"
    ),
    ConnectionError("Error 111 connecting to 127.0.0.1:1. No."): "Error 111 connecting to 127.0.0.1:1. No",
    BusyLoadingError("loading"): "loading",
    ClusterDownError("down"): "down",
    ClusterError("TTL exhausted."): "TTL exhausted",
    TryAgainError("again"): "again",
    ResponseError("BUSY script"): "BUSY script",
    RedisClusterException("no node"): "no node",
    ResponseError("WAIT cannot be used with replica instances."): "WAIT cannot be used with replica instances",
    AttributeError("'NoneType' object has no attribute 'writelines'"): "a connection was closed",
}
WRONG_SETTINGS: dict[Exception, str] = {
    AuthenticationError("wrong"): "the server refuses us: wrong",
    NoPermissionError("hget"): "the server refuses us: hget",
    ResponseError("DB index 9"): "the server refuses us: DB index 9",
    InvalidResponse('got "H"'): "expected a Redis server, something else answers",
    MovedError("1 host:1"): "expected redis+cluster://",
    RedisClusterException("x: Cluster mode is not enabled"): "expected an address without",
}


async def test_an_error_of_a_cluster_is_judged_by_its_cause() -> None:
    error = RedisClusterException("no node answers")
    error.__cause__ = NoPermissionError("cluster slots")
    assert str(await mapped(error)) == "NEARSTREAM_REDIS: the server refuses us: cluster slots"


async def test_an_unknown_certificate_is_a_wrong_setting() -> None:
    error, reason = ConnectionError("closed"), ssl.SSLCertVerificationError("long text")
    reason.verify_message = "self-signed certificate"
    error.__context__ = reason
    found = await mapped(error)
    assert type(found) is SettingsError
    assert str(found).endswith("CA_PATH: the server's certificate is not accepted: self-signed certificate")


async def test_any_other_error_is_a_bug_and_stays_as_it_is() -> None:
    for error in (ResponseError("ERR a BUSY script"), ValueError("no")):
        assert await mapped(error) is error
