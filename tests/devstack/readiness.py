"""Check that a Kafka broker does what its clients need."""

import asyncio
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

_REQUEST_MS = 5_000
_ATTEMPT_SECONDS = 15.0


async def broker_answers(bootstrap: str) -> bool:
    """Return whether groups have a coordinator and topics work.

    A topic is created, written, read and deleted. An open port is not enough: a broker listens before its log works,
    and it creates the topic that groups need only when the first group asks for it.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MS)
    topic = f"nearstream-ready-{uuid.uuid4().hex}"
    try:
        async with asyncio.timeout(_ATTEMPT_SECONDS):
            await admin.start()
            await admin.find_coordinator("nearstream-ready")
            created = await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
            if created.topic_errors[0][1] != 0:
                return False
            try:
                return await _returns_what_was_sent(bootstrap, topic)
            finally:
                await admin.delete_topics([topic])
    except (KafkaError, OSError, TimeoutError):
        return False
    finally:
        await admin.close()


async def _returns_what_was_sent(bootstrap: str, topic: str) -> bool:
    value = topic.encode()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MS) as producer:
        await producer.send_and_wait(topic, value)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", request_timeout_ms=_REQUEST_MS
    )
    consumer.assign([TopicPartition(topic, 0)])
    async with consumer:
        batches = await consumer.getmany(timeout_ms=_REQUEST_MS)
    return [record.value for records in batches.values() for record in records] == [value]
