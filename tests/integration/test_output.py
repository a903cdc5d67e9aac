"""What every command prints about hostile ids, URLs, keys, headers, files and arguments."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.codec import decode_event, encode_json
from nearstream.schemas.topics.table import DOCUMENTS, VERSIONS
from tests.support.commands import COMMANDS
from tests.support.deployment import TEXTS, LocalDeployment, deployed
from tests.support.forged import FORGED, dangerous

# Without surrogates, which no client can send.
HOSTILE = "".join(text for text in FORGED if not any("\ud800" <= char <= "\udfff" for char in text))
# An id has no control characters.
ID = "id" + "".join(char for char in HOSTILE if ord(char) >= 0xA0)
ARGUMENT = "\x1b]0;title\x07\u2028\u202e"
FILE = "f\x1b[31m\r\n\x9b\u2029\u2066.jsonl"
# Their whole output is a text of ours, or JSON for a program.
FIXED = {("serve",), ("milter",)}


def documents() -> list[dict[str, object]]:
    """Return two documents that differ in id and URL only, and an unreadable one."""
    fields = {"labels": {"title": HOSTILE[:128]}, "lineage": f"of {ID}"}
    return [
        {"id": ID, "text": TEXTS[0], "url": f"https://a.example/{HOSTILE}", **fields},
        {"id": f"{ID}2", "text": TEXTS[0], "url": HOSTILE, **fields},
        {"id": HOSTILE, "text": TEXTS[0]},
    ]


@pytest.fixture(scope="module")
async def hostile(
    kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LocalDeployment]:
    """Yield a deployment that has matched and refused hostile records."""
    logs = tmp_path_factory.mktemp("hostile")
    async with deployed(kafka, redis_url, logs) as deployment:
        topic, raw = deployment.topic(DOCUMENTS), HOSTILE.encode()
        headers: Headers = [(HOSTILE, raw), ("content-type", raw)]
        values = [json.dumps(document).encode() for document in documents()]
        with deployment.worker():
            await deployment.send([ProducerRecord(topic, raw, value, []) for value in values])
            await deployment.send([ProducerRecord(topic, raw, raw, []), ProducerRecord(topic, raw, raw, headers)])
            await deployment.drained()
        (event,) = {event.event_id: event for event in await deployment.events()}.values()
        lying = json.loads(encode_json(event)) | {"low_confidence": [HOSTILE[:64]], "rule": HOSTILE[:64]}
        decode_event(json.dumps(lying).encode())
        events = deployment.topic(VERSIONS)
        unknown = [lying | {"event_id": HOSTILE}, {"type": HOSTILE}]
        foreign = [*(json.dumps(value).encode() for value in (lying, *unknown)), raw]
        await deployment.send([ProducerRecord(events, raw, value, headers) for value in foreign])
        dead_letters = deployment.settings.topic_prefix + "nearstream.dead-letters.v1"
        await deployment.send([ProducerRecord(dead_letters, raw, raw, headers)])
        yield deployment


def arguments(deployment: LocalDeployment, refused: ConsumerRecord, folder: Path) -> Iterator[list[str]]:
    """Yield every command with hostile arguments, each as text and as JSON if it can."""
    path, topic = str(folder / FILE), deployment.topic(DOCUMENTS)
    position = [str(refused.partition), str(refused.offset)]
    for command in (
        ["scan", path],
        ["scan", path, "--all"],
        ["scan", path, "--events"],
        ["settings"],
        ["doctor"],
        ["topics", "check"],
        ["tail", "--from-start", "--until-end"],
        ["lag"],
        ["show", ID],
        ["show", ID, "--members"],
        ["show", ID, f"{ID}2"],
        ["check", path],
        ["check", path, "--novel"],
        ["remove", f"{ID}4"],
        ["stats"],
        ["index", "list"],
        ["dlq", "list"],
        ["dlq", "list", "--each"],
    ):
        yield command
        yield [*command, "--json"]
    for action in ("spam", "ham", "confirm", "revoke"):
        yield ["label", action, ARGUMENT]
    yield ["demo"]
    yield ["backtest", path]
    yield ["scan", str(folder)]
    yield ["compare", path, path]
    yield ["sign", str(folder / ARGUMENT)]
    yield ["produce", path]
    yield ["produce", str(folder / ARGUMENT)]
    yield ["worker", ARGUMENT]
    yield ["rebuild"]
    yield ["show", f"{ID}3"]
    yield ["index", "build"]
    yield ["index", "switch", ARGUMENT]
    yield ["index", "drop", ARGUMENT]
    yield ["dlq", "show", ARGUMENT, "0", "0"]
    yield ["dlq", "show", topic, *position]
    yield ["dlq", "show", topic, *position, "--json"]
    yield ["dlq", "replay", "--dry-run"]
    yield ["dlq", "replay"]
    yield ["dlq", "skip", ARGUMENT, "0", "0"]
    yield ["dlq", "skip", topic, *position]
    yield ["lag", "--timeout", ARGUMENT]
    yield ["tail", "--since", ARGUMENT]
    yield [ARGUMENT]
    yield ["lag", ID, ARGUMENT]


def printed(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Return the lines that a command has written, which end with a newline and nothing else."""
    return (done.stdout + done.stderr).decode().split("\n")


async def test_s16_no_command_prints_what_a_terminal_obeys(hostile: LocalDeployment, tmp_path: Path) -> None:
    folder = tmp_path / f"folder{ARGUMENT}"
    folder.mkdir()
    lines = [json.dumps(document) for document in documents()]
    (folder / FILE).write_text("\n".join([*lines, HOSTILE.replace("\n", "")]))
    refused = next(record for record in await hostile.read(DOCUMENTS.name) if record.value == HOSTILE.encode())
    all_words = list(arguments(hostile, refused, folder))
    with ThreadPoolExecutor(4) as pool:
        all_done = list(pool.map(lambda words: hostile.run(*words), all_words))
    seen = set()
    for words, done in zip(all_words, all_done, strict=True):
        named = [path for path in COMMANDS if list(path) == words[: len(path)] and COMMANDS[path]]
        seen.add(max(named, key=len, default=()))
        told = printed(done)
        assert [(words, line) for line in told if dangerous(line)] == []
        assert (words, done.returncode in (0, 1, 2, 65, 78)) == (words, True)
        assert not any(line.startswith("Traceback") for line in told), told
        if "--json" in words and done.returncode in (0, 1):
            for line in done.stdout.decode().splitlines():
                json.loads(line)
    assert seen - {()} == {path for path, function in COMMANDS.items() if function} - FIXED
    logged = [line for path in hostile.logs.glob("*.log") for line in path.read_text().split("\n")]
    assert len(logged) > 5
    assert [line for line in logged if dangerous(line)] == []


async def test_hostile_values_are_printed_as_json_that_holds_them(hostile: LocalDeployment) -> None:
    tailed = hostile.run("tail", "--from-start", "--until-end", "--json")
    rows = [json.loads(line) for line in tailed.stdout.splitlines()]
    found = [row for row in rows if row["type"] == "exact_duplicate"]
    assert {row["newer"]["id"] for row in found} == {f"{ID}2"}
    assert {row["older"]["url"] for row in found} == {f"https://a.example/{HOSTILE}"}
    assert HOSTILE[:64] in {row["rule"] for row in found}
    assert [row["type"] for row in rows].count("unknown_record") == 3
    told = json.loads(hostile.run("show", ID, "--json").stdout)
    assert told["document_key"] == f"default/{ID}"
    assert told["states"][0]["signature"]["lineage"] == f"of {ID}"
