"""ACLs: the permissions that a worker needs, and those granted."""

from functools import partial
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.admin import DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from nearstream.schemas.topics.table import (
    ALERTS,
    DEAD_LETTERS,
    DECISIONS,
    DOCUMENTS,
    EVENT_TOPICS,
    LABELS_CHANGED,
    SIGNATURES,
    SILENCES,
    VERDICTS,
)
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import admin, retry_until_answered

# Bits of Kafka's AclOperation. A broker that does not report permissions sends `_NOT_REPORTED` instead.
_BITS = {"READ": 3, "WRITE": 4}
_ALL_OPERATIONS, _NOT_REPORTED = -1, -(2**31)
_TEXT = String("utf-8")


class Permission(NamedTuple):
    """One permission."""

    kind: str  # kind of resource, topic or group
    name: str  # name of the topic or group
    operation: str  # READ or WRITE

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


def needed(settings: Settings, role: str) -> list[Permission]:
    """Return the permissions that a worker of this role needs."""
    read, written = {
        "sign": ([DOCUMENTS], [SIGNATURES]),
        # Matching writes to `signatures` if a document arrives there after its removal.
        "match": ([SIGNATURES], [SIGNATURES, *EVENT_TOPICS, LABELS_CHANGED]),
        "decide": ([VERDICTS], [DECISIONS]),
        "alert": ([VERDICTS, DEAD_LETTERS, SILENCES, ALERTS], [ALERTS]),
        "all": ([DOCUMENTS, SIGNATURES], [SIGNATURES, *EVENT_TOPICS, LABELS_CHANGED]),
    }[role]
    return [
        Permission("group", settings.group, "READ"),
        *(Permission("topic", settings.topic_prefix + topic.name, "READ") for topic in read),
        *(Permission("topic", settings.topic_prefix + topic.name, "WRITE") for topic in (*written, DEAD_LETTERS)),
    ]


async def missing(settings: Settings, role: str, wait_seconds: float) -> list[Permission]:
    """Return the permissions that a worker of this role lacks.

    The list is empty if the broker cannot report permissions, as before Kafka 2.3.
    """
    wanted = needed(settings, role)
    topics = [permission.name for permission in wanted if permission.kind == "topic"]
    async with admin(settings, wait_seconds) as client:
        ask = partial(_granted, client, topics, settings.group)
        try:
            granted = await retry_until_answered(
                ask, wait_seconds, f"cannot read our permissions from Kafka at {settings.kafka}"
            )
        except NotImplementedError:
            return []
    return [
        permission
        for permission in wanted
        if not granted[permission.kind, permission.name] >> _BITS[permission.operation] & 1
    ]


async def require(settings: Settings, role: str, wait_seconds: float) -> None:
    """Raise if a worker of this role lacks a permission."""
    lacking = await missing(settings, role, wait_seconds)
    if lacking:
        raise SettingsError(f"NEARSTREAM_KAFKA_USERNAME: missing permissions: {', '.join(map(str, lacking))}")


async def _granted(client: AIOKafkaAdminClient, topics: list[str], group: str) -> dict[tuple[str, str], int]:
    # aiokafka's own requests do not ask for permissions, or drop them from the response.
    response = await client._send_request(_TopicPermissions(topics))
    granted = {("topic", topic[1]): allowed(topic[0], topic[-1]) for topic in response.topics}
    return granted | {("group", group): await _granted_on_group(client, group)}


async def _granted_on_group(client: AIOKafkaAdminClient, group: str) -> int:
    try:
        coordinator = await client.find_coordinator(group)
        ((code, *_, operations),) = (await client._send_request(_GroupPermissions(group), coordinator)).groups
    except GroupAuthorizationFailedError:
        return 0
    if code not in (0, GroupAuthorizationFailedError.errno):
        raise for_code(code)
    return allowed(code, operations)


def allowed(code: int, operations: int) -> int:
    """Return the allowed operations, as bits, from a broker's response."""
    if code in (GroupAuthorizationFailedError.errno, TopicAuthorizationFailedError.errno):
        return 0
    return _ALL_OPERATIONS if operations == _NOT_REPORTED else operations


class _TopicPermissionsResponse(Response):  # type: ignore[misc] # aiokafka has no types, here and below
    """Topic metadata with the operations that we are allowed."""

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


class _TopicPermissionsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _TopicPermissionsResponse
    SCHEMA = Schema(("topics", Array(_TEXT)), ("create", Boolean), ("cluster", Boolean), ("operations", Boolean))


class _TopicPermissions(Request[_TopicPermissionsRequest]):  # type: ignore[misc]
    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_TopicPermissionsRequest]) -> _TopicPermissionsRequest:
        return request_struct_class(self._topics, False, False, True)


class _GroupPermissionsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 15
    API_VERSION = 3
    RESPONSE_TYPE = DescribeGroupsResponse_v3
    SCHEMA = Schema(("groups", Array(_TEXT)), ("operations", Boolean))


class _GroupPermissions(Request[_GroupPermissionsRequest]):  # type: ignore[misc]
    API_KEY = 15

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_GroupPermissionsRequest]) -> _GroupPermissionsRequest:
        return request_struct_class([self._group], True)
