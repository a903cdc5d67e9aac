"""Commands that inspect an index, build a second one, and spread it over slots and nodes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.pipeline.deployment import Deployment
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed, until

STANDARD = TEXTS[0]
KEY = "a secret key of the second scheme"


def _document(deployment: LocalDeployment, name: str, text: str | None, collection: str = "default") -> ProducerRecord:
    topic = deployment.topic(DOCUMENTS)
    content = {"id": name, "text": text, "collection": collection, "lineage": f"of {name}"}
    headers = [("nearstream-collection", collection.encode())]
    return ProducerRecord(topic, name.encode(), None if text is None else json.dumps(content).encode(), headers)


async def test_show_and_stats_tell_what_became_of_documents(kafka: str, redis_url: str, tmp_path: Path) -> None:
    strange = "p\u202e one"
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        for command in (["show", "a"], ["stats"]):
            lost = deployment.run(*command)
            assert lost.returncode == 78
            assert b"in Redis holds no index: check the value" in lost.stderr
        listed = deployment.run("index", "list")
        assert (listed.returncode, listed.stdout) == (0, b"")
        assert b"has no index: `nearstream doctor` says whether it is lost" in listed.stderr
        with deployment.worker():
            for text in (STANDARD, STANDARD + " One more sentence that was not there before."):
                await deployment.send([_document(deployment, "a", text)])
                await deployment.drained()
            copies = [_document(deployment, name, STANDARD) for name in ("b", strange, "gone")]
            await deployment.send([*copies, _document(deployment, "alone", TEXTS[1])])
            await deployment.drained()
            await deployment.send([_document(deployment, "gone", None)])
            await deployment.drained()
        with deployment.worker("sign"):
            await deployment.send([_document(deployment, "late", STANDARD)])
            await until(lambda: _signed(deployment, 8))
        _check_shown(deployment, strange)
        _check_stats(deployment)
        other = deployment.changed(scheme="compact")
        built = other.run("index", "build")
        assert (built.returncode, built.stdout) == (
            1,
            b"admitted 0, removed 1, skipped 6\n",
        )  # the one that waits is not read
        assert f"{deployment.topic(SIGNATURES)} holds no signature of compact-".encode() in built.stderr


def _check_shown(deployment: LocalDeployment, strange: str) -> None:
    told = json.loads(deployment.run("show", "a", "--json").stdout)
    assert (told["document_key"], told["status"], told["reason"]) == ("default/a", "live", "")
    assert [state["status"] for state in told["states"]] == ["live", "replaced"]
    assert [state["signature"]["lineage"] for state in told["states"]] == ["of a", "of a"]
    assert any(pair["sent"] for pair in told["states"][0]["pairs"])
    assert told["states"][0]["signature"]["origin"]["topic"] == deployment.topic(DOCUMENTS)

    plain = deployment.run("show", strange)
    assert plain.returncode == 0
    assert plain.stdout.decode().startswith("document key     default/p\\u202e one\nstatus           live\n")
    assert re.search(r"\n +lineage +of p\\u202e one\n", plain.stdout.decode())
    for name, code, standing in (("gone", 0, "removed"), ("late", 0, "waiting"), ("nobody", 1, "unknown")):
        done = deployment.run("show", name)
        told = [line.split(maxsplit=1)[-1] for line in done.stdout.decode().splitlines()[:2]]
        assert (done.returncode, told) == (code, [f"key     default/{name}", standing])
    assert deployment.run("show", "a", "--collection", "other").returncode == 1


def _check_stats(deployment: LocalDeployment) -> None:
    told = json.loads(deployment.run("stats", "--json").stdout)
    assert (told["documents"], told["families"], told["copies"]) == (4, 1, 2)
    assert (told["used_bytes"] > 0, told["states"]) == (True, ["ready"])
    (family,) = told["top"]
    assert (family["founder"], family["size"], family["joined"]["hour"]) == ("default/a", 3, 3)
    shown = json.loads(deployment.run("show", "b", "--json").stdout)["states"][0]["family"]
    assert (shown["id"], shown["size"]) == (family["id"], 3)
    told_of = {name: deployment.run("show", name).stdout.decode() for name in ("b", "alone")}
    assert re.search(rf"\n +ordinal +{shown['ordinal']}\n", told_of["b"]), told_of
    assert (family["id"] in told_of["b"], "ordinal" in told_of["alone"]) == (True, False), told_of
    lines = deployment.run("stats").stdout.decode().splitlines()
    assert lines[0].startswith(f"{deployment.settings.namespace}, scheme ")
    assert lines[1].startswith("documents        4 live, the oldest observed ")
    assert deployment.changed(redis="redis://127.0.0.1:1").run("stats").returncode == 69


async def test_a_second_key_is_built_beside_under_load_and_switched_to(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as old, _beside(old) as new:
        own = {Deployment.of(each.settings).scheme.name: name for name, each in (("old", old), ("new", new))}
        rest = iter(LINES[60:])

        async def send(lines: list[bytes]) -> None:
            for each in (old, new):
                await each.send(each.examples(lines))

        async def load() -> None:
            for line in rest:
                await send([line])
                await asyncio.sleep(0.1)

        with old.worker():
            await send(LINES[:60])
            await old.drained()
            refused = old.changed(hash_key=KEY).run("worker")
            assert (refused.returncode, b"`nearstream index build`" in refused.stderr) == (78, True)
            refused = new.run("worker")
            assert (refused.returncode, b"nearstream index build" in refused.stderr) == (78, True)
            loading = asyncio.create_task(load())
            with new.worker("sign"):
                await until(lambda: _signed(new, 60))
            built = await asyncio.to_thread(new.run, "index", "build")
            assert (built.returncode, built.stdout.startswith(b"admitted ")) == (0, True)
            assert re.search(rb"rebuilt \[####################\] (\d+) of \1 \(100 %\)", built.stderr)
            assert await new.events() == []
            assert _schemes(old, own) == {"old": ("active", "ready"), "new": ("building", "ready")}
            with new.worker():
                assert (await asyncio.to_thread(new.run, "index", "switch")).returncode == 0
                assert _schemes(old, own) == {"old": ("retired", "ready"), "new": ("active", "ready")}
                await loading
                await new.drained()
            await old.drained()
        refused = old.run("worker")
        assert (refused.returncode, b"is retired" in refused.stderr) == (78, True)
        for each in (old, new):
            assert await disagreement(each) == {}
            assert await each.letters() == []
        await _drop(old, new, own)


async def _drop(old: LocalDeployment, new: LocalDeployment, own: dict[str, str]) -> None:
    former, current = own
    active = new.run("index", "drop", current)
    assert (active.returncode, b"is active" in active.stderr) == (1, True)
    assert new.run("index", "drop", former).returncode == 0
    assert _schemes(new, own) == {"new": ("active", "ready")}
    assert old.run("stats").returncode == 78
    unknown = old.run("index", "switch")
    assert (unknown.returncode, f"no scheme {former}".encode() in unknown.stderr) == (1, True)


async def _signed(deployment: LocalDeployment, records: int) -> bool:
    return len(await deployment.read(SIGNATURES.name)) >= records


def _list(deployment: LocalDeployment) -> list[dict[str, str]]:
    return [json.loads(line) for line in deployment.run("index", "list", "--json").stdout.splitlines()]


def _schemes(deployment: LocalDeployment, own: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {own[line["name"]]: (line["state"], line["index"]) for line in _list(deployment)}


@asynccontextmanager
async def _beside(old: LocalDeployment) -> AsyncIterator[LocalDeployment]:
    """Create a deployment with another key in the namespace, with its own topics and group."""
    group, prefix = f"{old.settings.group}-new", f"{old.settings.topic_prefix}new."
    new = old.changed(hash_key=KEY, group=group, topic_prefix=prefix)
    assert new.run("topics", "create").returncode == 0
    yield new
