"""Skip one record by hand, if a bug stops its partition."""

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.dead_letter import DeadLetter, Reason
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.store.store import Position
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.client import (
    SESSION_SECONDS,
    AIOKafkaAdminClient,
    AIOKafkaConsumer,
    TopicPartition,
    admin,
    consumer,
)
from nearstream.workers.kafka.records import record_at, sender
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex

DETAIL = "passed over by hand"


async def skip_record(deployment: Deployment, tp: TopicPartition, offset: int, wait_seconds: float) -> None:
    """Write a dead letter for a record of `documents` or `signatures`, then commit past it."""
    settings = deployment.settings
    await _check_partition(deployment, tp, wait_seconds)
    index = await _open_index(deployment, wait_seconds) if tp.topic == deployment.topic(SIGNATURES) else None
    try:
        async with (
            admin(settings, wait_seconds) as admin_client,
            consumer(settings, wait_seconds) as consumer_client,
            sender(settings, wait_seconds) as send_all,
        ):
            next_offset = await _next_offset(settings.group, admin_client, consumer_client, tp, index)
            record = await record_at(consumer_client, tp, offset)
            if record is None:
                raise RefusalError(f"{tp.topic} {tp.partition} has no record at {offset}")
            _check_order(next_offset, offset)
            await send_all([_dead_letter(deployment, record)])
            if index is not None:
                await index.cover([Position(tp.partition, offset)])
            await kafka_offsets.commit(admin_client, settings.group, tp, offset + 1)
    finally:
        if index is not None:
            await index.close()


async def _check_partition(deployment: Deployment, tp: TopicPartition, wait_seconds: float) -> None:
    topics = [deployment.topic(topic) for topic in (DOCUMENTS, SIGNATURES)]
    if tp.topic not in topics:
        raise RefusalError(f"{' or '.join(topics)} expected, got {tp.topic}")
    if tp not in await kafka_offsets.partitions(deployment.settings, [tp.topic], wait_seconds):
        raise RefusalError(f"{tp.topic} has no partition {tp.partition}")


async def _open_index(deployment: Deployment, wait_seconds: float) -> RedisIndex:
    """Open the index, which would take the skipped record for lost if its checkpoint did not move too."""
    topics = [deployment.topic(SIGNATURES)]
    partitions = len(await kafka_offsets.partitions(deployment.settings, topics, wait_seconds))
    return await RedisIndex.open(deployment.index_address(), partitions=partitions, may_create=False)


async def _next_offset(
    group: str,
    admin_client: AIOKafkaAdminClient,
    consumer_client: AIOKafkaConsumer,
    tp: TopicPartition,
    index: RedisIndex | None,
) -> int:
    members = await kafka_offsets.members(admin_client, group)
    if members:
        raise RefusalError(
            f"group {group} has {members} members: stop its workers; "
            f"a worker that crashed remains a member for {SESSION_SECONDS:g} s"
        )
    committed = await kafka_offsets.committed_offsets(admin_client, group, [tp])
    begins: dict[TopicPartition, int] = await consumer_client.beginning_offsets([tp])
    offset = committed[tp]
    if index is not None:
        offset = min(offset, (await index.checkpoints()).get(tp.partition, -1) + 1)
    return max(offset, begins[tp])


def _check_order(next_offset: int, offset: int) -> None:
    if offset < next_offset:
        raise RefusalError(f"the group is past offset {offset}, its next offset is {next_offset}")
    if next_offset < offset:
        raise RefusalError(
            f"offsets {next_offset} to {offset - 1} before it have no outcome yet and would be lost: start a worker, "
            "which stops at the record it fails on and names it in its log"
        )


def _dead_letter(deployment: Deployment, record: ConsumerRecord) -> ProducerRecord:
    dead_letter = DeadLetter(record, "skip", Reason.SKIPPED_BY_OPERATOR, DETAIL)
    return deployment.dead_letter_writer("dlq").write(dead_letter)
