"""How far a consumer group has read, and who its members are."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupAuthorizationFailedError, for_code

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, VERDICTS, Topic
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.client import admin, consumer, describe
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError, retriable
from nearstream.workers.kafka.offsets import committed_offsets

ANSWER_SECONDS = 10.0
# Per partition. A larger record batch is fetched alone.
_FETCH_BYTES = 16 * 1024
_READERS = {DOCUMENTS.name: "sign", SIGNATURES.name: "match", VERDICTS.name: "decide"}  # but for the worker `alert`


@dataclass(frozen=True)
class PartitionLag:
    """The lag of the group in one partition."""

    topic: str  # name of the topic, with the deployment's prefix
    partition: int  # number of the partition
    committed: int  # offset that the group reads next. -1: the group has never committed
    begin: int  # offset of the oldest record that the broker still has
    end: int  # offset after the newest record
    seconds: float | None  # Age of the oldest unacknowledged record by its own timestamp. None: no record is waiting.

    @property
    def records(self) -> int:
        """Number of offsets between the group and the end.

        A compacted topic has fewer records than offsets.
        """
        return 0 if self.seconds is None else self.end - max(self.committed, self.begin)

    def as_json(self) -> dict[str, object]:
        """Return a row as the commands and the status server show it."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "committed": None if self.committed < 0 else self.committed,
            "end": self.end,
            "records": self.records,
            "seconds": None if self.seconds is None else round(self.seconds, 1),
        }


def reader_of(topic: str) -> str:
    """Return the role that reads a topic of this name, which may have a prefix, in the group of all but `alert`."""
    return next((role for name, role in _READERS.items() if topic.endswith(name)), "")


LagReader = Callable[[], Awaitable[list[PartitionLag]]]


@asynccontextmanager
async def lag_reader(
    settings: Settings, wait_seconds: float, topics: Sequence[Topic] = (DOCUMENTS, SIGNATURES)
) -> AsyncIterator[LagReader]:
    """Yield a function that reads the lag of the group on these topics.

    Its connections stay open between calls. It raises KafkaUnreachableError when there is no answer within
    `ANSWER_SECONDS`, and may then be called again.
    """
    async with (
        admin(settings, wait_seconds) as admin_client,
        consumer(settings, wait_seconds, fetch_bytes=_FETCH_BYTES) as reader,
    ):
        yield partial(_group_lag, settings, topics, admin_client, reader)


async def _group_lag(
    settings: Settings, topics: Sequence[Topic], admin_client: AIOKafkaAdminClient, reader: AIOKafkaConsumer
) -> list[PartitionLag]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await describe(admin_client, [settings.topic_prefix + topic.name for topic in topics])
            partitions = [
                TopicPartition(topic, number) for topic, numbers in sorted(found.items()) for number in numbers
            ]
            return await _lags(settings, admin_client, reader, partitions)
    except TimeoutError:
        raise KafkaUnreachableError(f"no answer from Kafka at {settings.kafka} within {ANSWER_SECONDS:g} s") from None
    except KafkaError as error:
        if not retriable(error):
            raise
        raise KafkaUnreachableError(f"cannot read the offsets of group {settings.group}: {error}") from error


async def _lags(
    settings: Settings,
    admin_client: AIOKafkaAdminClient,
    reader: AIOKafkaConsumer,
    partitions: Sequence[TopicPartition],
) -> list[PartitionLag]:
    if not partitions:
        return []
    # Read committed offsets first: a commit in between makes the lag too large, but never negative.
    known = await committed_offsets(admin_client, settings.group, partitions)
    begins = await reader.beginning_offsets(partitions)
    ends = await reader.end_offsets(partitions)
    unread = {tp: (max(known[tp], begins[tp]), ends[tp]) for tp in partitions}
    ages = await _ages(reader, {tp: span for tp, span in unread.items() if span[0] < span[1]})
    return [PartitionLag(tp.topic, tp.partition, known[tp], begins[tp], ends[tp], ages.get(tp)) for tp in partitions]


async def _ages(
    reader: AIOKafkaConsumer, spans: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, float]:
    """Return the age of the first record in each span.

    Ages are in seconds, spans are offsets from start to before end. A span with only transaction markers or gaps has
    no age.
    """
    ages: dict[TopicPartition, float] = {}
    waiting = set(spans)
    if not spans:
        return ages
    reader.assign(list(spans))
    for partition, (start, _) in spans.items():
        reader.seek(partition, start)
    try:
        while waiting:
            found = await reader.getmany(*waiting, timeout_ms=1000)
            for partition, records in found.items():
                if records[0].offset < spans[partition][1]:
                    ages[partition] = max(time.time() - records[0].timestamp / 1000, 0.0)
            done = found.keys() | {tp for tp in waiting if await reader.position(tp) >= spans[tp][1]}
            reader.pause(*done)
            waiting -= done
    finally:
        reader.pause(*spans)  # otherwise the consumer would keep fetching later records
    return ages


_SETTLED = ("Stable", "Empty", "Dead")


@dataclass(frozen=True)
class GroupMembers:
    """The members of a group."""

    group: str  # name of the group
    is_settled: bool  # no rebalance goes on, so `hosts` is complete
    count: int  # number of members
    hosts: Mapping[tuple[str, int], str]  # the host that reads a partition, by topic and number of the partition


async def group_members(client: AIOKafkaAdminClient, group: str) -> GroupMembers | None:
    """Return the members of a group, or None without the permission."""
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
    """Yield a sentence for each topic that a group should read and does not, none while its members are not known."""
    if members is None or not members.is_settled:
        return
    if not members.count and any(row.committed >= 0 for row in rows):
        waiting = sum(row.records for row in rows)
        problem = f"no worker of group {members.group} runs{f', and {waiting} records wait' if waiting else ''}"
        yield f"{problem}: {_remedy(role)}"
        return
    left: Counter[str] = Counter()
    for row in rows:
        if (row.topic, row.partition) not in members.hosts:
            left[row.topic] += row.records
    for topic, records in left.items():
        if records:
            problem = f"{records} records of {topic} wait, and no worker of group {members.group} reads them"
            yield f"{problem}: {_remedy(role or reader_of(topic))}"


def _remedy(role: str) -> str:
    return f"start `nearstream worker{role and ' '}{role}`"
