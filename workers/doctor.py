"""Whether everything that a worker needs is there, with the remedy where it is not."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from time import time
from typing import Any

from schemas.topics import DOCUMENTS, SIGNATURES
from streams.index import IndexLostError, IndexState, IndexUnavailableError
from streams.signer import DEFAULT_IMPLEMENTATION
from workers import assembly, kafka_offsets, kafka_rights, kafka_topics
from workers.checks import Check, Grade, clock, memory, persistence, records_ahead
from workers.kafka_clock import seconds_ahead
from workers.kafka_tools import KafkaUnreachableError
from workers.kafka_topics import TopicState
from workers.redis_address import Connection
from workers.redis_calls import connected, server_facts, until_answered
from workers.redis_index import RedisIndex
from workers.redis_reading import server_time_ms
from workers.redis_stats import CROWDED, mean_fields
from workers.settings import Settings, SettingsError
from workers.tls import in_the_clear


async def examine(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    """Each check as it is done."""
    yield Check(Grade.OK, "settings", f"profile {settings.profile}")
    if not settings.hash_key:
        yield Check(
            Grade.WARN, "hash key", "the public key serves: set NEARSTREAM_HASH_KEY to a secret of 32 bytes or more"
        )
    yield _signer(DEFAULT_IMPLEMENTATION)
    for variable in in_the_clear(settings):
        yield Check(Grade.WARN, "tls", f"{variable} is another host, reached without TLS: whoever listens reads all")
    async for check in _kafka(settings, wait_seconds):
        yield check
    async for check in _redis(settings, wait_seconds):
        yield check


def _signer(implementation: str) -> Check:
    fault = assembly.native_fault()
    if fault:
        return Check(Grade.WARN, "signer", fault)
    slower = "; several times faster where a C compiler is there at `pip install`" if implementation == "numpy" else ""
    return Check(Grade.OK, "signer", f"implementation {implementation}{slower}")


async def _kafka(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    try:
        lacking = await kafka_rights.missing(settings, "all", wait_seconds)
        states = [] if lacking else await kafka_topics.topic_states(settings, wait_seconds)
        ahead = await _ahead(settings, states, wait_seconds)
    except KafkaUnreachableError as error:
        yield Check(
            Grade.FAIL, "kafka", f"{error}: start a broker (in a checkout: `make stack`) or set NEARSTREAM_KAFKA"
        )
        return
    except SettingsError as error:
        yield Check(Grade.FAIL, "kafka", str(error))
        return
    yield Check(Grade.OK, "kafka", f"answers at {settings.kafka}")
    for state in states:
        if not state.differences:
            yield Check(Grade.OK, "topic", f"{state.name}, {state.partitions} partitions")
            continue
        remedy = "run `nearstream topics create`" if not state.partitions else "alter it with Kafka's own tools"
        grade = Grade.FAIL if state.fatal else Grade.WARN
        yield Check(grade, "topic", f"{state.name}: {'; '.join(state.differences)}: {remedy}")
    for right in lacking:
        yield Check(Grade.FAIL, "rights", f"a worker `all` lacks {right}: grant it by ACL")
    if ahead is not None:
        yield records_ahead(ahead)


async def _ahead(settings: Settings, states: Sequence[TopicState], wait_seconds: float) -> float | None:
    """Seconds that records are dated later than now; None: no topic tells."""
    topics = [state.name for state in states if state.topic in (DOCUMENTS, SIGNATURES) and state.partitions]
    return await seconds_ahead(settings, topics, wait_seconds) if topics else None


async def _redis(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    connection = assembly.index_address(settings, assembly.hash_key(settings)).connection
    try:
        facts, ahead, within = await until_answered(partial(_asked, connection), wait_seconds)
    except IndexUnavailableError as error:
        remedy = "start a server (in a checkout: `make stack`) or set NEARSTREAM_REDIS"
        yield Check(Grade.FAIL, "redis", f"{error}: {remedy}")
        return
    except SettingsError as error:
        yield Check(Grade.FAIL, "redis", str(error))
        return
    yield Check(Grade.OK, "redis", "answers")
    for info in facts:
        yield memory(info)
        yield persistence(info)
    yield clock("Redis", ahead, within)
    yield await _index(settings, wait_seconds)


async def _asked(connection: Connection) -> tuple[list[dict[str, Any]], float, float]:
    """What each server tells of itself; seconds that its clock is ahead of ours, give or take how many."""
    async with connected(connection) as client:
        facts = await server_facts(client)
        before = time()
        told = await server_time_ms(client) / 1000
        after = time()
        return facts, told - (before + after) / 2, (after - before) / 2


async def _index(settings: Settings, wait_seconds: float) -> Check:
    key = assembly.hash_key(settings)
    try:
        index = await RedisIndex.open(assembly.index_address(settings, key), may_create=False)
    except IndexUnavailableError as error:
        return Check(Grade.FAIL, "index", str(error))
    except IndexLostError as error:
        return await _no_index(settings, wait_seconds, error)
    except SettingsError as error:
        return Check(Grade.FAIL, "index", str(error))
    try:
        state, fields = await index.state(), await mean_fields(index)
    finally:
        await index.close()
    detail = f"{state}, scheme {assembly.scheme(settings, key).name}"
    if state is not IndexState.READY:
        return Check(Grade.FAIL, "index", detail)
    if fields > CROWDED:
        remedy = "fill a new namespace with a larger NEARSTREAM_INDEX_DOCUMENTS"
        return Check(Grade.WARN, "index", f"{detail}; {fields:.0f} fields in a chunk soon waste memory: {remedy}")
    return Check(Grade.OK, "index", detail)


async def _no_index(settings: Settings, wait_seconds: float, error: IndexLostError) -> Check:
    """An empty index is in order until the group has matched something."""
    topic = settings.topic_prefix + SIGNATURES.name
    try:
        matched = await kafka_offsets.ever_committed(settings, topic, wait_seconds)
    except KafkaUnreachableError:
        return Check(Grade.WARN, "index", "empty; whether it may be, only Kafka knows")
    if matched:
        return Check(Grade.FAIL, "index", str(error))
    return Check(Grade.OK, "index", f"{settings.namespace} is not there yet, the first worker makes it")
