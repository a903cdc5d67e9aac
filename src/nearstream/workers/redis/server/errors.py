"""Map the errors of redis-py to ours."""

import asyncio
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterError,
    ConnectionError,
    InvalidResponse,
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

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError

_DENIED = (AuthenticationError, AuthorizationError, NoPermissionError)
_UNAVAILABLE = (
    ConnectionError,
    TimeoutError,
    BusyLoadingError,
    MasterDownError,
    ClusterError,  # also that a slot has been on its way to another server for too long
    TryAgainError,
    asyncio.TimeoutError,  # our own deadlines
)

IS_CLUSTER_NODE = "NEARSTREAM_REDIS: expected redis+cluster://, because the server is a node of a cluster"
_NO_CLUSTER_NODE = (
    "NEARSTREAM_REDIS: expected an address without +cluster, because the server is not a node of a cluster, or our"
    " user may not run CLUSTER SLOTS"
)
_CERTIFICATE = "NEARSTREAM_REDIS_CA_PATH: the server's certificate is not accepted: {error.verify_message}"
_DENIAL = "NEARSTREAM_REDIS: the server refuses us: {error}"
_NO_REDIS = "NEARSTREAM_REDIS: expected a Redis server, something else answers there: {error}"
_NO_WRITES = "Redis refuses writes: {error}"
_NO_ANSWER = "Redis does not answer: {reason}"

# The client of a cluster closes connections that others use, who then find neither reader nor writer.
_CLOSED = "^'NoneType' object has no attribute '(writelines|drain|read)'"
_UNKNOWN_HOST = re.compile(r"\AError -\d+ connecting to [^ ]+\. ")  # negative numbers are those of getaddrinfo

# Classes of their errors, a regular expression that must match in the text of such an error, the class of our error,
# and its message. `{error}` is their error, and `{reason}` is its text or that our deadline has passed. The first row
# that fits applies. An error that fits no row is a bug and is raised as it is.
_TABLE: tuple[tuple[tuple[type[Exception], ...], str, type[Exception], str], ...] = (
    ((MovedError,), "", SettingsError, IS_CLUSTER_NODE),
    ((RedisClusterException,), "Cluster mode is not enabled", SettingsError, _NO_CLUSTER_NODE),
    ((RedisClusterException,), "", IndexUnavailableError, "Redis does not answer: {error}"),
    ((ssl.SSLCertVerificationError,), "", SettingsError, _CERTIFICATE),
    ((InvalidResponse,), "", SettingsError, _NO_REDIS),
    (_DENIED, "", SettingsError, _DENIAL),
    ((ResponseError,), "^(DB index|SELECT is not allowed)", SettingsError, _DENIAL),
    ((ReadOnlyError, OutOfMemoryError), "", IndexUnavailableError, _NO_WRITES),
    ((ResponseError,), "^(MISCONF|READONLY|OOM|NOREPLICAS)", IndexUnavailableError, _NO_WRITES),
    (_UNAVAILABLE, "", IndexUnavailableError, _NO_ANSWER),
    ((ResponseError,), "^(BUSY|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)", IndexUnavailableError, _NO_ANSWER),
    ((ResponseError,), "^WAIT cannot be used with replica", IndexUnavailableError, _NO_ANSWER),  # it just became one
    ((AttributeError,), _CLOSED, IndexUnavailableError, "Redis does not answer: a connection was closed"),
)


@contextmanager
def errors_mapped() -> Iterator[None]:
    """Raise our errors in place of those of redis-py, as the table says.

    A cancellation that arrived meanwhile is raised too: on Python 3.11 `asyncio.wait_for`, which redis-py uses to send,
    may swallow it.
    """
    before = _cancellations()
    try:
        yield
    except (*_UNAVAILABLE, RedisError, RedisClusterException, AttributeError) as error:
        _require_no_more_than(before)
        ours = _mapped(error)
        if ours is None:
            raise
        raise ours from error
    _require_no_more_than(before)


def _mapped(error: Exception) -> Exception | None:
    error = _underlying(error)
    for theirs, text, ours, message in _TABLE:
        if isinstance(error, theirs) and re.search(text, str(error)):
            return ours(message.format(error=error, reason=_reason(error)))
    return None


def _reason(error: Exception) -> str:
    """Return the text of an error without the name of an unknown host, which may be a password in the wrong place."""
    unknown = "NEARSTREAM_REDIS names a host that is not known: "
    return _UNKNOWN_HOST.sub(unknown, str(error)).rstrip(".") or "deadline passed"


def _underlying(error: Exception) -> Exception:
    """Return the error that names the reason, where redis-py hides it behind another one."""
    if isinstance(error, RedisClusterException):
        return error.__cause__ if isinstance(error.__cause__, _DENIED) else error
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return error.__context__
    return error


def _require_no_more_than(cancellations: int) -> None:
    if _cancellations() > cancellations:
        raise asyncio.CancelledError


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0
