"""Clients of Kafka that are connected, errors of Kafka sorted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.errors import (
    KafkaError as KafkaError,  # known by this name to those who may not know aiokafka
)

from workers.kafka_headers import tolerate_foreign_header_names
from workers.kafka_security import client_options, why_unconnected
from workers.settings import Settings, SettingsError

SEND_MAX_BYTES = 4_718_592
RETRY_SECONDS = 0.5
# A crashed worker is a member so long, twice so long if it crashed while it joined: 6 s is the least a broker takes.
SESSION_SECONDS = 6.0
STOP_SECONDS = 1.0
_REFUSALS = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

_Answer = TypeVar("_Answer")


class KafkaUnreachableError(Exception):
    """No broker answers; one line says which address and why."""


def retriable(error: BaseException) -> bool:
    """Whether waiting may cure this error of Kafka: no leader, too few replicas, timeout, connection."""
    if not isinstance(error, KafkaError) or refused(error):
        return False
    return bool(error.retriable) or isinstance(error, KafkaConnectionError | KafkaTimeoutError)


def refused(error: BaseException) -> bool:
    """Whether the broker will not do this for us: a missing topic or right, hence a matter of settings."""
    return isinstance(error, _REFUSALS)


def refusal(error: BaseException, topic: str, operation: str) -> SettingsError:
    """The setting error that a refusal is, naming the topic with the right that is missing, if it is one."""
    if isinstance(error, TopicAuthorizationFailedError):
        return SettingsError(f"topic {topic}: the right {operation} is missing")
    if isinstance(error, UnknownTopicOrPartitionError):
        return absent(topic)
    return SettingsError(f"topic {topic}: {operation} is refused: {type(error).__name__}")


def absent(topic: str) -> SettingsError:
    """The setting error that a missing topic is."""
    return SettingsError(f"topic {topic} does not exist: run `nearstream topics create`")


def first_failure(sent: Iterable[object], topics: Iterable[str]) -> BaseException | None:
    """The first error among the results of sending to these topics; a refusal as the setting error that it is.

    A topic that was there at the start and is unknown now is one that no broker told of in time.
    """
    for result, topic in zip(sent, topics, strict=True):
        if isinstance(result, UnknownTopicOrPartitionError):
            return KafkaUnreachableError(f"no broker tells of topic {topic}")
        if isinstance(result, BaseException):
            return refusal(result, topic, "WRITE") if refused(result) else result
    return None


@asynccontextmanager
async def admin(settings: Settings, wait_seconds: float) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client that is connected.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds` seconds.
    """
    client = await connected(partial(AIOKafkaAdminClient, request_timeout_ms=10_000), settings, wait_seconds)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def consumer(
    settings: Settings, wait_seconds: float, *, fetch_bytes: int = 1_048_576
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without group that is connected; `fetch_bytes` of a partition at once, or one batch of records.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds` seconds.
    """
    tolerate_foreign_header_names()
    client = await connected(
        partial(
            AIOKafkaConsumer,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=fetch_bytes,
        ),
        settings,
        wait_seconds,
    )
    try:
        await asyncio.sleep(0)  # a task of aiokafka that never had a turn would cancel whoever stops the client
        yield client
    finally:
        await _ended(client.stop())
        await _ended(client._client.close())  # which a stop that was cut off leaves open


async def _ended(stopping: Coroutine[Any, Any, None]) -> None:
    """Returns when a client has stopped, or cannot.

    In a task of its own, as aiokafka hands on the cancellation of a fetch as if it were ours. Its tasks may miss that
    they are cancelled, if partitions were assigned just now or an answer comes at that moment; they are told again.
    """
    task = asyncio.ensure_future(stopping)
    for _ in range(2):
        await asyncio.wait([task], timeout=STOP_SECONDS)
        task.cancel()


async def describe(client: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, list[int]]:
    """Partitions of those of the topics that exist.

    Raises:
        SettingsError: We have no right to ask for one; it is named.
    """
    found = {}
    for row in await client.describe_topics(list(topics)):
        error = for_code(row["error_code"])
        if refused(error()) and error is not UnknownTopicOrPartitionError:
            raise refusal(error(), row["topic"], "DESCRIBE")
        if row["partitions"]:
            found[row["topic"]] = sorted(part["partition"] for part in row["partitions"])
    return found


async def told(ask: Callable[[], Awaitable[_Answer]], wait_seconds: float, untold: str) -> _Answer:
    """What a connected broker answers: a fresh one makes its list of groups first, and says so until then.

    Raises:
        KafkaUnreachableError: It did not within `wait_seconds` seconds; `untold` says what.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not retriable(error) or loop.time() > deadline:
                raise KafkaUnreachableError(f"{untold}: {error}") from error
            await asyncio.sleep(RETRY_SECONDS)


async def connected(make: Callable[..., Any], settings: Settings, wait_seconds: float) -> Any:  # noqa: ANN401 - aiokafka has no types
    """A client of `make`, connected; a new one for each try, until `wait_seconds` seconds are over.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds` seconds.
        SettingsError: A broker does not accept us, or we do not accept it.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    options = client_options(settings)
    while True:
        client = make(**options)
        try:
            async with asyncio.timeout_at(deadline):
                await client.start()
            return client
        except (KafkaError, TimeoutError) as error:
            await _stopped(client)
            if isinstance(error, ClusterAuthorizationFailedError):
                raise SettingsError("NEARSTREAM_KAFKA_USERNAME: the right to WRITE on a topic is missing") from None
            reason = await why_unconnected(settings, max(deadline - loop.time(), RETRY_SECONDS))
            if loop.time() + RETRY_SECONDS >= deadline:
                if not isinstance(error, TimeoutError | KafkaConnectionError):
                    reason = str(error)
                raise KafkaUnreachableError(
                    f"no Kafka at {settings.kafka} within {wait_seconds:g} s: {reason}"
                ) from None
            await asyncio.sleep(RETRY_SECONDS)


async def _stopped(client: Any) -> None:  # noqa: ANN401 - aiokafka has no types
    """Ends a client that never started; aiokafka's admin client calls it close."""
    await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())
