"""Commands that inspect an index, build a second one, and spread it over slots and nodes."""

import asyncio
import json
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.server import LocalServer
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed, until
from tests.support.forking import started

STANDARD = TEXTS[0]


def _address(deployment: LocalDeployment) -> IndexAddress:
    return replace(Deployment.of(deployment.settings).index_address(), beside=True)


def _document(deployment: LocalDeployment, name: str, text: str | None, collection: str = "default") -> ProducerRecord:
    topic = deployment.topic(DOCUMENTS)
    content = {"id": name, "text": text, "collection": collection, "lineage": f"of {name}"}
    headers = [("nearstream-collection", collection.encode())]
    return ProducerRecord(topic, name.encode(), None if text is None else json.dumps(content).encode(), headers)


async def test_show_tells_what_became_of_a_document(kafka: str, redis_url: str, tmp_path: Path) -> None:
    strange = "p\u202e one"
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        lost = deployment.run("show", "a")
        assert lost.returncode == 78
        assert b"in Redis holds no index: check the value" in lost.stderr
        assert b"`nearstream doctor` says whether it is lost or not made yet" in lost.stderr
        listed = deployment.run("index", "list")
        assert (listed.returncode, listed.stdout) == (0, b"")
        assert b"has no index: `nearstream doctor` says whether it is lost" in listed.stderr
        with deployment.worker():
            for text in (STANDARD, STANDARD + " One more sentence that was not there before."):
                await deployment.send([_document(deployment, "a", text)])
                await deployment.drained()
            await deployment.send([_document(deployment, name, STANDARD) for name in ("b", strange, "gone")])
            await deployment.drained()
            await deployment.send([_document(deployment, "gone", None)])
            await deployment.drained()
        with deployment.worker("sign"):
            await deployment.send([_document(deployment, "late", STANDARD)])
            await until(lambda: _signed(deployment, 7))

        told = json.loads(deployment.run("show", "a", "--json").stdout)
        assert (told["document_key"], told["status"], told["reason"]) == ("default/a", "live", "")
        assert [state["status"] for state in told["states"]] == ["live", "replaced"]
        assert [state["signature"]["lineage"] for state in told["states"]] == ["of a", "of a"]
        assert any(pair["sent"] for pair in told["states"][0]["pairs"])
        assert told["states"][0]["signature"]["origin"]["topic"] == deployment.topic(DOCUMENTS)
        kinds = [bucket["kind"] for bucket in told["buckets"]]
        assert kinds.count("band") == 4
        assert {bucket["entries"] for bucket in told["buckets"] if bucket["kind"] == "lineage"} == {2}

        plain = deployment.run("show", strange)
        assert plain.returncode == 0
        assert re.match(r"default/p\\u202e one: live, expires in (30 d|29 d 23 h) ", plain.stdout.decode())
        assert "lineage          of p\\u202e one" in plain.stdout.decode()
        for name, code, standing in (("gone", 0, "removed"), ("late", 0, "waiting"), ("nobody", 1, "unknown")):
            done = deployment.run("show", name)
            assert (done.returncode, done.stdout.decode().splitlines()[0]) == (code, f"default/{name}: {standing}")
        assert deployment.run("show", "a", "--collection", "other").returncode == 1


async def test_stats_tell_how_full_the_index_is(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path, index_documents="2000") as deployment:
        assert deployment.run("stats").returncode == 78
        with deployment.worker():
            await deployment.send([_document(deployment, str(one), STANDARD) for one in range(40)])
            await deployment.drained()
        told = json.loads(deployment.run("stats", "--json", "--internals").stdout)
        assert (told["slot"], told["state"], told["documents"]) == (0, "ready", 40)
        assert sum(told["checkpoints"].values()) + len(told["checkpoints"]) == 40
        assert {each["kind"]: round(each["mean"] * each["chunks"]) for each in told["chunks"]}["registry"] == 40
        assert told["memory_bytes"]["records"] + told["memory_bytes"]["kept"] < 40 * 500  # equal texts are stored once
        whole = json.loads(deployment.run("stats", "--json").stdout)
        assert (whole["documents"], whole["families"], whole["copies"]) == (40, 1, 39)
        assert abs(whole["oldest_ms"] / 1000 - time.time()) < 600
        assert whole["redis_used_bytes"] > whole["memory_bytes"] > 0
        lines = deployment.run("stats", "--internals").stdout.decode().splitlines()
        assert lines[0] == f"{deployment.settings.namespace}, scheme {told['scheme']}: ready"
        assert "documents        40 live" in lines
        nowhere = replace(deployment, environment=deployment.environment | {"NEARSTREAM_REDIS": "redis://127.0.0.1:1"})
        assert nowhere.run("stats").returncode == 69


@pytest.mark.timeout(600)  # four starts of workers, a dozen commands
async def test_a_second_scheme_is_built_beside_switched_to_and_back(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as old, _beside(old, NEARSTREAM_SCHEME="compact") as new:

        async def send(lines: list[bytes]) -> None:
            for each in (old, new):
                await each.send(each.examples(lines))

        with old.worker():
            await send(LINES[:150])
            await old.drained()
            refused = new.run("worker")
            assert (refused.returncode, b"nearstream index build" in refused.stderr) == (78, True)
            with new.worker("sign"):
                await until(lambda: _signed(new, 150))
            await _build_in_two_goes(new, 150)
            assert await new.events() == []
            assert _schemes(old) == {DEFAULT_LABEL: ("active", "ready"), "compact": ("building", "ready")}
            with new.worker():
                await new.drained()
                assert new.run("index", "switch").returncode == 0
                assert _schemes(old) == {DEFAULT_LABEL: ("retired", "ready"), "compact": ("active", "ready")}
                await send(LINES[150:170])
                await new.drained()
            await old.drained()
        refused = old.run("worker")
        assert (refused.returncode, b"is retired" in refused.stderr) == (78, True)
        await send(LINES[170:])
        for each in (old, new):
            assert each.run("index", "switch").returncode == 0
            with each.worker():
                await each.drained()
        for each in (old, new):
            assert await disagreement(each) == {}
            assert await each.letters() == []
        await _drop(old, new)


async def test_what_finds_no_signature_of_its_scheme_says_so(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            await deployment.send([_document(deployment, "a", STANDARD)])
            await deployment.drained()
        other = replace(deployment, environment=deployment.environment | {"NEARSTREAM_SCHEME": "compact"})
        built = other.run("index", "build")
        assert (built.returncode, built.stdout) == (1, b"admitted 0, removed 0, skipped 1\n")
        assert f"{deployment.topic(SIGNATURES)} holds no signature of compact-".encode() in built.stderr


async def _build_in_two_goes(new: LocalDeployment, documents: int) -> None:
    """Build an index that is first refused because of another build, then interrupted and resumed."""
    held = await IndexRebuild.begin(_address(new), partitions=SIGNATURES.partitions)
    refused = new.run("index", "build")
    assert (refused.returncode, b"another rebuild" in refused.stderr) == (1, True)
    await held.close()
    probe = await RedisIndex.open(_address(new), partitions=SIGNATURES.partitions, may_create=False)
    building = started([sys.executable, "-m", "nearstream", "index", "build"], new.environment)
    while not await probe.checkpoints():
        assert building.poll() is None
        await asyncio.sleep(0)
    building.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(building.wait, 60) == Exit.INTERRUPTED
    await probe.close()
    done = new.run("index", "build")
    assert done.returncode == 0, done.stderr
    admitted = int(done.stdout.split()[1].rstrip(b","))
    assert 0 < admitted < documents
    assert done.stdout == f"admitted {admitted}, removed 0, skipped 0\n".encode()
    assert re.search(rb"rebuilt \[####################\] (\d+) of \1 \(100 %\)", done.stderr)


async def _drop(old: LocalDeployment, new: LocalDeployment) -> None:
    names = {line["name"].partition("-")[0]: line["name"] for line in _list(old)}
    active = new.run("index", "drop", names["compact"])
    assert (active.returncode, b"is active" in active.stderr) == (1, True)
    assert new.run("index", "drop", names[DEFAULT_LABEL]).returncode == 0
    assert _schemes(new) == {"compact": ("active", "ready")}
    assert old.run("stats").returncode == 78
    unknown = old.run("index", "switch")
    assert (unknown.returncode, f"no scheme {names[DEFAULT_LABEL]}".encode() in unknown.stderr) == (1, True)


async def test_collections_are_spread_over_slots(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path, index_slots="3") as deployment:
        await _run_over_slots(deployment, 3)
        for slots, told in (("2", "is spread over 3 slots, not 2"), ("7", "expected at most 6")):
            other = deployment.changed(index_slots=slots)
            for command in ("worker", "rebuild"):
                refused = other.run(command)
                assert refused.returncode == 78
                assert b"NEARSTREAM_INDEX_SLOTS" in refused.stderr
                assert told in refused.stderr.decode()
            assert told in other.run("doctor").stdout.decode()
        async with Redis.from_url(redis_url) as client:
            await client.delete(
                *[key async for key in client.scan_iter(f"{{{deployment.settings.namespace}*", count=10_000)]
            )
        done = deployment.run("rebuild", "--quiet")
        assert (done.returncode, done.stdout) == (0, b"admitted 84, removed 0, skipped 0\n")
        with deployment.worker():
            await deployment.send(deployment.examples(LINES[60:90]))
            await deployment.drained()
        assert await disagreement(deployment) == {}


async def test_slots_lie_on_the_nodes_of_a_cluster(kafka: str, nodes: list[LocalServer], tmp_path: Path) -> None:
    url = f"redis+cluster://{nodes[0].address}"
    async with deployed(kafka, url, tmp_path, index_slots="4") as deployment:
        await _run_over_slots(deployment, 4)
        single = replace(
            deployment, environment=deployment.environment | {"NEARSTREAM_REDIS": url.replace("+cluster", "")}
        )
        refused = single.run("worker")
        assert (refused.returncode, b"NEARSTREAM_REDIS: expected redis+cluster://" in refused.stderr) == (78, True)
        assert b"NEARSTREAM_REDIS: expected redis+cluster://" in single.run("doctor").stdout


async def test_a_single_server_is_no_cluster(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url.replace("redis://", "redis+cluster://"), tmp_path) as deployment:
        refused = deployment.run("worker")
        assert (refused.returncode, b"NEARSTREAM_REDIS: expected an address without +cluster" in refused.stderr) == (
            78,
            True,
        )


async def _run_over_slots(deployment: LocalDeployment, slots: int) -> None:
    """Run two workers over several collections, of which one contains the examples."""
    collections = [f"c{one}" for one in range(8)]
    with deployment.worker(), deployment.worker():
        await deployment.send(deployment.examples(LINES[:60]))
        await deployment.send(
            [_document(deployment, f"{one}-{name}", STANDARD, name) for one in range(3) for name in collections]
        )
        await deployment.drained()
    events = await deployment.events()
    assert await disagreement(deployment) == {}
    assert {event.collection for event in events} == {"default", *collections}
    told = [json.loads(line) for line in deployment.run("stats", "--json", "--internals").stdout.splitlines()]
    assert [each["slot"] for each in told] == list(range(slots))
    assert sum(each["documents"] for each in told) == 60 + 24
    assert json.loads(deployment.run("show", "1-c3", "--collection", "c3", "--json").stdout)["status"] == "live"
    assert b"index     ready" in deployment.run("doctor").stdout
    assert [line["index"] for line in _list(deployment)] == ["ready"]


async def _signed(deployment: LocalDeployment, records: int) -> bool:
    return len(await deployment.read(SIGNATURES.name)) >= records


def _list(deployment: LocalDeployment) -> list[dict[str, str]]:
    return [json.loads(line) for line in deployment.run("index", "list", "--json").stdout.splitlines()]


def _schemes(deployment: LocalDeployment) -> dict[str, tuple[str, str]]:
    return {line["name"].partition("-")[0]: (line["state"], line["index"]) for line in _list(deployment)}


@asynccontextmanager
async def _beside(old: LocalDeployment, **changed: str) -> AsyncIterator[LocalDeployment]:
    """Create a second deployment in the namespace, with its own topics and group."""
    own = {
        "NEARSTREAM_GROUP": f"{old.settings.group}-new",
        "NEARSTREAM_TOPIC_PREFIX": f"{old.settings.topic_prefix}new.",
        **changed,
    }
    environment = old.environment | own
    settings = load({name: value for name, value in environment.items() if name.startswith("NEARSTREAM_")})
    new = LocalDeployment(settings, environment, old.logs)
    assert new.run("topics", "create").returncode == 0
    yield new
