"""Check everything that a worker needs, and name remedies."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from nearstream.schemas.live.state import WorkerState
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES, VERDICTS, Topic
from nearstream.streams.store.limits import IndexLostError, IndexState, IndexUnavailableError
from nearstream.workers.config.settings import Settings, SettingsError, own_group
from nearstream.workers.config.tls import in_the_clear
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import topics as kafka_topics
from nearstream.workers.kafka.client import admin, consumer
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.lag import GroupMembers, PartitionLag, group_members, lag_reader, unread
from nearstream.workers.kafka.partitioning import wrong_slots
from nearstream.workers.kafka.topics import TopicState
from nearstream.workers.operations.checks import (
    Check,
    Grade,
    clock,
    memory,
    persistence,
    records_ahead,
    sentence,
    standing_still,
)
from nearstream.workers.operations.claim import describe_lost_index, describe_lost_record, require_deployment
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex, check_requirements
from nearstream.workers.redis.kept.worker_states import worker_states
from nearstream.workers.redis.reading.stats import CROWDED, mean_fields
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import open_client, server_facts, server_time_ms, until_answered
from nearstream.workers.redis.store.opening import require_shape

ALERTS_BEHIND_SECONDS = 60.0
_GRADES: dict[str, Grade] = {"gone": "WARN", "catching_up": "WARN"}


async def examine(deployment: Deployment, wait_seconds: float) -> AsyncIterator[Check]:
    """Yield each check as soon as it is done."""
    settings = deployment.settings
    yield Check("OK", "settings", f"profile {settings.profile}")
    if not settings.hash_key:
        yield Check(
            "WARN",
            "hash key",
            "the public key is used: set NEARSTREAM_HASH_KEY to a secret of 32 bytes or more before the first document",
        )
    for variable in in_the_clear(settings):
        problem = f"{variable} is another host, reached without TLS: anyone on the network can read everything"
        yield Check("WARN", "tls", problem)
    async for check in _kafka(settings, wait_seconds):
        yield check
    async for check in _redis(deployment, wait_seconds):
        yield check


async def _kafka(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    try:
        states = await kafka_topics.topic_states(settings, wait_seconds)
        ahead = await _ahead(settings, states, wait_seconds)
    except KafkaUnreachableError as error:
        remedy = "start a broker (in a checkout: `make stack`) or set NEARSTREAM_KAFKA"
        yield Check("FAIL", "kafka", f"{error}: {remedy}")
        return
    except SettingsError as error:
        yield Check("FAIL", "kafka", str(error))
        return
    yield Check("OK", "kafka", f"answers at {settings.kafka}")
    for state in states:
        yield _topic(state, settings.index_slots)
    if ahead is not None:
        yield records_ahead(ahead)
    if states and all(state.partitions for state in states):
        async for check in _unread(settings, wait_seconds):
            yield check
        yield await _alerts(own_group(settings, "alert"), wait_seconds)


async def _unread(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    try:
        verdicts = settings.topic_prefix + VERDICTS.name
        decides = await kafka_offsets.ever_committed_if_known(settings, verdicts, wait_seconds)
        rows, members = await _read(settings, wait_seconds, (DOCUMENTS, SIGNATURES, *([VERDICTS] if decides else [])))
    except (KafkaUnreachableError, KafkaError) as error:
        yield Check("WARN", "workers", f"what they read is not known: {error}")
        return
    for problem in unread(rows, members):
        yield Check("FAIL", "workers", problem)


async def _read(
    settings: Settings, wait_seconds: float, topics: Sequence[Topic]
) -> tuple[list[PartitionLag], GroupMembers | None]:
    async with admin(settings, wait_seconds) as client, lag_reader(settings, wait_seconds, topics) as read_lag:
        return await read_lag(), await group_members(client, settings.group)


async def _alerts(settings: Settings, wait_seconds: float) -> Check:
    try:
        is_read = await kafka_offsets.ever_committed_if_known(
            settings, settings.topic_prefix + VERDICTS.name, wait_seconds
        )
        if is_read is None:
            problem = f"not checked, because the permission DESCRIBE on group {settings.group} is missing"
            return Check("OK", "alerts", problem)
        if not is_read:
            return Check("OK", "alerts", "no worker `alert` has run, so nobody is alerted of storms")
        rows, members = await _read(settings, wait_seconds, (VERDICTS, DEAD_LETTERS))
    except (KafkaUnreachableError, KafkaError) as error:
        return Check("WARN", "alerts", f"the lag of group {settings.group} is not known: {error}")
    for problem in unread(rows, members, "alert"):
        return Check("FAIL", "alerts", problem)
    behind_seconds = max((row.seconds or 0.0 for row in rows), default=0.0)
    if behind_seconds > ALERTS_BEHIND_SECONDS:
        problem = f"group {settings.group} is {behind_seconds:.0f} s behind, so alerts come late"
        return Check("WARN", "alerts", f"{problem}: start `nearstream worker alert`")
    return Check("OK", "alerts", f"group {settings.group} reads the verdicts")


def _topic(state: TopicState, slots: int) -> Check:
    if state.topic is SIGNATURES and state.partitions and (wrong := wrong_slots(slots, state.partitions)):
        return Check("FAIL", "topic", wrong)
    if not state.differences:
        return Check("OK", "topic", f"{state.name}, {state.partitions} partitions")
    remedy = "run `nearstream topics create`" if not state.partitions else "alter it with Kafka's own tools"
    grade: Grade = "FAIL" if state.fatal else "WARN"
    return Check(grade, "topic", f"{state.name}: {'; '.join(state.differences)}: {remedy}")


async def _ahead(settings: Settings, states: Sequence[TopicState], wait_seconds: float) -> float | None:
    """Return how many seconds documents and signatures are ahead of now. None: neither topic exists."""
    topics = [state.name for state in states if state.topic in (DOCUMENTS, SIGNATURES) and state.partitions]
    return await seconds_ahead(settings, topics, wait_seconds) if topics else None


async def seconds_ahead(settings: Settings, topics: Sequence[str], wait_seconds: float) -> float:
    """Return how many seconds the first record of each partition with a timestamp in the future is ahead."""
    tps = await kafka_offsets.partitions(settings, topics, wait_seconds)
    async with consumer(settings, wait_seconds) as client:
        now_ms = time.time_ns() // 1_000_000
        found = await client.offsets_for_times(dict.fromkeys(tps, now_ms + 1))
    return max((first.timestamp - now_ms for first in found.values() if first is not None), default=0) / 1000


async def _redis(deployment: Deployment, wait_seconds: float) -> AsyncIterator[Check]:
    address = deployment.index_address()
    try:
        facts, ahead, within = await until_answered(partial(_server, address), wait_seconds)
    except IndexUnavailableError as error:
        remedy = "start a server (in a checkout: `make stack`) or set NEARSTREAM_REDIS"
        yield Check("FAIL", "redis", f"{error}: {remedy}")
        return
    except SettingsError as error:
        yield Check("FAIL", "redis", str(error))
        return
    for info in facts:
        yield Check("OK", "redis", f"{_named(info)} answers")
        yield memory(info)
        yield persistence(info)
    yield clock("Redis", ahead, within)
    yield await _workers(deployment, wait_seconds)
    async for check in _states(deployment, wait_seconds):
        yield check
    yield await _index(deployment, wait_seconds)


def _named(info: Mapping[str, Any]) -> str:
    kind = "Valkey" if "valkey_version" in info else "Redis"
    return f"{kind} {info.get(f'{kind.lower()}_version', '?')}"


async def _server(address: IndexAddress) -> tuple[list[dict[str, Any]], float, float]:
    """Return the INFO of each server, the seconds that the clock of one is ahead, and their uncertainty."""
    async with open_client(address) as client:
        facts = await server_facts(client)
        before = time.time()
        server_time = await server_time_ms(client) / 1000
        after = time.time()
        return facts, server_time - (before + after) / 2, (after - before) / 2


async def _workers(deployment: Deployment, wait_seconds: float) -> Check:
    try:
        record = await require_deployment(deployment, "all", wait_seconds)
        lost = await describe_lost_record(deployment, wait_seconds) if record is None else None
    except KafkaUnreachableError:
        return Check("WARN", "workers", "their scheme and group are not compared, because Kafka does not answer")
    except (IndexUnavailableError, SettingsError) as error:
        return Check("FAIL", "workers", str(error))
    if lost is not None:
        return Check("FAIL", "workers", lost)
    if record is None:
        return Check("OK", "workers", "none has started yet, the first one fixes scheme, key and group")
    return Check("OK", "workers", f"group {record.group}, scheme {record.scheme}")


async def _states(deployment: Deployment, wait_seconds: float) -> AsyncIterator[Check]:
    address = deployment.index_address()

    async def once() -> list[WorkerState]:
        async with open_client(address) as client:
            return await worker_states(client, address.namespace)

    try:
        states = await until_answered(once, wait_seconds)
    except (IndexUnavailableError, SettingsError) as error:
        yield Check("FAIL", "workers", f"how they do is not known: {error}")
        return
    still = standing_still(states)
    for state in states:
        grade: Grade = "FAIL" if state in still else _GRADES.get(state.state, "OK")
        yield Check(grade, "workers", sentence(state))


async def _index(deployment: Deployment, wait_seconds: float) -> Check:
    try:
        index = await _opened(deployment.index_address())
    except IndexUnavailableError as error:
        return Check("FAIL", "index", str(error))
    except IndexLostError:
        return await _no_index(deployment, wait_seconds)
    except SettingsError as error:
        return Check("FAIL", "index", str(error))
    try:
        state, fields = await index.state(), await mean_fields(index)
    finally:
        await index.close()
    detail = f"{state}, scheme {deployment.scheme.name}"
    if state is not IndexState.READY:
        return Check("FAIL", "index", detail)
    if fields > CROWDED:
        remedy = "fill a new namespace with a larger NEARSTREAM_INDEX_DOCUMENTS"
        problem = f"a chunk has {fields:.0f} fields on average, and soon wastes memory"
        return Check("WARN", "index", f"{detail}; {problem}: {remedy}")
    return Check("OK", "index", detail)


async def _opened(address: IndexAddress) -> RedisIndex:
    """Open the index after the checks of a worker, with as many partitions as it was made for.

    Whether the topic has as many is found out by the record of the deployment.
    """
    async with open_client(address) as client:
        await check_requirements(client, address, may_create=False)
    index = await RedisIndex.open_to_read(address)
    try:
        stored = index.layout.shape
        require_shape(address.prefix, stored, address.shape(stored.partitions))
    except SettingsError:
        await index.close()
        raise
    return index


async def _no_index(deployment: Deployment, wait_seconds: float) -> Check:
    """Check whether the index may be missing, as it may until the group has matched something."""
    topic = deployment.topic(SIGNATURES)
    try:
        if await kafka_offsets.ever_committed(deployment.settings, topic, wait_seconds):
            return Check("FAIL", "index", await describe_lost_index(deployment, wait_seconds))
    except KafkaUnreachableError:
        return Check("WARN", "index", "there is no index, and only Kafka knows whether there should be one")
    except IndexUnavailableError as error:
        return Check("FAIL", "index", str(error))
    return Check("OK", "index", f"{deployment.settings.namespace} does not exist yet, the first worker creates it")
