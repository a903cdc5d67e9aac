"""Commands against a real Kafka and Redis, as a new user tries them, including mistakes."""

import asyncio
import json
import os
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, EVENT_TOPICS, SIGNATURES
from nearstream.workers.operations.terminal import columns
from tests.support.deployment import LINES, LocalDeployment, deployed, until
from tests.support.forking import finished

NOWHERE = "127.0.0.1:1"


async def test_doctor_finds_everything_in_order_then_names_the_remedy_of_each_failure(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        well = deployment.run("doctor")
        assert well.returncode == 0
        assert b"FAIL" not in well.stdout
        assert b"does not exist yet, the first worker creates it" in well.stdout
        for told in (b"OK    memory    ", b"no record has a timestamp in the future", b"Redis and this machine agree"):
            assert told in well.stdout
        with deployment.worker():
            await until(lambda: deployment.logged(" assigned: "))
        assert b"index     ready" in deployment.run("doctor").stdout
        other = _with(deployment, NEARSTREAM_HASH_KEY="0123456789abcdef0123456789abcdef").run("doctor")
        assert other.returncode == 1
        assert b"FAIL  index" in other.stdout
        assert b"NEARSTREAM_NAMESPACE to a new name" in other.stdout
        no_kafka = _with(deployment, NEARSTREAM_KAFKA=NOWHERE).run("doctor", "--timeout", "1")
        assert no_kafka.returncode == 1
        assert b"FAIL  kafka" in no_kafka.stdout
        assert b"set NEARSTREAM_KAFKA" in no_kafka.stdout
        no_redis = _with(deployment, NEARSTREAM_REDIS=f"redis://{NOWHERE}/0").run("doctor", "--timeout", "1")
        assert no_redis.returncode == 1
        assert b"FAIL  redis" in no_redis.stdout
        no_topics = _with(deployment, NEARSTREAM_TOPIC_PREFIX="missing.").run("doctor")
        assert no_topics.returncode == 1
        assert b"run `nearstream topics create`" in no_topics.stdout
        topic = deployment.settings.topic_prefix + DOCUMENTS.name
        await deployment.send([ProducerRecord(topic, b"k", b"{}", [], round(1000 * time.time()) + 600_000)])
        told = deployment.run("doctor", "--json").stdout.splitlines()
        warned = [check["detail"] for check in map(json.loads, told) if check["grade"] == "WARN"]
        assert any(re.match("a record has a timestamp (59|60). s in the future", detail) for detail in warned)


async def test_a_worker_that_cannot_start_says_why_in_one_line(kafka: str, redis_url: str, tmp_path: Path) -> None:
    cases = [
        ({"NEARSTREAM_REDIS": f"redis://{NOWHERE}/0"}, 69, "Redis does not answer"),
        ({"NEARSTREAM_TOPIC_PREFIX": "missing."}, 78, "missing.nearstream.documents.v1 does not exist"),
        ({"NEARSTREAM_INDEX_SLOTS": "many"}, 78, "NEARSTREAM_INDEX_SLOTS: expected a whole number"),
        ({"NEARSTREAM_PROFILE": "production"}, 78, "NEARSTREAM_HASH_KEY"),
        ({"NEARSTREAM_SCHEM": "compact"}, 78, "NEARSTREAM_SCHEM: no such setting"),
    ]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        away = _with(deployment, NEARSTREAM_KAFKA=NOWHERE).run("worker", "--timeout", "1")
        assert away.returncode == 69
        assert b"cannot connect to Kafka at 127.0.0.1:1" in away.stderr
        for changed, code, told in cases:
            done = _with(deployment, **changed).run("worker", "--timeout", "10")  # in which Kafka answers
            lines = [line for line in done.stderr.decode().splitlines() if "nearstream: " in line]
            assert (changed, done.returncode) == (changed, code)
            assert len(lines) == 1
            assert told in lines[0]
            assert "Traceback" not in done.stderr.decode()


async def test_what_is_produced_can_be_tailed(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        broken = b'{"id": "broken", "text": 5}'
        done = deployment.run("produce", "-", given=b"\n".join([*LINES[:40], broken]))
        assert done.returncode == 65
        assert b"refused standard input:41: invalid_message" in done.stderr
        assert b"sent 40, refused 1" in done.stderr
        with deployment.worker():
            await deployment.drained()
        told = deployment.run("tail", "--from-start", "--until-end", "--json")
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        on_topics = [*await deployment.verdicts(), *await deployment.events()]
        assert sorted(row["event_id"] for row in rows) == sorted(event.event_id for event in on_topics)
        assert {row["id"] for row in rows if row["type"] == "verdict"} == {
            json.loads(line)["id"] for line in LINES[:40]
        }
        detected = [datetime.fromisoformat(row["detected_at"]) for row in rows]
        assert all(timedelta(0) < datetime.now(UTC) - each < timedelta(minutes=5) for each in detected)
        plain = deployment.run("tail", "--from-start", "--until-end").stdout.decode()
        assert len(plain.splitlines()) == len(told.stdout.splitlines())
        assert all(columns(line) <= 120 for line in plain.splitlines())
        assert "\x1b" not in plain
        assert deployment.run("tail", "--until-end").stdout == b""


async def test_tail_chooses_by_type_collection_and_time(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:

        def tailed(*arguments: str) -> list[dict[str, str]]:
            done = deployment.run("tail", "--until-end", "--json", *arguments)
            assert (done.returncode, done.stderr) == (0, b"")
            return [json.loads(line) for line in done.stdout.splitlines()]

        lines = [json.dumps({**json.loads(line), "collection": "other"}).encode() for line in LINES[:30]]
        with deployment.worker():
            await deployment.send(deployment.examples(LINES[:30]))
            await deployment.drained()
            await asyncio.sleep(1.5)  # events are dated by the broker, to the millisecond
            between = datetime.now(UTC)
            removal = ProducerRecord(deployment.topic(DOCUMENTS), json.loads(LINES[0])["id"].encode(), None, [])
            await deployment.send([*deployment.examples(lines), removal])
            await deployment.drained()
        await deployment.send([ProducerRecord(deployment.topic(EVENT_TOPICS[1]), b"k", b'{"type": "\x1b"}', [])])
        everything = tailed("--from-start")
        kinds = Counter(row["type"] for row in everything)
        assert kinds["version"] > 1
        assert (kinds["retraction"], kinds["unknown_record"]) == (1, 1)
        assert len(tailed("--since", "1h")) == len(everything)
        assert tailed("--since", "2100-01-01T00:00Z") == []
        later = tailed("--since", between.isoformat())
        assert {row.get("collection", "other") for row in later if row["type"] != "retraction"} == {"other"}
        assert sorted(map(str, later)) == sorted(
            str(row) for row in everything if row.get("collection") != "default" or row["type"] == "retraction"
        )
        assert {row["type"] for row in tailed("--from-start", "--type", "verdict")} == {"verdict"}
        chosen = tailed("--from-start", "--type", "version", "--type", "retraction")
        assert Counter(row["type"] for row in chosen) == {"version": kinds["version"], "retraction": 1}
        of_other = tailed("--from-start", "--collection", "other")
        assert len(of_other) == sum(row.get("collection") == "other" for row in everything) > 1
        assert {row["collection"] for row in of_other} == {"other"}
        (unknown,) = [row for row in everything if row["type"] == "unknown_record"]
        position = f"{unknown['topic']} {unknown['partition']} offset {unknown['offset']}"
        assert (unknown["topic"], unknown["detected_at"]) == (deployment.topic(EVENT_TOPICS[1]), None)
        plain = deployment.run("tail", "--from-start", "--until-end").stdout.decode()
        assert f"unknown          {position} is no event of this release\n" in plain
        assert deployment.run("tail", "--from-start", "--since", "1h").returncode == 2
        assert deployment.run("tail", "--type", "versions").returncode == 2


async def test_a_recreated_topic_is_refused(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """The index would take the offsets of its first records for repeats."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        path = tmp_path / "one.jsonl"
        path.write_bytes(LINES[0])
        assert deployment.run("produce", str(path)).returncode == 0
        with deployment.worker():
            await deployment.drained()
        await deployment.delete_topics([SIGNATURES])
        assert deployment.run("topics", "create").returncode == 0
        refused = deployment.run("worker")
        assert refused.returncode == 78
        assert b"the topic was created again" in refused.stderr


def test_without_kafka_a_command_says_so_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "a"}')
    environment = {**os.environ, "NEARSTREAM_KAFKA": NOWHERE}
    for command in (f"produce {path}", "tail", "topics", "lag", "dlq list", "dlq replay"):
        done = finished([sys.executable, "-m", "nearstream", *command.split(), "--timeout", "1"], environment)
        assert (command, done.returncode) == (command, 69)
        assert done.stderr.decode().startswith("nearstream: cannot connect to Kafka at 127.0.0.1:1")


def _with(deployment: LocalDeployment, **changed: str) -> LocalDeployment:
    return LocalDeployment(deployment.settings, {**deployment.environment, **changed}, deployment.logs)
