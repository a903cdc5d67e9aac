"""Input that is bad, large, repeated, or signed under another scheme."""

import asyncio
import json
import random
import re
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from nearstream.schemas.documents.record import ProducerRecord
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
from tests.fault.runner import STANDING_SECONDS, Run
from tests.support.bad_input import BAD, BadRecord
from tests.support.deployment import LocalDeployment, deployed, until

BAD_SHARE = 0.05
MEASURED_SHARE = 0.5  # of bad records while their processor time is measured, at which a worker would halt by default
TURNED = 600  # documents in each of the four measurements of processor time
LEAST_SHARE = 0.95
LARGEST_DOCUMENT_BYTES = 100_000  # the size of the largest healthy document
MEBIBYTE = 1024 * 1024


async def test_f15_bad_records_hold_nobody_up(stage: Stage, seed: int) -> None:
    async with stage("F15", dead_letter_max_ratio="1") as run:
        await _send_some_bad(run, random.Random(seed))
        report = await run.finish()
        assert report.verdict == "ok"


async def _send_some_bad(run: Run, draw: random.Random) -> None:
    """Send the documents with bad records of all kinds among them, and check that no partition stands still."""
    healthy, others = run.documents[: run.first], run.documents[run.first :]
    run.documents = healthy + _mixed(run, others, BAD, BAD_SHARE, draw)
    warm = len(run.observer.samples)
    async with run.load():
        pass
    await run.drained()
    assert standing_seconds(run.observer.samples[warm:]) <= STANDING_SECONDS


@pytest.mark.long
async def test_f15_bad_records_cost_no_more_than_documents(stage: Stage, seed: int) -> None:
    draw = random.Random(seed)
    async with stage("F15", dead_letter_max_ratio="1") as run:
        turned = run.documents[:TURNED]
        await _send_some_bad(run, draw)
        usual = [bad for bad in BAD if len(bad[1] or b"") <= LARGEST_DOCUMENT_BYTES]  # the cost depends on the size
        seconds = {True: 0.0, False: 0.0}
        # A record costs more with every document in the index, so the order changes.
        for turn, is_mixed in enumerate((True, False, False, True), 1):
            plain = _turned(turned, [turn])
            seconds[is_mixed] += await _seconds(
                run, _mixed(run, plain, usual, MEASURED_SHARE, draw) if is_mixed else plain
            )
        report = await run.finish()
        report.throughput_share = _share(seconds[False], seconds[True])
        assert report.verdict == "ok"
        assert report.throughput_share >= LEAST_SHARE


def _share(plain: float, mixed: float) -> float:
    """Return the throughput of all records where `BAD_SHARE` of them are bad, divided by that of documents alone.

    Both times are of equally many documents, and `MEASURED_SHARE` of the records of `mixed` is bad. The cost of one bad
    record follows from their difference, which is too small to measure where one record of twenty is bad.
    """
    bad = (mixed - plain) / plain * (1 - MEASURED_SHARE) / MEASURED_SHARE
    return 1 / (1 - BAD_SHARE + BAD_SHARE * bad)


def _mixed(
    run: Run, documents: Sequence[ProducerRecord], kinds: Sequence[BadRecord], share: float, draw: random.Random
) -> list[ProducerRecord]:
    """Return the documents mixed with bad records, of all kinds in turn, which are `share` of the whole."""
    mixed = list(documents)
    for number in range(int(len(documents) * share / (1 - share))):
        name, value, headers, _ = kinds[number % len(kinds)]
        bad = ProducerRecord(run.topic, f"{name}-{number}".encode(), value, headers)
        mixed.insert(draw.randrange(len(mixed)), bad)
    return mixed


def _turned(documents: Sequence[ProducerRecord], turns: Iterable[int]) -> list[ProducerRecord]:
    """Return copies of the documents with their alphabet rotated.

    They cost as much as the originals and share no text and no URL with them or with each other. With one URL they
    would be versions of one lineage, of which the index compares only some, and which those are depends on the order.
    """
    found = []
    for turn in turns:
        turned = str.maketrans(ascii_lowercase, ascii_lowercase[turn:] + ascii_lowercase[:turn])
        for sent in documents:
            fields = json.loads(sent.value or b"{}")
            if fields.get("id"):
                fields |= {name: f"{fields[name]}/turn-{turn}" for name in ("id", "url") if name in fields}
                fields["text"] = fields["text"].translate(turned)
                found.append(Sent(fields["id"].encode(), json.dumps(fields).encode()))
    return traced(documents[0].topic, found)


async def _seconds(run: Run, records: Sequence[ProducerRecord]) -> float:
    """Return the workers' processor time for the records, which other load does not change."""
    before = run.processor_seconds()
    await run.deployment.send(records)
    await run.drained()
    return run.processor_seconds() - before


async def test_f21_the_whole_input_again_adds_no_event(stage: Stage, seed: int) -> None:
    """The group is reset and reads all records again, then copies of them in another order.

    Documents with several states are not copied: a copy of an earlier state would be a new one, with events of its own.
    Nor are those without a key, whose copies may be in another partition, before them in the order of the oracle.
    """
    async with stage("F21", most=1000) as run:
        async with run.load():
            pass
        await run.drained()
        before = {event.event_id for event in await run.deployment.events()}
        await run.stop()
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
        report = await run.finish()
        assert report.verdict == "ok"


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
        report = await run.finish()
        assert report.verdict == "ok"
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
        report = await run.finish()
        assert report.verdict == "ok"
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
