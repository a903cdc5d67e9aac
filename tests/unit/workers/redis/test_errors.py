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


@pytest.mark.parametrize(
    ("error", "ours", "text"),
    [
        (ConnectionError("refused"), IndexUnavailableError, "Redis does not answer: refused"),
        (ConnectionError("Connect call failed."), IndexUnavailableError, "Redis does not answer: Connect call failed"),
        (TimeoutError(), IndexUnavailableError, "Redis does not answer: deadline passed"),
        (
            ConnectionError("Error -2 connecting to hunter2:6379. Name or service not known."),
            IndexUnavailableError,
            "Redis does not answer: NEARSTREAM_REDIS names a host that is not known: Name or service not known",
        ),
        (
            ConnectionError("Error 111 connecting to 127.0.0.1:1. Connect call failed."),
            IndexUnavailableError,
            "Redis does not answer: Error 111 connecting to 127.0.0.1:1. Connect call failed",
        ),
        (BusyLoadingError("loading"), IndexUnavailableError, "Redis does not answer: loading"),
        (ClusterDownError("down"), IndexUnavailableError, "Redis does not answer: down"),
        (ClusterError("TTL exhausted."), IndexUnavailableError, "Redis does not answer: TTL exhausted"),
        (TryAgainError("again"), IndexUnavailableError, "Redis does not answer: again"),
        (ResponseError("BUSY script"), IndexUnavailableError, "Redis does not answer: BUSY script"),
        (RedisClusterException("no node"), IndexUnavailableError, "Redis does not answer: no node"),
        (
            ResponseError("WAIT cannot be used with replica instances."),
            IndexUnavailableError,
            "Redis does not answer: WAIT cannot be used with replica instances",
        ),
        (
            AttributeError("'NoneType' object has no attribute 'writelines'"),
            IndexUnavailableError,
            "Redis does not answer: a connection was closed",
        ),
        (OutOfMemoryError("full"), IndexUnavailableError, "Redis refuses writes: full"),
        (ResponseError("MISCONF disk"), IndexUnavailableError, "Redis refuses writes: MISCONF disk"),
        (AuthenticationError("wrong"), SettingsError, "NEARSTREAM_REDIS: the server refuses us: wrong"),
        (NoPermissionError("hget"), SettingsError, "NEARSTREAM_REDIS: the server refuses us: hget"),
        (ResponseError("DB index 9"), SettingsError, "NEARSTREAM_REDIS: the server refuses us: DB index 9"),
        (
            InvalidResponse('got "H"'),
            SettingsError,
            "NEARSTREAM_REDIS: expected a Redis server, something else answers",
        ),
        (MovedError("1 host:1"), SettingsError, "NEARSTREAM_REDIS: expected redis+cluster://"),
        (RedisClusterException("x: Cluster mode is not enabled"), SettingsError, "expected an address without"),
    ],
)
async def test_an_error_is_an_outage_or_a_wrong_setting(error: Exception, ours: type[Exception], text: str) -> None:
    found = await mapped(error)
    assert type(found) is ours
    assert text in str(found)
    assert found.__cause__ is error


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


@pytest.mark.parametrize("error", [ResponseError("ERR a BUSY script"), ValueError("no")])
async def test_any_other_error_is_a_bug_and_stays_as_it_is(error: Exception) -> None:
    assert await mapped(error) is error
