"""Dead letters as an operator handles them: counted, shown, sent again."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from schemas.dead_letter import REASON_HEADER, REPLAYS_HEADER, DeadLetter, Payload, Reason, Stage, dead_id, outgoing
from schemas.record import Headers, Outgoing, Record, header
from schemas.topics import DEAD_LETTERS, DOCUMENTS
from tests.integration.deployment import Deployment, deployed, until
from tests.integration.foreign_headers import send_batch
from workers import kafka_tools
from workers.kafka_replay import NOTED_EVERY

DAY_MS = 86_400_000
HEADERS: Headers = [("x", b"1"), ("x", None), ("y", b"\xff")]


async def test_replay_keeps_timestamp_and_key(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        made_ms = round(1000 * time.time()) - 5 * DAY_MS
        (refused,) = await _refused(deployment, [Outgoing("", b"a key", b"{broken", HEADERS, made_ms)])
        assert deployment.run("dlq", "replay", "--dry-run").stderr.endswith(b"would be sent 1, skipped 0\n")
        assert len(await deployment.read(DOCUMENTS.name)) == 1
        done = deployment.run("dlq", "replay")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (0, b"sent 1, skipped 0")
        first, second = await deployment.read(DOCUMENTS.name)
        assert first == refused
        assert second == refused._replace(offset=second.offset, headers=[*HEADERS, (REPLAYS_HEADER, b"1")])


async def test_what_was_replayed_is_not_replayed_again(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        bad = [Outgoing("", b"%d" % number, b"{%d" % number, []) for number in range(8)]
        await _refused(deployment, bad[:4], Reason.NOT_JSON)
        await _refused(deployment, bad[4:6], Reason.INVALID_ID)
        assert _sent(deployment, "--reason", "invalid_id") == (2, 0)
        assert _sent(deployment, "--reason", "invalid_id") == (0, 2)
        await _refused(deployment, bad[6:], Reason.INVALID_ID)
        rows = [json.loads(line) for line in deployment.run("dlq", "list", "--json").stdout.splitlines()]
        assert {row["reason"]: (row["letters"], row["replayed"]) for row in rows} == {
            "not_json": (4, 0),
            "invalid_id": (4, 2),
        }
        assert _sent(deployment) == (6, 2)
        assert _sent(deployment) == (0, 8)
        (again,) = await _refused(deployment, [Outgoing("", b"new", b"{", [])])
        await _write_letters(deployment, [again], Reason.NOT_JSON)  # as a redelivery does
        assert _sent(deployment) == (1, 9)
        assert len(await deployment.read(DOCUMENTS.name)) == 2 * 9


async def test_a_killed_replay_goes_on_where_it_was(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        count = 20 * NOTED_EVERY
        refused = await _refused(deployment, [Outgoing("", b"key", b"{%d" % number, []) for number in range(count)])

        async def half_done() -> bool:
            return len(await deployment.read(DOCUMENTS.name)) > count + 2 * NOTED_EVERY

        with _replaying(deployment) as process:
            await until(half_done, 60)
            assert process.poll() is None
            process.kill()
        sent_before = len(await deployment.read(DOCUMENTS.name)) - count
        sent, skipped = _sent(deployment)
        assert sent + skipped == count
        assert sent_before <= skipped + NOTED_EVERY
        values = [record.value for record in await deployment.read(DOCUMENTS.name)]
        assert set(values[count:]) == {record.value for record in refused}
        assert len(values) <= 2 * count + NOTED_EVERY


async def test_replay_since_a_time_leaves_older_letters_for_later(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        old_ms = round(1000 * time.time()) - DAY_MS
        await _refused(deployment, [Outgoing("", b"old", b"{", [])], written_ms=old_ms)
        await _refused(deployment, [Outgoing("", b"new", b"{", [])])
        assert _sent(deployment, "--since", "12h") == (1, 0)
        assert [record.key for record in await deployment.read(DOCUMENTS.name)].count(b"new") == 2
        assert _sent(deployment) == (1, 1)
        assert [record.key for record in await deployment.read(DOCUMENTS.name)].count(b"old") == 2


@pytest.mark.parametrize("payload", [Payload.HEAD, Payload.HASH])
async def test_the_original_comes_from_its_topic_where_the_letter_has_not_all_of_it(
    kafka: str, redis_url: str, tmp_path: Path, payload: Payload
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        now_ms = round(1000 * time.time())
        bad = [
            Outgoing("", b"one", b"x" * 100_000, HEADERS, now_ms - DAY_MS),
            Outgoing("", b"one", b"", [("nearstream-private", b"1")], now_ms - 1),
            Outgoing("", b"one", None, [], now_ms),
        ]
        refused = await _refused(deployment, bad, payload=payload)
        assert _sent(deployment) == (3, 0)
        again = (await deployment.read(DOCUMENTS.name))[3:]
        expected = [record._replace(headers=[*record.headers, (REPLAYS_HEADER, b"1")]) for record in refused]
        assert _by_time(again) == _by_time(expected)


async def test_an_original_that_is_gone_is_told_and_counted(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        bad = [Outgoing("", b"one", b"{%d" % number, []) for number in range(3)]
        refused = await _refused(deployment, bad, payload=Payload.HASH)
        place = TopicPartition(refused[0].topic, refused[0].partition)
        async with kafka_tools.admin(deployment.settings, 10.0) as client:
            await client.delete_records({place: RecordsToDelete(2)})
        done = deployment.run("dlq", "replay")
        assert done.stderr.splitlines()[-1] == b"sent 1, skipped 2: 2 its topic holds the original no longer"
        assert f"not sent: {place.topic} {place.partition} offset 1: its topic".encode() in done.stderr


async def test_a_record_of_nothing_does_not_stop_the_replay_of_others(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        nothing = Record(deployment.topic(DOCUMENTS), 0, 0, round(1000 * time.time()), None, None, [])
        await send_batch(kafka, [nothing])  # aiokafka's own way refuses it
        await _write_letters(deployment, [nothing], Reason.INVALID_ID)
        await _refused(deployment, [Outgoing("", b"key", b"{", [])])
        assert b"would be sent 1, skipped 1: 1 has neither" in deployment.run("dlq", "replay", "--dry-run").stderr
        done = deployment.run("dlq", "replay")
        assert done.stderr.endswith(b"sent 1, skipped 1: 1 has neither key nor value, which cannot be sent\n")
        assert _sent(deployment) == (0, 2)


async def test_a_record_is_sent_again_three_times_at_most(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        with deployment.worker():
            await deployment.send([Outgoing(topic, b"key", b"not json", [])])
            for replays in range(4):
                await deployment.drained()
                letters = await deployment.letters()
                assert [header(letter.headers, REPLAYS_HEADER) for letter in letters] == [
                    b"%d" % number for number in range(replays + 1)
                ]
                assert _sent(deployment) == (int(replays < 3), replays + int(replays == 3))
        assert len(await deployment.read(DOCUMENTS.name)) == 4


async def test_only_letters_about_our_own_topics_are_sent(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Whoever may write letters must not make an operator write elsewhere."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        elsewhere = [
            Record(deployment.topic(DEAD_LETTERS), 0, 0, 1, b"k", b"v", []),
            Record(topic, 99, 0, 1, b"k", b"v", []),
            Record("another", 0, 0, 1, b"k", b"v", []),
        ]
        await _write_letters(deployment, elsewhere, Reason.NOT_JSON)
        dead_letters = deployment.topic(DEAD_LETTERS)
        await deployment.send([Outgoing(dead_letters, b"k", b"no letter", [("nearstream-dead-id", b"\xff")])])
        done = deployment.run("dlq", "replay")
        assert done.returncode == 0
        assert done.stderr.splitlines()[-1].startswith(b"sent 0, skipped 4: 3 from no topic")
        assert await deployment.read(DOCUMENTS.name) == []


async def test_letters_are_listed_by_reason_and_shown_one_by_one(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        texts = [b"{%d" % number for number in range(5)]
        refused = await _refused(deployment, [Outgoing("", b"\x1b[31m", text, HEADERS) for text in texts])
        await _write_letters(deployment, refused[-1:], Reason.NOT_JSON)
        await _refused(deployment, [Outgoing("", None, b"a\x1b[31m\nb\xff", [])], Reason.INVALID_ID)
        listed = deployment.run("dlq", "list", "--json", "--quiet")
        rows = [json.loads(line) for line in listed.stdout.splitlines()]
        assert [(row["reason"], row["letters"]) for row in rows] == [("not_json", 5), ("invalid_id", 1)]
        assert [place["offset"] for place in rows[0]["places"]] == [4, 3, 2]
        assert listed.stderr == b""
        plain = deployment.run("dlq", "list", "--reason", "invalid_id").stdout.decode().splitlines()
        assert [line.split()[:3] for line in plain] == [["reason", "letters", "replayed"], ["invalid_id", "1", "0"]]
        last = refused[-1]
        shown = deployment.run("dlq", "show", last.topic, str(last.partition), str(last.offset)).stdout.decode()
        assert shown == deployment.run("dlq", "show", dead_id(*last[:3])).stdout.decode()
        assert "reason     not_json, stage decode: JSON expected\n" in shown
        assert "key        \\u001b[31m\n" in shown
        assert "header     x: 1\nheader     x: null\nheader     y: \\xff\n{4\n" in shown
        place = rows[1]["places"][0]
        words = [place["topic"], str(place["partition"]), str(place["offset"])]
        assert deployment.run("dlq", "show", *words).stdout.endswith(b"key        null\na\\u001b[31m\nb\\xff\n")
        assert deployment.run("dlq", "show", *words, "--hex").stdout.endswith(
            b"00000000  61 1b 5b 33 31 6d 0a 62 ff                       a.[31m.b.\n"
        )
        assert deployment.run("dlq", "show", "0" * 32).returncode == 1
        assert deployment.run("dlq", "show", "unknown").returncode == 2


@contextmanager
def _replaying(deployment: Deployment) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "workers", "dlq", "replay", "--quiet"]
    with subprocess.Popen(command, env=deployment.environment) as process:
        yield process


async def _refused(
    deployment: Deployment,
    bad: Sequence[Outgoing],
    reason: Reason = Reason.NOT_JSON,
    payload: Payload = Payload.FULL,
    written_ms: int | None = None,
) -> list[Record]:
    """Records that now stand on `documents`, each with a letter about it."""
    topic = deployment.topic(DOCUMENTS)
    before = {(record.partition, record.offset) for record in await deployment.read(DOCUMENTS.name)}
    await deployment.send([record._replace(topic=topic) for record in bad])
    refused = [
        record for record in await deployment.read(DOCUMENTS.name) if (record.partition, record.offset) not in before
    ]
    await _write_letters(deployment, refused, reason, payload, written_ms)
    return refused


async def _write_letters(
    deployment: Deployment,
    refused: Sequence[Record],
    reason: Reason,
    payload: Payload = Payload.FULL,
    written_ms: int | None = None,
) -> None:
    topic, limit = deployment.topic(DEAD_LETTERS), DEAD_LETTERS.max_message_bytes
    letters = [DeadLetter(record, Stage.DECODE, reason, "JSON expected") for record in refused]
    sent = [outgoing(letter, topic, "nearstream/test sign", payload, limit) for letter in letters]
    assert [header(record.headers, REASON_HEADER) for record in sent] == [reason.encode()] * len(sent)
    await deployment.send([record._replace(timestamp_ms=written_ms) for record in sent])


def _by_time(records: list[Record]) -> list[Record]:
    """Letters without a key stand on several partitions, so their order is not the original one."""
    return sorted((record._replace(offset=0) for record in records), key=lambda record: record.timestamp_ms)


def _sent(deployment: Deployment, *arguments: str) -> tuple[int, int]:
    """Records that `dlq replay` says it sent, skipped."""
    done = deployment.run("dlq", "replay", "--quiet", *arguments)
    assert done.returncode == 0, done.stderr
    words = done.stderr.splitlines()[-1].replace(b",", b" ").replace(b":", b" ").split()
    assert words[0::2][:2] == [b"sent", b"skipped"]
    return int(words[1]), int(words[3])
