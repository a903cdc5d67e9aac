"""Whether everything that a worker needs is there, with the remedy where it is not."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from streams.index import IndexLostError, IndexState, IndexUnavailableError
from streams.signer import DEFAULT_IMPLEMENTATION
from workers import assembly, kafka_topics
from workers.kafka_tools import KafkaUnreachableError
from workers.run import open_index
from workers.settings import Settings, SettingsError


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
    async for check in _kafka(settings, wait_seconds):
        yield check
    yield await _index(settings, wait_seconds)


def _signer(implementation: str) -> Check:
    slower = "; several times faster where a C compiler is there at `pip install`" if implementation == "numpy" else ""
    return Check(Grade.OK, "signer", f"implementation {implementation}{slower}")


async def _kafka(settings: Settings, wait_seconds: float) -> AsyncIterator[Check]:
    try:
        states = await kafka_topics.topic_states(settings, wait_seconds)
    except KafkaUnreachableError as error:
        yield Check(
            Grade.FAIL, "kafka", f"{error}: start a broker (in a checkout: `make stack`) or set NEARSTREAM_KAFKA"
        )
        return
    yield Check(Grade.OK, "kafka", f"answers at {settings.kafka}")
    for state in states:
        if not state.differences:
            yield Check(Grade.OK, "topic", f"{state.name}, {state.partitions} partitions")
            continue
        remedy = "run `nearstream topics create`" if not state.partitions else "alter it with Kafka's own tools"
        grade = Grade.FAIL if state.fatal else Grade.WARN
        yield Check(grade, "topic", f"{state.name}: {'; '.join(state.differences)}: {remedy}")


async def _index(settings: Settings, wait_seconds: float) -> Check:
    try:
        key = assembly.hash_key(settings)
        index = await open_index(settings, key, wait_seconds)
    except KafkaUnreachableError:
        return Check(Grade.WARN, "index", "not looked at: whether it may be empty, only Kafka knows")
    except IndexUnavailableError as error:
        return Check(
            Grade.FAIL, "redis", f"{error}: start a server (in a checkout: `make stack`) or set NEARSTREAM_REDIS"
        )
    except (SettingsError, IndexLostError) as error:
        return Check(Grade.FAIL, "index", str(error))
    state = await index.state()
    await index.close()
    grade = Grade.OK if state is IndexState.READY else Grade.FAIL
    return Check(grade, "index", f"{state}, scheme {assembly.scheme(settings, key).name}")
