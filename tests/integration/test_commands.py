"""Commands against a real Kafka and Redis, as a new user tries them, including mistakes."""

import asyncio
import gzip
import json
import os
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, EVENT_TOPICS, SIGNATURES
from nearstream.workers.files.content import zstd
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed, ids, until
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
        for changed, seconds, told, remedy in (
            ({"hash_key": 2 * "0123456789abcdef"}, "10", b"FAIL  index", b"NEARSTREAM_NAMESPACE to a new name"),
            ({"kafka": NOWHERE}, "1", b"FAIL  kafka", b"set NEARSTREAM_KAFKA"),
            ({"redis": f"redis://{NOWHERE}/0"}, "1", b"FAIL  redis", b"set NEARSTREAM_REDIS"),
            ({"topic_prefix": "missing."}, "10", b"FAIL  topic", b"run `nearstream topics create`"),
        ):
            done = deployment.changed(**changed).run("doctor", "--timeout", seconds)
            assert (done.returncode, told in done.stdout, remedy in done.stdout) == (1, True, True), done.stdout
        topic = deployment.settings.topic_prefix + DOCUMENTS.name
        await deployment.send([ProducerRecord(topic, b"k", b"{}", [], round(1000 * time.time()) + 600_000)])
        told = deployment.run("doctor", "--json").stdout.splitlines()
        warned = [check["detail"] for check in map(json.loads, told) if check["grade"] == "WARN"]
        assert any(re.match("a record has a timestamp (59|60). s in the future", detail) for detail in warned)


async def test_b40_what_is_produced_is_matched_and_can_be_tailed(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:

        def tailed(*arguments: str) -> list[dict[str, str]]:
            done = deployment.run("tail", "--until-end", "--json", *arguments)
            assert (done.returncode, done.stderr) == (0, b"")
            return [json.loads(line) for line in done.stdout.splitlines()]

        broken = b'{"id": "broken", "text": 5}'
        done = deployment.run("produce", "-", given=b"\n".join([*LINES[:30], broken]))
        assert done.returncode == 65
        assert b"refused standard input:31: invalid_message" in done.stderr
        assert b"sent 30, refused 1" in done.stderr
        _produce_files(deployment, tmp_path / "files")
        lines = [json.dumps({**json.loads(line), "collection": "other"}).encode() for line in LINES[:30]]
        with deployment.worker():
            await deployment.drained()
            await asyncio.sleep(1.5)  # events are dated by the broker, to the millisecond
            between = datetime.now(UTC)
            removal = ProducerRecord(deployment.topic(DOCUMENTS), json.loads(LINES[0])["id"].encode(), None, [])
            await deployment.send([*deployment.examples(lines), removal])
            await deployment.drained()
        of_files = {"element", *(f"{tmp_path}/files/{name}" for name in ("c.json", "d.txt", "e.html"))}
        assert of_files <= await deployment.named()
        everything = tailed("--from-start")
        on_topics = [*await deployment.verdicts(), *await deployment.events()]
        assert {row["event_id"] for row in everything} == ids(on_topics)
        kinds = Counter(row["type"] for row in everything)
        assert (kinds["verdict"], kinds["retraction"], kinds["version"] > 1) == (74, 1, True)
        assert len(tailed("--since", "1h")) == len(everything)
        assert tailed() == tailed("--since", "2100-01-01T00:00Z") == []
        later = tailed("--since", between.isoformat())
        is_later = [row["type"] == "retraction" or row["collection"] == "other" for row in everything]
        assert sorted(map(str, later)) == sorted(
            str(row) for row, late in zip(everything, is_later, strict=True) if late
        )
        chosen = tailed("--from-start", "--type", "version", "--type", "retraction")
        assert Counter(row["type"] for row in chosen) == {"version": kinds["version"], "retraction": 1}
        of_other = tailed("--from-start", "--collection", "other")
        assert len(of_other) == sum(row["collection"] == "other" for row in everything) > 1
        assert {row["collection"] for row in of_other} == {"other"}

        topic = deployment.topic(EVENT_TOPICS[1])
        await deployment.send([ProducerRecord(topic, b"k", b'{"type": "\x1b"}', [])])
        plain = deployment.run("tail", "--from-start", "--until-end").stdout.decode()
        assert re.search(rf"unknown          {topic} \d+ offset \d+ is no event of this release\n", plain)
        assert len(plain.splitlines()) == len(everything) + 1
        assert "\x1b" not in plain
        for wrong in (("--from-start", "--since", "1h"), ("--type", "versions")):
            assert deployment.run("tail", *wrong).returncode == 2

        # The index would take the offsets of the first records of a topic that was made anew for repeats.
        await deployment.delete_topics([SIGNATURES])
        assert deployment.run("topics", "create").returncode == 0
        refused = deployment.run("worker")
        assert (refused.returncode, b"the topic was created again" in refused.stderr) == (78, True)


def _produce_files(deployment: LocalDeployment, folder: Path) -> None:
    """Send files of every kind, and check that those which cannot be sent are refused."""
    lines = b"".join(b'{"id": "line-%d", "text": %s}\n' % (n, json.dumps(TEXTS[n]).encode()) for n in range(5))
    contents = {
        "a.jsonl.gz": gzip.compress(lines),
        "b.json.zst": zstd.compress(json.dumps([{"id": "element", "text": TEXTS[0]}]).encode()),
        "c.json": json.dumps({"text": TEXTS[1]}, indent=1).encode(),
        "d.txt": TEXTS[2].encode("utf-16"),
        "e.html": b"<html>" + TEXTS[3].encode(),
        "f.bin": bytes(range(256)),
        "g.jsonl.gz": gzip.compress(lines)[:-1],
        "h.jsonl": json.dumps({"id": "large", "text": "x" * 5_000_000}).encode(),
    }
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    done = deployment.run("produce", str(folder), "--quiet")
    refused = [line for line in done.stderr.decode().splitlines() if line.startswith("refused ")]
    expected = [f"refused {folder}/{place}" for place in ("f.bin", "g.jsonl.gz", "h.jsonl:1")]
    assert [line.split(": ")[0] for line in refused] == expected
    assert "too_large" in refused[-1]
    assert (done.returncode, b"sent 14, refused 3" in done.stderr) == (65, True)


def test_without_kafka_a_command_says_so_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "a"}')
    environment = {**os.environ, "NEARSTREAM_KAFKA": NOWHERE}
    for command in (f"produce {path}", "tail", "topics", "lag", "dlq list", "dlq replay", "worker"):
        done = finished([sys.executable, "-m", "nearstream", *command.split(), "--timeout", "1"], environment)
        assert (command, done.returncode) == (command, 69)
        assert done.stderr.decode().startswith("nearstream: cannot connect to Kafka at 127.0.0.1:1")
