"""Whether everything that a worker needs is there, with the remedy where it is not."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from schemas.topics import SIGNATURES
from streams.index import IndexLostError, IndexState, IndexUnavailableError
from streams.signer import DEFAULT_IMPLEMENTATION
from workers import assembly, kafka_offsets, kafka_rights, kafka_topics
from workers.kafka_tools import KafkaUnreachableError
from workers.redis_index import RedisIndex
from workers.redis_stats import CROWDED, mean_fields
from workers.settings import Settings, SettingsError
from workers.tls import in_the_clear


class Grade(StrEnum):
    """How a check went."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Check:
    """One check: what was looked at, how it went, what to do about it."""

    grade: Grade
    subject: str
    detail: str


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
    yield await _index(settings, wait_seconds)


def _signer(implementation: str) -> Check:
    slower = "; several times faster where a C compiler is there at `pip install`" if implementation == "numpy" else ""
    return Check(Grade.OK, "signer", f"implementation {implementation}{slower}")


async def _kafka(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    try:
        lacking = await kafka_rights.missing(settings, "all", wait_seconds)
        states = [] if lacking else await kafka_topics.topic_states(settings, wait_seconds)
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


async def _index(settings: Settings, wait_seconds: float) -> Check:
    key = assembly.hash_key(settings)
    try:
        index = await RedisIndex.open(assembly.index_address(settings, key), may_create=False)
    except IndexUnavailableError as error:
        return Check(
            Grade.FAIL, "redis", f"{error}: start a server (in a checkout: `make stack`) or set NEARSTREAM_REDIS"
        )
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
