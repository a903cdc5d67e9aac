"""Input that is bad, alike without end, made to collide, or comes again."""

import asyncio
import json
import random
import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import MessageSizeTooLargeError

from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, SIGNATURES
from tests.fault.conftest import Stage
from tests.fault.corpus import corpus
from tests.fault.observer import standing_seconds
from tests.fault.reading import text
from tests.fault.runner import Run
from tests.integration.bad_input import BAD, BadRecord
from tests.integration.deployment import Deployment, deployed, until
from workers import assembly, kafka_offsets
from workers.app import SIGN_BATCH
from workers.exits import Exit
from workers.settings import load

BAD_SHARE = 0.05
TURNED = 600  # documents, of which a throughput is measured; 24 times
LARGEST_DOCUMENT_BYTES = 100_000  # of the healthy ones
MEBIBYTE = 1024 * 1024


async def test_f15_bad_records_hold_nobody_up(stage: Stage, seed: int) -> None:
    draw = random.Random(seed)
    async with stage("F15") as run:
        healthy, others = run.documents[: run.first], run.documents[run.first :]
        run.documents = healthy + _mixed(run, others, BAD, draw)
        warm = len(run.observer.samples)
        async with run.load():
            pass
        await run.drained()
        assert standing_seconds(run.observer.samples[warm:]) <= 2
        usual = [bad for bad in BAD if len(bad[1] or b"") <= LARGEST_DOCUMENT_BYTES]  # what a record costs is its bytes
        turned = healthy[:TURNED]
        plain, mixed = [], []
        for turn in range(1, 25, 8):  # they take turns, as rates change with time
            plain.append(await _seconds_a_record(run, _turned(turned, range(turn, turn + 4))))
            others = _turned(turned, range(turn + 4, turn + 8))
            mixed.append(await _seconds_a_record(run, _mixed(run, others, usual, draw)))
        report = await run.finish()
        report.throughput_share = sum(plain) / sum(mixed)
        assert report.verdict == "ok"
        assert report.throughput_share >= 0.95


def _mixed(run: Run, documents: Sequence[Outgoing], kinds: Sequence[BadRecord], draw: random.Random) -> list[Outgoing]:
    """The documents with one bad record among twenty, of all kinds in turn."""
    mixed = list(documents)
    for number in range(int(len(documents) * BAD_SHARE / (1 - BAD_SHARE))):
        name, value, headers, _ = kinds[number % len(kinds)]
        bad = Outgoing(run.topic, f"{name}-{number}".encode(), value, headers)
        mixed.insert(draw.randrange(len(mixed)), bad)
    return mixed


def _turned(documents: Sequence[Outgoing], turns: Iterable[int]) -> list[Outgoing]:
    """Documents, the same each time, but for their letters, so that they cost the same and meet none of the others."""
    found = []
    for turn in turns:
        turned = str.maketrans(ascii_lowercase, ascii_lowercase[turn:] + ascii_lowercase[:turn])
        for sent in documents:
            fields = json.loads(sent.value or b"")
            if fields.get("id"):
                fields |= {"id": f"{turn}-{fields['id']}", "text": fields["text"].translate(turned)}
                found.append(Outgoing(sent.topic, fields["id"].encode(), json.dumps(fields).encode(), []))
    return found


async def _seconds_a_record(run: Run, records: Sequence[Outgoing]) -> float:
    """On a processor of the workers' own, whatever else this machine does."""
    before = run.processor_seconds()
    await run.deployment.send(records)
    await run.drained()
    return (run.processor_seconds() - before) / len(records)


async def test_f21_the_whole_input_again_adds_no_event(stage: Stage, seed: int) -> None:
    """First the same records, because the group was reset; then copies of them in another order."""
    async with stage("F21", most=1000) as run:
        async with run.load():
            pass
        await run.drained()
        before = {event.event_id for event in await run.deployment.events()}
        await run.stop()
        await _reset(run.deployment)
        run.observer.samples.clear()
        run.start()
        await run.drained()
        copies = [
            Outgoing(run.topic, record.key, record.value, record.headers, record.timestamp_ms)
            for record in await run.deployment.read(DOCUMENTS.name)
        ]
        random.Random(seed).shuffle(copies)
        await run.deployment.send(copies)
        await run.drained()
        assert {event.event_id for event in await run.deployment.events()} == before
        report = await run.finish()
        assert report.verdict == "ok"


async def _reset(deployment: Deployment) -> None:
    """The group begins with the oldest document again."""
    settings = deployment.settings
    places = await kafka_offsets.partitions(settings, [settings.topic_prefix + DOCUMENTS.name], 10.0)
    client = AIOKafkaConsumer(bootstrap_servers=settings.kafka, group_id=settings.group, enable_auto_commit=False)
    await client.start()
    try:
        client.assign(places)
        await client.commit(dict.fromkeys(places, 0))
    finally:
        await client.stop()


@pytest.mark.parametrize(("percent", "most"), [(100, 100), (99, 200 + SIGN_BATCH)])
async def test_f31_input_that_is_nearly_all_bad_is_not_drained(
    kafka: str, redis_url: str, tmp_path: Path, percent: int, most: int
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.settings.topic_prefix + DOCUMENTS.name
        records = [
            Outgoing(topic, str(number).encode(), b"bad" if number % 100 < percent else b'{"text": "good"}', [])
            for number in range(1000)
        ]
        await deployment.send(records)
        with deployment.worker() as worker:
            await until(lambda: _holds(tmp_path), 60)
            letters = len(await deployment.letters())
            assert letters <= most
            await asyncio.sleep(2)
            assert len(await deployment.letters()) == letters
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, 20) == Exit.UNREADABLE


async def _holds(logs: Path) -> bool:
    """Whether a log says so, and why: the first batch alone may break a limit, then there is no letter to read."""
    said = await asyncio.to_thread(lambda: "".join(log.read_text() for log in logs.glob("*.log")))
    return bool(re.search(r" hold, .*not_json", said))


async def test_f23_another_key_or_other_bands_are_refused_at_the_start(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            await until(lambda: _assigned(tmp_path), 60)
        for variable, value in (
            ("NEARSTREAM_HASH_KEY", "another key, of thirty-two bytes"),
            ("NEARSTREAM_BANDS", "20"),
        ):
            given = {name: text for name, text in deployment.environment.items() if name.startswith("NEARSTREAM_")}
            settings = load(given | {variable: value})
            changed = Deployment(settings, deployment.environment | {variable: value}, tmp_path)
            done = await asyncio.to_thread(changed.run, "worker")
            assert done.returncode == Exit.MISCONFIGURED
            for each in (deployment, changed):
                assert _scheme(each) in done.stderr.decode()


def _scheme(deployment: Deployment) -> str:
    return assembly.scheme(deployment.settings, assembly.hash_key(deployment.settings)).name


async def _assigned(logs: Path) -> bool:
    return await asyncio.to_thread(lambda: any(" assigned: " in log.read_text() for log in logs.glob("*.log")))


@pytest.mark.long
async def test_f16_large_documents_are_signed_or_refused_and_memory_is_bounded(stage: Stage) -> None:
    async with stage("F16", most=200) as run:
        before, draw = run.rebalances(), random.Random(16)
        for mebibytes in (1, 4):
            size = mebibytes * MEBIBYTE - 1_000
            large = [{"id": f"{mebibytes}-{turn}", "text": draw.randbytes(size // 2).hex()} for turn in range(10)]
            for fields in large:
                await run.deployment.send([Outgoing(run.topic, None, json.dumps(fields).encode(), [])])
        with pytest.raises(MessageSizeTooLargeError):
            await run.deployment.send([Outgoing(run.topic, None, b"x" * 16 * MEBIBYTE, [])])
        await run.drained()
        assert run.rebalances() == before
        report = await run.finish()
        assert report.verdict == "ok"
        assert len(await run.deployment.letters()) == 10


@pytest.mark.long
async def test_f37_two_schemes_on_one_set_of_topics_do_not_meet(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Each signs everything, and refuses the signatures of the other."""
    limits = {"dead_letter_max_ratio": "0", "dead_letter_max_consecutive": "0"}
    async with deployed(kafka, redis_url, tmp_path, **limits) as one:
        changed = {
            "NEARSTREAM_SCHEME": "compact",
            "NEARSTREAM_GROUP": f"{one.settings.group}-compact",
            "NEARSTREAM_NAMESPACE": f"{one.settings.namespace}-compact",
        }
        given = {name: text for name, text in one.environment.items() if name.startswith("NEARSTREAM_")}
        other = Deployment(load(given | changed), one.environment | changed, tmp_path)
        topic = one.settings.topic_prefix + DOCUMENTS.name
        with one.worker(), other.worker():
            await one.send([Outgoing(topic, *sent, []) for sent in corpus(200, 37)])
            for each in (one, other):
                await each.drained()
        told = {event.event_id for event in await one.events()}
        apart = [{event.event_id for event in await each.oracle()} for each in (one, other)]
        assert told == apart[0] | apart[1]
        assert not apart[0] & apart[1]
        letters = await one.letters()
        assert {text(letter, "nearstream-dead-reason") for letter in letters} == {"other_scheme"}
        assert len(letters) == len(await one.read(SIGNATURES.name))
