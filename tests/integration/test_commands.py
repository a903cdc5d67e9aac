"""Commands against a real Kafka and Redis: what a new user tries, mistakes included."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, SIGNATURES
from tests.integration.deployment import LINES, Deployment, deployed, ids, until
from workers import kafka_tools, kafka_topics

NOWHERE = "127.0.0.1:1"


async def test_doctor_finds_everything_in_order_then_names_the_remedy_of_each_failure(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        well = deployment.run("doctor")
        assert well.returncode == 0
        assert b"FAIL" not in well.stdout
        assert b"is not there yet, the first worker makes it" in well.stdout
        for told in (b"OK    memory    ", b"no record is dated later than now", b"Redis's and this machine's agree"):
            assert told in well.stdout
        with deployment.worker():
            await until(lambda: deployment.logged(" assigned: "), 30)
        assert b"index     ready" in deployment.run("doctor").stdout
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
        await deployment.send([Outgoing(topic, b"k", b"{}", [], round(1000 * time.time()) + 600_000)])
        told = deployment.run("doctor", "--json").stdout.splitlines()
        warned = [check["detail"] for check in map(json.loads, told) if check["grade"] == "WARN"]
        assert any(re.match("a record is dated (59|60). s later than now", detail) for detail in warned)


async def test_a_worker_that_cannot_start_says_why_in_one_line(kafka: str, redis_url: str, tmp_path: Path) -> None:
    cases = [
        ({"NEARSTREAM_KAFKA": NOWHERE}, 69, "no Kafka at 127.0.0.1:1"),
        ({"NEARSTREAM_REDIS": f"redis://{NOWHERE}/0"}, 69, "Redis does not answer"),
        ({"NEARSTREAM_TOPIC_PREFIX": "missing."}, 78, "missing.nearstream.documents.v1 does not exist"),
        ({"NEARSTREAM_BANDS": "many"}, 78, "NEARSTREAM_BANDS: a whole number expected"),
        ({"NEARSTREAM_PROFILE": "production"}, 78, "NEARSTREAM_HASH_KEY"),
        ({"NEARSTREAM_SCHEM": "compact"}, 78, "NEARSTREAM_SCHEM: no such setting"),
    ]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        for changed, code, told in cases:
            done = _with(deployment, **changed).run("worker", "--timeout", "1")
            lines = [line for line in done.stderr.decode().splitlines() if "nearstream: " in line]
            assert (changed, done.returncode) == (changed, code)
            assert len(lines) == 1
            assert told in lines[0]
            assert "Traceback" not in done.stderr.decode()


async def test_another_key_or_scheme_is_refused_or_kept_apart(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            await until(lambda: deployment.logged(" assigned: "), 30)
        other = _with(deployment, NEARSTREAM_HASH_KEY="0123456789abcdef0123456789abcdef").run("doctor")
        assert other.returncode == 1
        assert b"FAIL  index" in other.stdout
        assert b"NEARSTREAM_NAMESPACE to a new name" in other.stdout


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
        assert {json.loads(line)["event_id"] for line in told.stdout.splitlines()} == ids(await deployment.oracle())
        plain = deployment.run("tail", "--from-start", "--until-end").stdout.decode()
        assert len(plain.splitlines()) == len(told.stdout.splitlines())
        assert deployment.run("tail", "--until-end").stdout == b""


async def test_a_recreated_topic_is_refused(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Its first records would have offsets that the index takes for repeats."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        path = tmp_path / "one.jsonl"
        path.write_bytes(LINES[0])
        assert deployment.run("produce", str(path)).returncode == 0
        with deployment.worker():
            await deployment.drained()
        name = deployment.topic(SIGNATURES)
        async with kafka_tools.admin(deployment.settings, 10.0) as client:
            await client.delete_topics([name])
        await until(lambda: _gone(deployment), 20)
        assert deployment.run("topics", "create").returncode == 0
        refused = deployment.run("worker")
        assert refused.returncode == 78
        assert b"the topic was made anew" in refused.stderr


async def _gone(deployment: Deployment) -> bool:
    states = await kafka_topics.topic_states(deployment.settings, 10.0)
    return not next(state.partitions for state in states if state.topic is SIGNATURES)


@pytest.mark.parametrize(
    "command", ["produce", "tail", "topics", "lag", "dlq list", "dlq replay", "dlq skip nearstream.documents.v1 0 0"]
)
def test_without_kafka_a_command_says_so_and_ends(command: str, tmp_path: Path) -> None:
    arguments = [*command.split(), "--timeout", "1"]
    if command == "produce":
        path = tmp_path / "one.jsonl"
        path.write_text('{"text": "a"}')
        arguments.append(str(path))
    environment = {**os.environ, "NEARSTREAM_KAFKA": NOWHERE}
    done = subprocess.run(
        [sys.executable, "-m", "workers", *arguments], env=environment, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 69
    assert done.stderr.decode().startswith("nearstream: no Kafka at 127.0.0.1:1")


def _with(deployment: Deployment, **changed: str) -> Deployment:
    return Deployment(deployment.settings, {**deployment.environment, **changed}, deployment.logs)
