"""The topics of a deployment: made from the table, compared with it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from schemas.topics import ALL, Topic
from workers.kafka_tools import RETRY_SECONDS, KafkaUnreachableError, absent, admin, describe, refusal
from workers.settings import Settings, SettingsError

UNCOMPARED = "size limit and cleanup cannot be compared: the right DESCRIBE_CONFIGS is missing"
_NOT_ALLOWED = 29
_TOPIC_EXISTS = 36
_SET_ON_TOPIC = 1


@dataclass(frozen=True)
class TopicState:
    """One topic of the table as the broker has it.

    Attributes:
        topic: The row of the table.
        name: With the deployment's prefix.
        partitions: 0: it is missing.
        differences: What differs from the table.
        fatal: A worker must not start: missing, other partitions of signatures, or too small a size limit.
        wrong: Settings that differ, with the value of the table.
    """

    topic: Topic
    name: str
    partitions: int
    differences: tuple[str, ...]
    fatal: bool
    wrong: Mapping[str, str]


async def topic_states(settings: Settings, wait_seconds: float) -> list[TopicState]:
    """Each topic of the table with how it differs from it.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: We have no right to ask for one; it is named.
    """
    names = [settings.topic_prefix + topic.name for topic in ALL]
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, names)
        configs = await _configs(client, list(found)) if found else {}
    return [
        _state(settings, topic, name, found.get(name, []), configs.get(name))
        for topic, name in zip(ALL, names, strict=True)
    ]


async def create_missing(settings: Settings, replication: int, wait_seconds: float) -> list[str]:
    """Names of the topics that were missing and now exist.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The broker refused one; it is named.
    """
    missing = [state for state in await topic_states(settings, wait_seconds) if not state.partitions]
    if not missing:
        return []
    async with admin(settings, wait_seconds) as client:
        response = await client.create_topics(
            [
                NewTopic(
                    state.name,
                    state.topic.partitions,
                    replication,
                    topic_configs=state.topic.config(settings.retention_seconds),
                )
                for state in missing
            ]
        )
        for name, code, message in response.topic_errors:
            if code not in (0, _TOPIC_EXISTS):
                raise SettingsError(f"topic {name} cannot be created: {message or for_code(code).__name__}")
        await _until_told(client, [state.name for state in missing], wait_seconds)
    return [state.name for state in missing]


async def _until_told(client: AIOKafkaAdminClient, names: Sequence[str], wait_seconds: float) -> None:
    """Returns when the broker tells of these topics: one that was made is not told of at once."""
    deadline = asyncio.get_running_loop().time() + wait_seconds
    while len(await describe(client, names)) < len(names):
        if asyncio.get_running_loop().time() > deadline:
            raise KafkaUnreachableError(f"topics were made, but are not told of after {wait_seconds:g} s")
        await asyncio.sleep(RETRY_SECONDS)


async def apply_configs(settings: Settings, wait_seconds: float) -> list[str]:
    """What was set on topics that differed from the table; what is set on them besides stays, partitions too.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The broker refused a change; its topic is named.
    """
    wrong = {state.name: state.wrong for state in await topic_states(settings, wait_seconds) if state.wrong}
    if not wrong:
        return []
    async with admin(settings, wait_seconds) as client:
        # This request takes back whatever it does not name.
        kept = {
            name: {entry[0]: entry[1] for entry in entries if entry[3] == _SET_ON_TOPIC}
            for name, entries in (await _configs(client, list(wrong))).items()
        }
        responses = await client.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, name, {**kept[name], **wrong[name]}) for name in wrong]
        )
    for code, message, _, name in (row for response in responses for row in response.resources):
        if code == _NOT_ALLOWED:
            raise refusal(for_code(code)(), name, "ALTER_CONFIGS")
        if code:
            raise SettingsError(f"topic {name} cannot be altered: {message or for_code(code).__name__}")
    return [f"{name}: {setting}={value}" for name, changes in wrong.items() for setting, value in changes.items()]


async def require(settings: Settings, wait_seconds: float) -> list[str]:
    """Warnings about topics that differ from the table harmlessly.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic is missing, or differs so that documents would be lost.
    """
    warnings = []
    states = await topic_states(settings, wait_seconds)
    for state in states:
        if not state.partitions:
            raise absent(state.name)
        if state.fatal:
            raise SettingsError(f"topic {state.name}: {'; '.join(state.differences)}")
        warnings += [f"topic {state.name}: {text}" for text in state.differences if text != UNCOMPARED]
    return warnings + ([f"topics: {UNCOMPARED}"] if any(UNCOMPARED in state.differences for state in states) else [])


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, list[Any]]:
    """Rows of name, value, read-only, source for those of the topics that we may ask for them."""
    responses = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    found: dict[str, list[Any]] = {}
    for response in responses:
        for code, message, _, name, entries in response.resources:
            if code == _NOT_ALLOWED:
                continue
            if code:
                raise KafkaUnreachableError(f"topic {name} cannot be described: {message}")
            found[name] = entries
    return found


def _state(
    settings: Settings, topic: Topic, name: str, partitions: Sequence[int], entries: Sequence[Any] | None
) -> TopicState:
    if not partitions:
        return TopicState(topic, name, 0, ("missing",), True, {})
    told, fatal = [], False
    # The count of other topics is a matter of throughput; that of a compacted one decides where a key lives.
    if len(partitions) != topic.partitions and "compact" in topic.cleanup:
        told.append(f"partitions: {topic.partitions} expected, {len(partitions)} found")
        fatal = True
    if entries is None:
        return TopicState(topic, name, len(partitions), (*told, UNCOMPARED), fatal, {})
    wrong, config = {}, {entry[0]: entry[1] for entry in entries}
    for setting, expected in topic.config(settings.retention_seconds).items():
        value = config.get(setting, "")
        if setting == "max.message.bytes" and int(value or 0) < int(expected):
            told.append(f"{setting}: at least {expected} expected, {value} found")
            wrong[setting], fatal = expected, True
        elif setting != "max.message.bytes" and sorted(value.split(",")) != sorted(expected.split(",")):
            told.append(f"{setting}: {expected} expected, {value} found")
            wrong[setting] = expected
    return TopicState(topic, name, len(partitions), tuple(told), fatal, wrong)
