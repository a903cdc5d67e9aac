"""The members of a consumer group, and what each of them reads."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupAuthorizationFailedError, for_code

from nearstream.workers.kafka.lag import PartitionLag

_SETTLED = ("Stable", "Empty", "Dead")


@dataclass(frozen=True)
class GroupMembers:
    """The members of a group.

    Attributes:
        group: Name of the group.
        is_settled: No rebalance goes on, so `hosts` is complete.
        count: Number of members.
        hosts: The host that reads a partition, by topic and number of the partition.
    """

    group: str
    is_settled: bool
    count: int
    hosts: Mapping[tuple[str, int], str]


async def group_members(client: AIOKafkaAdminClient, group: str) -> GroupMembers | None:
    """Return the members of a group, or None without the permission.

    Raises:
        KafkaError: The coordinator of the group does not answer, or answers an error.
    """
    try:
        (response,) = await client.describe_consumer_groups([group])
    except GroupAuthorizationFailedError:
        return None
    ((code, _, state, _, _, members, *_),) = response.groups
    error = for_code(code)
    if error is GroupAuthorizationFailedError:
        return None
    if code:
        raise error
    hosts = {
        (place.topic, place.partition): host.lstrip("/")
        for _, _, host, _, assignment in (member[-5:] for member in members)
        if assignment
        for place in ConsumerProtocolMemberAssignment.decode(assignment).partitions()
    }
    return GroupMembers(group, state in _SETTLED, len(members), hosts)


def unread(rows: Sequence[PartitionLag], members: GroupMembers | None, role: str = "") -> Iterator[str]:
    """Yield a sentence for each topic that a group should read and does not.

    Args:
        rows: The lag of the group.
        members: Its members. None: they are not known.
        role: The role of its workers, if it is not `all`.
    """
    if members is None or not members.is_settled:
        return
    remedy = f"start `nearstream worker{role and ' '}{role}`"
    if not members.count and any(row.committed >= 0 for row in rows):
        waiting = sum(row.records for row in rows)
        yield f"no worker of group {members.group} runs{f', and {waiting} records wait' if waiting else ''}: {remedy}"
        return
    left: Counter[str] = Counter()
    for row in rows:
        if (row.topic, row.partition) not in members.hosts:
            left[row.topic] += row.records
    for topic, records in left.items():
        if records:
            problem = f"{records} records of {topic} wait, and no worker of group {members.group} reads them"
            yield f"{problem}: {remedy}"
