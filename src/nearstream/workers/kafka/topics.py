"""Create the topics of a deployment, and compare them with the table."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from nearstream.schemas.topics.table import ALL, DEAD_LETTERS, SIGNATURES, Topic
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import RETRY_SECONDS, admin, describe
from nearstream.workers.kafka.errors import KafkaUnreachableError, missing_topic_error
from nearstream.workers.kafka.partitioning import wrong_slots

UNCOMPARED = "size limit and cleanup policy are not compared: permission DESCRIBE_CONFIGS is missing"
WHY_FIXED = (
    "the states of a document would be in two partitions, without order: create topics with another"
    " NEARSTREAM_TOPIC_PREFIX, and start with another NEARSTREAM_NAMESPACE and NEARSTREAM_GROUP"
)
_UNKNOWN_TOPIC = 3
_NOT_ALLOWED = 29
_TOPIC_EXISTS = 36


@dataclass(frozen=True)
class TopicState:
    """The state of one topic of the table on the broker."""

    topic: Topic  # the row of the table
    name: str  # name of the topic, with the deployment's prefix
    partitions: int  # Number of partitions. 0: the topic is missing.
    differences: tuple[str, ...]  # what differs from the table, one text each
    fatal: bool  # whether a worker must not start, because the topic is missing or the size limit is too small


async def topic_states(settings: Settings, wait_seconds: float, partitions: int | None = None) -> list[TopicState]:
    """Return the state of each topic of the table, which should have this number of partitions, if one is given."""
    names = [settings.topic_prefix + topic.name for topic in ALL]
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, names)
        configs = await _configs(client, list(found)) if found else {}
    states = [
        _state(settings, topic, name, found[name] if name in configs else [], configs.get(name))
        for topic, name in zip(ALL, names, strict=True)
    ]
    return [_compared(state, partitions) for state in states]


async def create_missing(
    settings: Settings, replication: int, wait_seconds: float, partitions: int | None = None
) -> list[str]:
    """Create the topics that are missing and return their names."""
    states = await topic_states(settings, wait_seconds, partitions)
    missing = [state for state in states if not state.partitions]
    _require_partitions_of_signatures(states, partitions, settings.index_slots)
    if not missing:
        return []
    async with admin(settings, wait_seconds) as client:
        response = await client.create_topics(
            [
                NewTopic(
                    state.name,
                    _wanted(state.topic, partitions),
                    replication,
                    topic_configs=state.topic.config(settings.retention_seconds),
                )
                for state in missing
            ]
        )
        for name, code, message in response.topic_errors:
            if code not in (0, _TOPIC_EXISTS):
                raise SettingsError(f"topic {name} cannot be created: {message or for_code(code).__name__}")
        names = [state.name for state in missing]
        deadline = asyncio.get_running_loop().time() + wait_seconds
        while len(await describe(client, names)) < len(names):  # the broker shows them after a moment
            if asyncio.get_running_loop().time() > deadline:
                raise KafkaUnreachableError(f"created topics are not in the metadata within {wait_seconds:g} s")
            await asyncio.sleep(RETRY_SECONDS)
    return names


async def require(settings: Settings, wait_seconds: float) -> list[str]:
    """Raise if a topic cannot be used, return warnings otherwise."""
    warnings = []
    states = await topic_states(settings, wait_seconds)
    for state in states:
        if not state.partitions:
            raise missing_topic_error(state.name)
        if state.fatal:
            raise SettingsError(f"topic {state.name}: {'; '.join(state.differences)}")
        warnings += [f"topic {state.name}: {text}" for text in state.differences if text != UNCOMPARED]
    return warnings + ([f"topics: {UNCOMPARED}"] if any(UNCOMPARED in state.differences for state in states) else [])


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, list[Any] | None]:
    """Return the settings of each topic.

    They are rows of name, value, read-only and source, or None if the permission to describe them is missing. A deleted
    topic is left out.
    """
    responses = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    found: dict[str, list[Any] | None] = {}
    for code, message, _, name, entries in (row for response in responses for row in response.resources):
        if code not in (0, _NOT_ALLOWED, _UNKNOWN_TOPIC):
            raise KafkaUnreachableError(f"topic {name} cannot be described: {message or for_code(code).__name__}")
        if code != _UNKNOWN_TOPIC:
            found[name] = None if code == _NOT_ALLOWED else entries
    return found


def _state(
    settings: Settings, topic: Topic, name: str, partitions: Sequence[int], entries: Sequence[Any] | None
) -> TopicState:
    if not partitions:
        return TopicState(topic, name, 0, ("missing",), True)
    if entries is None:
        return TopicState(topic, name, len(partitions), (UNCOMPARED,), False)
    differences, fatal = [], False
    config = {entry[0]: entry[1] for entry in entries}
    for setting, expected in topic.config(settings.retention_seconds).items():
        value = config.get(setting, "")
        if setting == "max.message.bytes" and int(value or 0) < int(expected):
            differences.append(f"{setting}: expected at least {expected}, found {value}")
            fatal = True
        elif setting != "max.message.bytes" and sorted(value.split(",")) != sorted(expected.split(",")):
            differences.append(f"{setting}: expected {expected}, found {value}")
    return TopicState(topic, name, len(partitions), tuple(differences), fatal)


def _wanted(topic: Topic, partitions: int | None) -> int:
    return topic.partitions if partitions is None or topic is DEAD_LETTERS else partitions


def _compared(state: TopicState, partitions: int | None) -> TopicState:
    wanted = _wanted(state.topic, partitions)
    if partitions is None or state.partitions in (0, wanted):
        return state
    return replace(state, differences=(f"partitions: {wanted} asked for, found {state.partitions}", *state.differences))


def _require_partitions_of_signatures(states: Sequence[TopicState], partitions: int | None, slots: int) -> None:
    """Refuse another number of partitions than `signatures` has, and fewer than the index has slots.

    The number decides in which partition a document key lives, so it cannot change. On other topics it is only a
    matter of throughput.
    """
    found = next(state for state in states if state.topic is SIGNATURES)
    if partitions is not None and found.partitions not in (0, partitions):
        raise SettingsError(
            f"topic {found.name} has {found.partitions} partitions and cannot get {partitions}: {WHY_FIXED}"
        )
    if wrong := wrong_slots(slots, found.partitions or _wanted(SIGNATURES, partitions)):
        raise SettingsError(wrong)
