"""What the brokers allow us: rights that a worker needs, rights that it has."""

from functools import partial
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.admin import DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from schemas.topics import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES
from workers.kafka_tools import admin, told
from workers.settings import Settings, SettingsError

# Bits of Kafka's AclOperation; brokers that are not Apache's may leave them all untold.
_BITS = {"READ": 3, "WRITE": 4}
_EVERY, _UNTOLD = -1, -(2**31)
_TEXT = String("utf-8")


class Right(NamedTuple):
    """One right.

    Attributes:
        kind: topic or group.
        name: Of the topic or group.
        operation: READ or WRITE.
    """

    kind: str
    name: str
    operation: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


def needed(settings: Settings, role: str) -> list[Right]:
    """The rights of a worker of this role."""
    read = {"sign": [DOCUMENTS], "match": [SIGNATURES], "all": [DOCUMENTS, SIGNATURES]}[role]
    written = {"sign": [SIGNATURES], "match": [*EVENT_TOPICS], "all": [SIGNATURES, *EVENT_TOPICS]}[role]
    return [
        Right("group", settings.group, "READ"),
        *(Right("topic", settings.topic_prefix + topic.name, "READ") for topic in read),
        *(Right("topic", settings.topic_prefix + topic.name, "WRITE") for topic in (*written, DEAD_LETTERS)),
    ]


async def missing(settings: Settings, role: str, wait_seconds: float) -> list[Right]:
    """Rights that a worker of this role lacks; none if the broker does not tell (as before 2.3).

    Raises:
        KafkaUnreachableError: No broker told within `wait_seconds`.
    """
    wanted = needed(settings, role)
    topics = [right.name for right in wanted if right.kind == "topic"]
    async with admin(settings, wait_seconds) as client:
        asking = partial(_held, client, topics, settings.group)
        try:
            held = await told(asking, wait_seconds, f"no Kafka at {settings.kafka} tells our rights")
        except NotImplementedError:
            return []
    return [right for right in wanted if not held[right.kind, right.name] >> _BITS[right.operation] & 1]


async def require(settings: Settings, role: str, wait_seconds: float) -> None:
    """Refuses to go on without the rights of this role.

    Raises:
        SettingsError: Some are missing; they are named.
        KafkaUnreachableError: No broker told within `wait_seconds`.
    """
    lacking = await missing(settings, role, wait_seconds)
    if lacking:
        raise SettingsError(f"NEARSTREAM_KAFKA_USERNAME: missing rights: {', '.join(map(str, lacking))}")


async def _held(client: AIOKafkaAdminClient, topics: list[str], group: str) -> dict[tuple[str, str], int]:
    """Allowed operations on these topics and on the group, as bits."""
    # aiokafka's own questions do not ask for rights, or drop the answer.
    answer = await client._send_request(_TopicRights(topics))
    held = {("topic", topic[1]): allowed(topic[0], topic[-1]) for topic in answer.topics}
    return held | {("group", group): await _of_group(client, group)}


async def _of_group(client: AIOKafkaAdminClient, group: str) -> int:
    try:
        coordinator = await client.find_coordinator(group)
        ((code, *_, operations),) = (await client._send_request(_GroupRights(group), coordinator)).groups
    except GroupAuthorizationFailedError:
        return 0
    if code not in (0, GroupAuthorizationFailedError.errno):
        raise for_code(code)
    return allowed(code, operations)


def allowed(code: int, operations: int) -> int:
    """Allowed operations, as bits, of what a broker answers; all of them where it tells none without a refusal."""
    if code in (GroupAuthorizationFailedError.errno, TopicAuthorizationFailedError.errno):
        return 0
    return _EVERY if operations == _UNTOLD else operations


class _TopicRightsAnswer(Response):  # type: ignore[misc] # aiokafka has no types, here as below
    """Metadata with what we may do."""

    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT))),
        ("cluster", _TEXT),
        ("controller", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", _TEXT),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("operations", Int32),
            ),
        ),
        ("operations", Int32),
    )


class _TopicRightsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _TopicRightsAnswer
    SCHEMA = Schema(("topics", Array(_TEXT)), ("create", Boolean), ("cluster", Boolean), ("operations", Boolean))


class _TopicRights(Request[_TopicRightsRequest]):  # type: ignore[misc]
    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_TopicRightsRequest]) -> _TopicRightsRequest:
        return request_struct_class(self._topics, False, False, True)


class _GroupRightsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 15
    API_VERSION = 3
    RESPONSE_TYPE = DescribeGroupsResponse_v3
    SCHEMA = Schema(("groups", Array(_TEXT)), ("operations", Boolean))


class _GroupRights(Request[_GroupRightsRequest]):  # type: ignore[misc]
    API_KEY = 15

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_GroupRightsRequest]) -> _GroupRightsRequest:
        return request_struct_class([self._group], True)
