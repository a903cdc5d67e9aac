"""Dead letters are counted, shown and replayed as an operator does it."""

import json
import sys
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.dead_letter import (
    REASON_HEADER,
    REPLAYS_HEADER,
    DeadLetter,
    Reason,
    dead_id,
    outgoing,
)
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.operations.replay import COMMIT_EVERY
from nearstream.workers.operations.terminal import printable
from tests.support.deployment import LocalDeployment, deployed
from tests.support.foreign_headers import send_batch
from tests.support.forking import started

DAY_MS = 86_400_000
HEADERS: Headers = [("x", b"1"), ("x", None), ("y", b"\xff")]


async def test_what_was_replayed_is_not_replayed_again(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        bad = [ProducerRecord("", b"%d" % number, b"{%d" % number, []) for number in range(8)]
        await _refused(deployment, bad[:4], Reason.NOT_JSON)
        await _refused(deployment, bad[4:6], Reason.INVALID_ID)
        assert _sent(deployment, "--reason", "invalid_id") == (2, 0)
        await _refused(deployment, bad[6:], Reason.INVALID_ID)
        rows = [json.loads(line) for line in deployment.run("dlq", "list", "--json").stdout.splitlines()]
        assert {row["reason"]: (row["letters"], row["replayed"]) for row in rows} == {
            "not_json": (4, 0),
            "invalid_id": (4, 2),
        }
        assert _sent(deployment, "--reason", "invalid_id") == (2, 2)
        assert _sent(deployment) == (4, 4)
        (again,) = await _refused(deployment, [ProducerRecord("", b"new", b"{", [])])
        await _write_letters(deployment, [again], Reason.NOT_JSON)  # as after a redelivery
        assert _sent(deployment) == (1, 9)
        assert len(await deployment.read(DOCUMENTS.name)) == 2 * 9


async def test_a_killed_replay_goes_on_where_it_was(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        count = 10 * COMMIT_EVERY
        bad = [ProducerRecord("", b"key", b"{%d" % number, []) for number in range(count)]
        refused = await _refused(deployment, bad)
        places = await kafka_offsets.partitions(deployment.settings, [deployment.topic(DOCUMENTS)], 10.0)
        command = [sys.executable, "-m", "nearstream", "dlq", "replay", "--quiet"]
        async with kafka_client.consumer(deployment.settings, 10.0) as reading:

            async def sent_again() -> int:
                return sum((await reading.end_offsets(places)).values()) - count

            with started(command, deployment.environment) as process:
                while await sent_again() < 2 * COMMIT_EVERY:
                    assert process.poll() is None
                process.kill()
            sent_before = await sent_again()
        sent, skipped = _sent(deployment)
        assert sent + skipped == count
        assert sent > 0
        assert sent_before <= skipped + COMMIT_EVERY
        values = [record.value for record in await deployment.read(DOCUMENTS.name)]
        assert set(values[count:]) == {record.value for record in refused}
        assert len(values) <= 2 * count + COMMIT_EVERY


async def test_what_cannot_be_sent_is_told_and_stops_no_other(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        bad = [ProducerRecord("", b"one", b"{%d" % number, []) for number in range(3)]
        refused = await _refused(deployment, bad, payload="hash")
        place = TopicPartition(refused[0].topic, refused[0].partition)
        shown = deployment.run("dlq", "show", place.topic, str(place.partition), str(refused[0].offset))
        name = blake2b(b"one", digest_size=16).hexdigest()
        assert f"\nkey              {name} (blake2b-16 of the original key)\n".encode() in shown.stdout
        async with kafka_client.admin(deployment.settings, 10.0) as client:
            await client.delete_records({place: RecordsToDelete(2)})
        nothing = ConsumerRecord(deployment.topic(DOCUMENTS), 0, 0, round(1000 * time.time()), None, None, [])
        await send_batch(kafka, [nothing])  # aiokafka's own producer refuses it
        # A client that can write dead letters must not make an operator write to another topic.
        elsewhere = [
            ConsumerRecord(deployment.topic(DEAD_LETTERS), 0, 0, 1, b"k", b"v", []),
            ConsumerRecord(place.topic, 99, 0, 1, b"k", b"v", []),
            ConsumerRecord("another", 0, 0, 1, b"k", b"v", []),
        ]
        await _write_letters(deployment, [nothing, *elsewhere], Reason.INVALID_ID)
        topic = deployment.topic(DEAD_LETTERS)
        await deployment.send([ProducerRecord(topic, b"k", b"no letter", [("nearstream-dead-id", b"\xff")])])
        done = deployment.run("dlq", "replay")
        told = done.stderr.decode().splitlines()
        assert told[-1].startswith("sent 1, skipped 7: 3 not from a topic that documents or signatures are read from, ")
        for cause in (
            "2 its topic no longer holds the original",
            "1 has neither key nor value",
            "1 (no dead letter of nearstream)",
        ):
            assert cause in told[-1]
        assert any(line.startswith(f"not sent: {place.topic} {place.partition} offset 1: its topic") for line in told)


async def test_a_record_is_sent_again_three_times_at_most(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        with deployment.worker():
            await deployment.send([ProducerRecord(topic, b"key", b"not json", [(REPLAYS_HEADER, b"2")])])
            for letters, sent in ((1, (1, 0)), (2, (0, 2))):
                await deployment.drained()
                counts = [header(letter.headers, REPLAYS_HEADER) for letter in await deployment.letters()]
                assert counts == [b"2", b"3"][:letters]
                assert _sent(deployment) == sent
        assert len(await deployment.read(DOCUMENTS.name)) == 2


async def test_letters_are_listed_by_reason_and_shown_one_by_one(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        nowhere = ("another\x1b[31m\u2028", "0", "0")
        done = deployment.run("dlq", "show", *nowhere)
        assert (done.returncode, done.stdout) == (1, b"")
        assert printable(" ".join(nowhere)) in done.stderr.decode()
        texts = [b"{%d" % number for number in range(5)]
        refused = await _refused(deployment, [ProducerRecord("", b"\x1b[31m", text, HEADERS) for text in texts])
        await _write_letters(deployment, refused[-1:], Reason.NOT_JSON)
        (other,) = await _refused(deployment, [ProducerRecord("", None, b"a\x1b[31m\nb\xff", [])], Reason.INVALID_ID)
        newest_first = [dead_id(*one[:3]) for one in refused[::-1]]

        listed = deployment.run("dlq", "list", "--json", "--quiet")
        rows = [json.loads(line) for line in listed.stdout.splitlines()]
        assert [(row["reason"], row["letters"]) for row in rows] == [("not_json", 5), ("invalid_id", 1)]
        head, row = deployment.run("dlq", "list", "--reason", "invalid_id").stdout.decode().splitlines()
        assert [head.split()[:3], row.split()[:3]] == [["reason", "letters", "replayed"], ["invalid_id", "1", "0"]]

        place = list(map(str, refused[-1][:3]))
        shown = deployment.run("dlq", "show", *place).stdout.decode()
        assert shown.startswith("reason           not_json\n")
        assert "key              \\u001b[31m\nheader           x: 1\nheader           x: null\n" in shown
        assert shown.endswith("header           y: \\xff\n{4\n")
        name = dead_id(*other[:3])
        told = deployment.run("dlq", "show", *map(str, other[:3])).stdout
        assert told.endswith(b"key              null\na\\u001b[31m\nb\\xff\n")
        whole = json.loads(deployment.run("dlq", "show", *place, "--json").stdout)
        assert (whole["id"], whole["key"], whole["value"]) == (newest_first[0], b"\x1b[31m".hex(), texts[4].hex())
        assert [(each["name"], each["value"]) for each in whole["headers"]] == [("x", "31"), ("x", None), ("y", "ff")]

        foreign = ProducerRecord(deployment.topic(DEAD_LETTERS), b"k", b"no letter\x1b[31m", [("x\x9b", b"\xff")])
        await deployment.send([foreign])
        each = list(map(json.loads, deployment.run("dlq", "list", "--each", "--json").stdout.splitlines()))
        assert {row["id"] for row in each} == {*newest_first, name, None}
        assert len(each) == 7  # the letter that was written again is listed once
        lines = deployment.run("dlq", "list", "--each", "--reason", "invalid_id").stdout.decode().splitlines()
        assert [line.split("  ")[0] for line in lines] == [name]
        assert lines[0].endswith("  invalid_id: JSON expected")
        assert deployment.run("dlq", "list", "--each", "--since", "1s", "--reason", "too_large").stdout == b""


async def _refused(
    deployment: LocalDeployment,
    bad: Sequence[ProducerRecord],
    reason: Reason = Reason.NOT_JSON,
    payload: str = "full",
) -> list[ConsumerRecord]:
    """Send records to `documents`, write a dead letter about each, and return them."""
    topic = deployment.topic(DOCUMENTS)
    before = {(record.partition, record.offset) for record in await deployment.read(DOCUMENTS.name)}
    await deployment.send([record._replace(topic=topic) for record in bad])
    refused = [
        record for record in await deployment.read(DOCUMENTS.name) if (record.partition, record.offset) not in before
    ]
    await _write_letters(deployment, refused, reason, payload)
    return refused


async def _write_letters(
    deployment: LocalDeployment,
    refused: Sequence[ConsumerRecord],
    reason: Reason,
    payload: str = "full",
) -> None:
    topic, limit = deployment.topic(DEAD_LETTERS), DEAD_LETTERS.max_message_bytes
    letters = [DeadLetter(record, "decode", reason, "JSON expected") for record in refused]
    sent = [outgoing(letter, topic, "nearstream/test sign", payload, limit) for letter in letters]
    assert [header(record.headers, REASON_HEADER) for record in sent] == [reason.encode()] * len(sent)
    await deployment.send(sent)


def _sent(deployment: LocalDeployment, *arguments: str) -> tuple[int, int]:
    """Run `dlq replay` and return how many records it sent and skipped."""
    done = deployment.run("dlq", "replay", "--quiet", *arguments)
    assert done.returncode == 0, done.stderr
    words = done.stderr.splitlines()[-1].replace(b",", b" ").replace(b":", b" ").split()
    assert words[0::2][:2] == [b"sent", b"skipped"]
    return int(words[1]), int(words[3])
