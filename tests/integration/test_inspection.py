"""A record of a topic is found by its key, however far back it is."""

from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.operations.inspection import FIRST_BLOCK, newest_of_key, record_at
from tests.support.deployment import deployed

FILLERS = 6 * 3 * FIRST_BLOCK  # each of 6 partitions is searched in several blocks


async def test_the_newest_record_of_a_key_is_found_behind_many_others(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(SIGNATURES)
        fillers = [ProducerRecord(topic, str(one).encode(), b"", []) for one in range(FILLERS)]
        sought = [ProducerRecord(topic, b"sought", value, []) for value in (b"first", b"second")]
        await deployment.send([*sought, *fillers])
        found = await newest_of_key(deployment.settings, topic, b"sought", 10.0, quiet=True)
        assert found is not None
        assert found.value == b"second"
        there = await record_at(deployment.settings, topic, found.partition, found.offset, 10.0)
        assert there == found
        assert await record_at(deployment.settings, topic, found.partition, 10**6, 10.0) is None
        assert await newest_of_key(deployment.settings, topic, b"nobody", 10.0, quiet=True) is None
