"""One party sends signatures without texts, another one asks without adding, and neither shows a document."""

import json
import re
from dataclasses import replace
from pathlib import Path

import aiohttp

from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES
from nearstream.schemas.verdicts.events import Retraction
from nearstream.workers.http.requests import SIGNATURE_TYPE
from nearstream.workers.kafka.partitioning import partition_of
from tests.devstack.server import free_ports
from tests.support.deployment import TEXTS, LocalDeployment, deployed
from tests.support.mail import command, log_says

KEY, OTHER_KEY = "the key that both parties share, 32", "the key of somebody else, 32 bytes."
TOKEN = "-".join(("a", "token", "for", "the", "bank"))
PAGE = (Path(__file__).parents[2] / "docs/double-blind.md").read_text()
(COLLECTION,) = re.findall(rf'echo "{TOKEN} (\S+) \d+ bare"', PAGE)
PLANTED = "the heron waits above the frozen weir"
TEXT = f"{PLANTED} until dusk, and no one but the miller has seen it there this winter. {TEXTS[0]}"
UNRELATED = "Kettles, ladles and copper scales were sold on the second day of the autumn auction in the hall."


Answered = tuple[int, dict[str, object]]


def _documents(deployment: LocalDeployment) -> int:
    found: int = json.loads(deployment.run("stats", "--json").stdout)["documents"]
    return found


async def test_signatures_alone_answer_whether_a_document_is_known(kafka: str, redis_url: str, tmp_path: Path) -> None:
    known, near, other = (tmp_path / name for name in ("known.txt", "near.txt", "other.txt"))
    known.write_text(TEXT)
    near.write_text(TEXT.replace("miller", "ferryman"))
    other.write_text(UNRELATED)
    lines = tmp_path / "lines"
    async with deployed(kafka, redis_url, tmp_path, hash_key=KEY) as deployment:
        # The owner of the documents has the key, and reaches no server.
        home = deployment.changed(kafka="127.0.0.1:1", redis="redis://127.0.0.1:1/0")
        signed = home.run("sign", str(known), str(near), str(tmp_path / "absent.txt"))
        assert (signed.returncode, signed.stdout.count(b"\n")) == (65, 2)
        assert b"absent.txt" in signed.stderr
        lines.write_bytes(signed.stdout)
        first, second = (tmp_path / name for name in ("first", "second"))
        for path, line in zip((first, second), signed.stdout.splitlines(keepends=True), strict=True):
            path.write_bytes(line)

        with deployment.worker():
            sent = deployment.run("produce", "--signatures", str(first), "--quiet")
            assert (sent.returncode, sent.stderr) == (0, b"sent 1, refused 0\n")
            await deployment.drained()
            assert deployment.run("check", str(known), "--bare").stdout == b"yes\n"
            asked = [
                deployment.run("check", *arguments)
                for arguments in ([str(near), "--bare"], ["--signature", str(second), "--bare"], [str(other), "--bare"])
            ]
            assert [(done.returncode, done.stdout, done.stderr) for done in asked] == [
                (0, b"yes\n", b""),
                (0, b"yes\n", b""),
                (1, b"no\n", b""),
            ]
            answer = json.loads(deployment.run("check", "--signature", str(second), "--json").stdout)
            assert (answer["relation"], answer["match"]["id"]) == ("near_duplicate", str(known))
            shown = deployment.run("check", str(near), str(other))
            assert shown.returncode == 0
            assert [line.split()[0] for line in shown.stdout.splitlines()] == [b"near_duplicate", b"unique"]
            assert _documents(deployment) == 1
            await _ask_over_http(deployment, near, other)

            # A second party sends its signature too: the event says what both parties may know.
            assert deployment.run("produce", "--signatures", str(second), "--quiet").returncode == 0
            await deployment.drained()
            assert deployment.run("remove", str(near)).returncode == 0
            await deployment.drained()
            assert _documents(deployment) == 1
        _check_refusals(deployment, known, lines)
        assert await deployment.read(DEAD_LETTERS.name) == []
        for record in await deployment.read(SIGNATURES.name):
            assert record.partition == partition_of(record.key or b"", SIGNATURES.partitions)
            assert record.value is None or record.headers == [("content-type", b"application/msgpack")]
        events = await deployment.events()
        assert {each.document_id for each in events if isinstance(each, Retraction)} == {str(near)}
        (event,) = (each for each in events if not isinstance(each, Retraction))
        assert {event.newer.id, event.older.id} == {str(known), str(near)}
        assert (event.newer.topic, event.newer.offset) == (None, None)
        assert [record.value for record in await deployment.read(DOCUMENTS.name)] == [None]  # the removal
        said = await deployment.read(*(topic.name for topic in (SIGNATURES, *EVENT_TOPICS)))
        assert said
        assert not [record for record in said if PLANTED.split()[2].encode() in (record.value or b"")]


def _check_refusals(deployment: LocalDeployment, text: Path, lines: Path) -> None:
    """Check that a wrong key is told in one line, as an absent one is."""
    other = deployment.changed(hash_key=OTHER_KEY)
    lines.write_bytes(other.run("sign", str(text)).stdout)
    for arguments in (["produce", "--signatures", str(lines), "--quiet"], ["check", "--signature", str(lines)]):
        done = deployment.run(*arguments)
        assert (done.returncode, b"sign with the same NEARSTREAM_HASH_KEY" in done.stderr) == (65, True)
    wrong = other.run("check", str(text), "--bare")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count(b"\n")) == (78, b"", 1)
    away = deployment.changed(redis="redis://127.0.0.1:1/0").run("check", str(text), "--bare", "--timeout", "1")
    assert (away.returncode, away.stdout) == (69, b"")
    without_key = {name: value for name, value in deployment.environment.items() if name != "NEARSTREAM_HASH_KEY"}
    assert b"can test guesses" in replace(deployment, environment=without_key).run("sign", str(text)).stderr


async def _ask_over_http(provider: LocalDeployment, near: Path, other: Path) -> None:
    """Ask the API of the provider with the key that both parties have, and with another one."""
    (port,) = free_ports(1)
    address, given = f"127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
    bank = provider.changed(kafka="127.0.0.1:1", redis="redis://127.0.0.1:1/0")
    lines = bank.run("sign", "--anonymous", str(near), str(other)).stdout.splitlines()
    wrong = bank.changed(hash_key=OTHER_KEY).run("sign", str(near)).stdout
    assert str(near).encode() not in lines[0]
    serving = provider.changed(api=address, api_seconds="60", api_token=f"{TOKEN} {COLLECTION} 1000 bare")
    with command(provider.logs / "api.log", "serve", **serving.given()):
        await log_says(provider.logs / "api.log", f"API: http://{address}")

        async def ask(body: bytes, query: str = "?bare=1", kind: str = SIGNATURE_TYPE) -> Answered:
            headers = {**given, "Content-Type": kind}
            async with session.post(f"/v1/check{query}", data=body, headers=headers) as response:
                return response.status, await response.json()

        async with aiohttp.ClientSession(f"http://{address}") as session:
            assert [await ask(line) for line in lines] == [(200, {"related": True}), (200, {"related": False})]
            for refused in (ask(lines[0], ""), ask(lines[0], "?bare=1&learn=1"), ask(b"text", kind="text/plain")):
                status, answer = await refused
                assert (status, answer["error"]) == (403, "only_bare")
            for path in ("/v1/documents", "/metrics", "/v1/state", "/v1/skip"):
                async with session.get(path, headers=given) as response:
                    assert response.status == 403
            status, answer = await ask(wrong)
            assert (status, answer["error"]) == (400, "invalid_signature")
            names = [json.loads(line)[0].split("-k")[1][:8] for line in (wrong, lines[0])]
            assert all(name in str(answer["detail"]) for name in names)
            assert (await ask(b"[]"))[0] == (await ask(lines[0][:-9]))[0] == 400
