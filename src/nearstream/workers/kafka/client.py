"""Connect Kafka clients and close them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

# Exported for wings that must not import aiokafka.
from aiokafka import AIOKafkaConsumer as AIOKafkaConsumer
from aiokafka import TopicPartition as TopicPartition
from aiokafka.admin import AIOKafkaAdminClient as AIOKafkaAdminClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    UnknownTopicOrPartitionError,
    for_code,
)

from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.batches import use_our_batches
from nearstream.workers.kafka.errors import KafkaUnreachableError, refused, retriable, settings_error_of
from nearstream.workers.kafka.security import client_options, why_unconnected

SEND_MAX_BYTES = 4_718_592
RETRY_SECONDS = 0.5
FIRST_REPORT_SECONDS = 1.0
REPORT_SECONDS = 10.0
# A crashed worker remains a member of its group for this long, and for twice as long if it crashed while joining.
# 6 s is the shortest session timeout that a broker accepts by default.
SESSION_SECONDS = 6.0
STOP_SECONDS = 1.0

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


@asynccontextmanager
async def admin(
    settings: Settings, wait_seconds: float, request_seconds: float = 10.0
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connect an admin client, and close it at the end. A broker has `request_seconds` for an answer."""
    client = await connect(
        partial(AIOKafkaAdminClient, request_timeout_ms=int(1000 * request_seconds)), settings, wait_seconds
    )
    try:
        yield client
    finally:
        await finish(client.close())


@asynccontextmanager
async def consumer(
    settings: Settings, wait_seconds: float, *, fetch_bytes: int = 1_048_576, fetch_wait_ms: int = 500
) -> AsyncIterator[AIOKafkaConsumer]:
    """Connect a consumer without a group, and stop it at the end.

    It fetches at most `fetch_bytes` of a partition at a time, or one record batch if that is larger. At the end of a
    partition the broker waits `fetch_wait_ms` for more, and meanwhile answers no fetch of another partition.
    """
    use_our_batches()
    client = await connect(
        partial(
            AIOKafkaConsumer,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=fetch_bytes,
            fetch_max_wait_ms=fetch_wait_ms,
        ),
        settings,
        wait_seconds,
    )
    try:
        # Yield once: if aiokafka's task has not started yet, stopping the client cancels the caller.
        await asyncio.sleep(0)
        yield client
    finally:
        await finish(client.stop())
        await finish(client._client.close())  # a stop that was cut off leaves its connections open


async def finish(stopping: Coroutine[Any, Any, None], seconds: float = STOP_SECONDS) -> None:
    """Wait until a client has stopped, but at most twice this many seconds.

    The stop runs in a task of its own. If a fetch is cancelled, aiokafka raises that as if the caller were cancelled.
    If the caller is cancelled, aiokafka takes that for the end of its own task, and the caller goes on. aiokafka's
    tasks can miss a cancellation, if partitions were assigned just before or a response arrives at that moment.
    Cancelling the stop cancels them again.
    """
    task = asyncio.ensure_future(stopping)
    try:
        for _ in range(2):
            await asyncio.wait([task], timeout=seconds)
            task.cancel()
    except asyncio.CancelledError:
        asyncio.get_running_loop().call_later(seconds, task.cancel)
        raise
    if not task.cancelled() and task.done() and task.exception() is not None:
        log.debug("a client of Kafka was not closed: %r", task.exception())


async def require_answer(client: AIOKafkaAdminClient) -> None:
    """Return as soon as one broker has answered."""
    await client._client.fetch_all_metadata()


async def describe(client: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, list[int]]:
    """Return the partitions of each topic that exists."""
    found = {}
    for row in await client.describe_topics(list(topics)):
        error = for_code(row["error_code"])
        if refused(error()) and error is not UnknownTopicOrPartitionError:
            raise settings_error_of(error(), row["topic"], "DESCRIBE")
        if row["partitions"]:
            found[row["topic"]] = sorted(partition["partition"] for partition in row["partitions"])
    return found


async def retry_until_answered(ask: Callable[[], Awaitable[_Answer]], wait_seconds: float, failure: str) -> _Answer:
    """Call `ask` until the broker answers.

    A freshly started broker returns retriable errors while it loads its groups.
    """
    loop = asyncio.get_running_loop()
    deadline, report_at = loop.time() + wait_seconds, loop.time() + FIRST_REPORT_SECONDS
    while True:
        try:
            return await ask()
        except KafkaError as error:
            now = loop.time()
            if not retriable(error) or now > deadline:
                raise KafkaUnreachableError(f"{failure}: {error}") from error
            if now > report_at:
                log.warning("%s: %s, retrying for at most %.0f s", failure, error, deadline - now)
                report_at = now + REPORT_SECONDS
            await asyncio.sleep(RETRY_SECONDS)


async def connect(make: Callable[..., Any], settings: Settings, wait_seconds: float) -> Any:  # noqa: ANN401 - aiokafka has no types
    """Return a connected client. Each attempt calls `make` for a new one."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    options = client_options(settings)
    while True:
        client = make(**options)
        try:
            async with asyncio.timeout_at(deadline):
                await client.start()
            if isinstance(client, AIOKafkaAdminClient) and not client._client.cluster.brokers():
                # A broker that was away long enough names no broker until its controller lets that broker in again.
                raise NodeNotReadyError("the brokers of the cluster are not ready yet")
            return client
        except asyncio.CancelledError:
            await _close_unconnected(client)
            raise
        except (KafkaError, TimeoutError) as error:
            await _close_unconnected(client)
            if isinstance(error, ClusterAuthorizationFailedError):
                raise settings_error_of(error, "", "WRITE") from None
            reason = await why_unconnected(settings, max(deadline - loop.time(), RETRY_SECONDS))
            if loop.time() + RETRY_SECONDS >= deadline:
                if not isinstance(error, TimeoutError | KafkaConnectionError):
                    reason = str(error)
                raise KafkaUnreachableError(
                    f"cannot connect to Kafka at {settings.kafka} within {wait_seconds:g} s: {reason}"
                ) from None
            await asyncio.sleep(RETRY_SECONDS)


async def _close_unconnected(client: Any) -> None:  # noqa: ANN401 - aiokafka has no types
    """Close a client that could not connect. The admin client has `close` where other clients have `stop`."""
    await finish(client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())
