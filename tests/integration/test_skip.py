"""A record on which this release fails is skipped without losing another record."""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord, header
from nearstream.schemas.topics.dead_letter import REASON_HEADER, Reason
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.partitioning import partition_of
from tests.support.deployment import DOCUMENT_PARTITIONS, TEXTS, LocalDeployment, deployed, until

BUGGY = ("tests.integration.worker_with_a_bug",)


async def test_skip_passes_over_one_record_of_documents_and_one_of_signatures_and_loses_no_other(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    names = _on_one_partition(["first", "second", "bug", "last"])
    junk, bug = _on_one_partition(["junk", "another-bug"])
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        for words, told in (
            ((topic, "0", "0"), "has no record at 0"),
            ((topic, "99", "0"), "has no partition 99"),
            ((topic + ".", "0", "0"), f"{topic} or "),
        ):
            done = deployment.run("dlq", "skip", *words)
            assert (done.returncode, told in done.stderr.decode()) == (1, True)
        bad = await _stopped_by_a_bug(deployment, "sign", DOCUMENTS.name, names)
        assert await _committed(deployment, bad) == bad.offset
        further = _skip(deployment, bad, 1)
        assert further.returncode == 1
        assert b"have no outcome yet and would be lost: start a worker" in further.stderr
        done = _skip(deployment, bad)
        assert done.returncode == 0, done.stderr
        (letter,) = await deployment.letters()
        assert header(letter.headers, REASON_HEADER) == Reason.SKIPPED_BY_OPERATOR.encode()
        assert (letter.key, letter.value) == (bad.key, bad.value)
        with deployment.worker("sign", BUGGY) as worker:
            await deployment.drained()
            assert worker.poll() is None
            running = _skip(deployment, bad)
            assert (running.returncode, b"has 1 members: stop its workers" in running.stderr) == (1, True)
        assert await deployment.named() == {name for name in names if not name.endswith("bug")}
        past = _skip(deployment, bad)
        assert (past.returncode, past.stdout) == (1, b"")
        assert b"the group is past offset" in past.stderr

        # A record that the other step fails on, behind a dead letter.
        await deployment.send([ProducerRecord(deployment.topic(SIGNATURES), f"default/{junk}".encode(), b"junk", [])])
        bad = await _stopped_by_a_bug(deployment, "match", SIGNATURES.name, [bug])
        done = _skip(deployment, bad)
        assert done.returncode == 0, done.stderr
        with deployment.worker():
            await deployment.send([deployment.document(names[0], TEXTS[1])])
            await deployment.drained()
        assert len(await deployment.letters()) == 3
        assert not await deployment.logged("the index lost")


def _skip(deployment: LocalDeployment, record: ConsumerRecord, further: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Skip a record, or one that is so many offsets further."""
    return deployment.run("dlq", "skip", record.topic, str(record.partition), str(record.offset + further))


async def _stopped_by_a_bug(deployment: LocalDeployment, step: str, topic: str, names: Sequence[str]) -> ConsumerRecord:
    """Let a worker fail on a record, and return the record that stopped its partition."""
    await deployment.send([deployment.document(name, TEXTS[0]) for name in names])
    with deployment.worker(step, BUGGY) as worker:
        assert await asyncio.to_thread(worker.wait, 60) == 1
    await until(lambda: _has_no_members(deployment))
    (bad,) = [record for record in await deployment.read(topic) if (record.key or b"").endswith(b"bug")]
    return bad


def _on_one_partition(ends: Sequence[str]) -> list[str]:
    """Return ids with these ends for the first partition of both topics."""

    def first(key: str, partitions: int) -> bool:
        return partition_of(key.encode(), partitions) == 0

    return [
        next(
            name
            for name in (f"{number}-{end}" for number in range(1000))
            if first(name, DOCUMENT_PARTITIONS) and first(f"default/{name}", SIGNATURES.partitions)
        )
        for end in ends
    ]


async def _committed(deployment: LocalDeployment, record: ConsumerRecord) -> int:
    known = await kafka_offsets.committed(deployment.settings, record.topic, [record.partition])
    return known[record.partition]


async def _has_no_members(deployment: LocalDeployment) -> bool:
    async with kafka_client.admin(deployment.settings, 10.0) as client:
        return await kafka_offsets.members(client, deployment.settings.group) == 0
