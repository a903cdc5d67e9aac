"""Input that is bad, large, repeated, or signed under another scheme."""

import asyncio
import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.worker.topology import SIGN_BATCH
from tests.fault.agreement import disagreement
from tests.fault.conftest import Stage
from tests.fault.corpus import Sent, corpus, traced
from tests.fault.observer import standing_seconds
from tests.fault.reading import text
from tests.fault.runner import NEVER, STANDING_SECONDS, Run, stop_in_turn
from tests.support.bad_input import BAD
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.signing import signer

BAD_SHARE = 0.05
LARGEST_DOCUMENT_BYTES = 100_000  # the size of the largest healthy document
MEBIBYTE = 1024 * 1024


@pytest.mark.long
async def test_f15_bad_records_hold_nobody_up(stage: Stage, seed: int) -> None:
    async with stage("F15", dead_letter_max_ratio="1") as run:
        _mix_in_bad(run, random.Random(seed))
        warm = len(run.observer.samples)
        async with run.load():
            pass
        await run.drained()
        assert standing_seconds(run.observer.samples[warm:]) <= STANDING_SECONDS
        await run.ends_well()


def _mix_in_bad(run: Run, draw: random.Random) -> None:
    """Mix bad records of all kinds into the documents that are still to be sent."""
    healthy, mixed = run.documents[: run.first], run.documents[run.first :]
    for number in range(int(len(mixed) * BAD_SHARE / (1 - BAD_SHARE))):
        name, value, headers, _ = BAD[number % len(BAD)]
        bad = ProducerRecord(run.topic, f"{name}-{number}".encode(), value, headers)
        mixed.insert(draw.randrange(len(mixed)), bad)
    run.documents = healthy + mixed


async def test_f15_one_bad_record_of_twenty_costs_a_signer_less_than_five_percent(documents: list[Sent]) -> None:
    texts = [sent for sent in documents if sent.value][:200]
    bad = [(value, headers) for _, value, headers, _ in BAD if len(value or b"") <= LARGEST_DOCUMENT_BYTES]
    plain = await _sign_seconds([(each.value, []) for each in texts])
    assert await _sign_seconds([bad[number % len(bad)] for number in range(200)]) <= 2 * plain


async def _sign_seconds(given: Sequence[tuple[bytes | None, Headers]]) -> float:
    """Return the least processor time of three for signing these records."""
    records = [ConsumerRecord("documents", 0, at, 0, b"%d" % at, *each) for at, each in enumerate(given)]
    job, found = signer(), []
    for _ in range(3):
        began = time.thread_time()
        for start in range(0, len(records), SIGN_BATCH):
            await job.decide(records[start : start + SIGN_BATCH])
        found.append(time.thread_time() - began)
    return min(found)


async def test_f21_f03_f15_the_whole_input_again_adds_no_event(stage: Stage, seed: int) -> None:
    """One record of twenty is bad, and each worker is stopped and replaced while the input is sent.

    Then the group is reset and reads all records again, then copies of them in another order. Documents with several
    states are not copied: a copy of an earlier state would be a new one, with events of its own. Nor are those without
    a key, whose copies may be in another partition, before them in the order of the oracle.
    """
    async with stage("F21", most=1000, stop_seconds=NEVER, dead_letter_max_ratio="1") as run:
        _mix_in_bad(run, random.Random(seed))
        async with run.load():
            await stop_in_turn(run)
        await run.drained()
        before = {event.event_id for event in await run.deployment.events()}
        assert set(await run.stop()) == {0}
        await run.deployment.rewind()
        run.observer.samples.clear()
        run.start()
        await run.drained()
        records = await run.deployment.read(DOCUMENTS.name)
        states = Counter(record.key for record in records if record.key)
        copies = [
            ProducerRecord(run.topic, record.key, record.value, record.headers, record.timestamp_ms)
            for record in records
            if states[record.key] == 1
        ]
        random.Random(seed).shuffle(copies)
        await run.deployment.send(copies)
        await run.drained()
        assert {event.event_id for event in await run.deployment.events()} == before
        await run.ends_well()


@pytest.mark.parametrize(("percent", "most"), [(100, 100), (99, 200 + SIGN_BATCH)])
async def test_f31_input_that_is_nearly_all_bad_is_not_drained(
    kafka: str, redis_url: str, tmp_path: Path, percent: int, most: int
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.settings.topic_prefix + DOCUMENTS.name
        records = [
            ProducerRecord(topic, str(number).encode(), b"bad" if number % 100 < percent else b'{"text": "good"}', [])
            for number in range(1000)
        ]
        await deployment.send(records)
        with deployment.worker() as worker:
            await until(lambda: _holds(tmp_path))
            letters = len(await deployment.letters())
            assert letters <= most
            await asyncio.sleep(2)
            assert len(await deployment.letters()) == letters
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, 20) == Exit.UNREADABLE


async def _holds(logs: Path) -> bool:
    """Return whether a log says that the worker halts, and why.

    The first batch alone may exceed a limit, and then there is no dead letter to read.
    """
    said = await asyncio.to_thread(lambda: "".join(log.read_text() for log in logs.glob("*.log")))
    return bool(re.search(r" halted: .*not_json", said))


def _scheme(deployment: LocalDeployment) -> str:
    return Deployment.of(deployment.settings).scheme.name


@pytest.mark.long
async def test_f16_large_documents_are_signed_or_refused_and_memory_is_bounded(stage: Stage) -> None:
    async with stage("F16", most=200) as run:
        before, draw = run.rebalances(), random.Random(16)
        for mebibytes in (1, 4):
            size = mebibytes * MEBIBYTE - 1_000
            large = [{"id": f"{mebibytes}-{turn}", "text": draw.randbytes(size // 2).hex()} for turn in range(10)]
            for fields in large:
                await run.deployment.send(traced(run.topic, [Sent(None, json.dumps(fields).encode())]))
        with pytest.raises(MessageSizeTooLargeError):
            await run.deployment.send([ProducerRecord(run.topic, None, b"x" * 16 * MEBIBYTE, [])])
        await run.drained()
        assert run.rebalances() == before
        await run.ends_well()
        assert len(await run.deployment.letters()) == 10


@pytest.mark.long
async def test_f41_batches_that_decompress_to_gigabytes_stay_within_bounds(stage: Stage, kafka: str) -> None:
    limits = {"dead_letter_max_ratio": "0"}
    async with stage("F41", most=200, **limits) as run:
        before = run.rebalances()
        for codec, count in (("zstd", 120), ("gzip", 20), ("lz4", 20)):
            await _send_batch(
                kafka, run.topic, codec, [(b"before", _padded(f"{codec} before")), (b"k", bytes(600 * MEBIBYTE))]
            )
            await _send_batch(
                kafka, run.topic, codec, [(b"k", bytes(30 * MEBIBYTE)), (b"after", _padded(f"{codec} after"))]
            )
            documents = [(b"%d" % number, _padded(f"{codec} {number}")) for number in range(count)]
            await _send_batch(kafka, run.topic, codec, documents)
        await run.drained()
        assert run.rebalances() == before
        report = await run.ends_well()
        assert report.peak_memory_mb <= 300
        reasons = Counter(text(letter, "nearstream-dead-reason") for letter in await run.deployment.letters())
        assert reasons == {"empty_value": 3, "too_large": 3}


def _padded(name: str) -> bytes:
    """Return a document that is as large as any is accepted."""
    fields = json.dumps({"id": name, "text": f"{name} " * (MEBIBYTE // (len(name) + 1))}).encode()
    return fields + b" " * (4 * MEBIBYTE - len(fields))


async def _send_batch(kafka: str, topic: str, codec: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    """Send these records to the first partition, as one batch that is small enough once it is compressed."""
    no_limit = {"max_batch_size": 2**31 - 1, "max_request_size": 2**31 - 1}
    async with AIOKafkaProducer(bootstrap_servers=kafka, compression_type=codec, **no_limit) as producer:
        batch = producer.create_batch()
        for key, value in records:
            assert batch.append(timestamp=None, key=key, value=value)
        await (await producer.send_batch(batch, topic, partition=0))


@pytest.mark.long
async def test_f37_two_schemes_on_one_set_of_topics_do_not_meet(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Each of two schemes signs every document and refuses the signatures of the other.

    Both start on empty topics, each with a group and a namespace of its own. No later start of them would be refused.
    """
    limits = {"dead_letter_max_ratio": "0"}
    async with deployed(kafka, redis_url, tmp_path, **limits) as one:
        changed = {
            "NEARSTREAM_SCHEME": "compact",
            "NEARSTREAM_GROUP": f"{one.settings.group}-compact",
            "NEARSTREAM_NAMESPACE": f"{one.settings.namespace}-compact",
        }
        given = {name: text for name, text in one.environment.items() if name.startswith("NEARSTREAM_")}
        other = LocalDeployment(load(given | changed), one.environment | changed, tmp_path)
        topic = one.settings.topic_prefix + DOCUMENTS.name
        with one.worker(), other.worker():
            await one.send(traced(topic, corpus(200, 37)))
            for each in (one, other):
                await each.drained()
        for each in (one, other):
            assert await disagreement(each) == {}
        assert {event.scheme for event in await one.events()} == {_scheme(one), _scheme(other)}
        letters = await one.letters()
        assert {text(letter, "nearstream-dead-reason") for letter in letters} == {"other_scheme"}
        signed = [record for record in await one.read(SIGNATURES.name) if record.value is not None]
        assert len(letters) == len(signed)  # removals are of no scheme
