"""A server over a file is killed while it learns, and has lost nothing that it answered."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import aiohttp

from nearstream.streams.matching.family import families_of
from nearstream.streams.signing.scheme import preset
from nearstream.workers.sqlite.file import IndexFile, open_store
from tests.devstack.server import free_ports
from tests.support.made_up import KEY, words

AT_ONCE = asyncio.Semaphore(32)
TEXTS = {f"d{number}": " ".join(words(number % 60, 120)) for number in range(180)}


async def test_what_was_answered_is_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    path, draw, learned = tmp_path / "index.db", Random(seed), set[str]()
    for _ in range(3):
        waiting = sorted(TEXTS.keys() - learned)
        async with _serving(path) as (process, session):
            for name in learned:
                assert (await session.get(f"/v1/families/{name}/members")).status == 200
            sending = [asyncio.create_task(_learn(session, name, learned)) for name in waiting]
            most = len(learned) + draw.randrange(1, 50)
            async with asyncio.timeout(60):
                while len(learned) < most:
                    await asyncio.sleep(0.001)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.gather(*sending, return_exceptions=True)
    async with _serving(path) as (process, session):
        await asyncio.gather(*(_learn(session, name, learned) for name in TEXTS))
        process.terminate()
        assert process.wait(20) == 0
    assert learned == TEXTS.keys()
    with open_store(path, preset("fine", KEY).name) as index:
        assert await _sizes(index) == [3] * 60


async def test_a_server_that_starts_again_knows_pages_labels_and_families(tmp_path: Path) -> None:
    path, page = tmp_path / "index.db", {"id": "p", "url": "https://a.example/p", "text": " ".join(words(1, 150))}
    copy, answers = {"id": "c", "collection": "default", "text": page["text"]}, []
    async with _serving(path) as (process, session):
        for document in (page, copy):
            assert (await _post(session, "/v1/check?learn=1", document))["learned"]
        assert (await _post(session, "/v1/label", {"id": "c", "label": "spam"})) == {"accepted": True}
        answers.append(await _asked(session))
        process.kill()
    async with _serving(path) as (_, session):
        async with asyncio.timeout(30):
            while not (due := await _get(session, "/v1/due?host=a.example"))["pages"]:
                await asyncio.sleep(0.05)
        answers.append(await _asked(session))
        assert (await session.delete("/v1/documents/default/c")).status == 202
        async with session.get("/v1/families/c/members") as answer:
            assert answer.status == 404
    skip, members, live = answers[0]
    assert answers[1][:2] == [skip, members]
    assert (skip["because"], [each["lineage"] for each in due["pages"]]) == ("first", [page["url"]])
    assert ([each["id"] for each in members["members"]], members["labels"][0]["id"]) == (["p", "c"], "c")
    assert (live["source"], live["totals"]["verdict"], live["troubles"]) == ("file", 2, [])


async def test_a_full_disk_is_said_until_there_is_room_again(tmp_path: Path) -> None:
    async with _serving(tmp_path / "index.db") as (process, session):
        learn = partial(_post, session, "/v1/check?learn=1")
        assert (await learn({"id": "d0", "text": TEXTS["d0"]}))["learned"]
        written = max(each.stat().st_size for each in tmp_path.iterdir())  # noqa: ASYNC240 - it is at once
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (written, resource.RLIM_INFINITY))
        assert (await learn({"id": "d1", "text": TEXTS["d1"]}))["learn_reason"] == "index_unavailable"
        assert "index.db: nothing was stored: " in (await _get(session, "/v1/live"))["why"]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert (await learn({"id": "d1", "text": TEXTS["d1"]}))["learned"]
        assert (await _get(session, "/v1/live"))["why"] == ""
        assert len((await _get(session, "/v1/families/d0/members"))["members"]) == 1


async def _asked(session: aiohttp.ClientSession) -> list[Any]:
    return [
        await _get(session, path) for path in ("/v1/skip?url=https://a.example/p", "/v1/families/p/members", "/v1/live")
    ]


async def _get(session: aiohttp.ClientSession, path: str) -> Any:  # noqa: ANN401 - JSON
    async with session.get(path) as answer:
        return await answer.json()


async def _post(session: aiohttp.ClientSession, path: str, what: object) -> Any:  # noqa: ANN401 - JSON
    async with session.post(path, json=what) as answer:
        return await answer.json()


async def _sizes(index: IndexFile) -> list[int]:
    return sorted(family.size for family in await families_of(index.store, index.founders()))


async def _learn(session: aiohttp.ClientSession, name: str, learned: set[str]) -> None:
    async with AT_ONCE, session.post("/v1/check?learn=1", json={"id": name, "text": TEXTS[name]}) as answer:
        if answer.status == 200 and (await answer.json())["learned"]:
            learned.add(name)


@asynccontextmanager
async def _serving(path: Path) -> AsyncIterator[tuple[subprocess.Popen[bytes], aiohttp.ClientSession]]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "nearstream", "serve", "--index", str(path)]
    settings = {"NEARSTREAM_API": f"127.0.0.1:{port}", "NEARSTREAM_API_SECONDS": "5"}
    with subprocess.Popen(command, env=os.environ | settings) as process:  # noqa: ASYNC220 - it starts at once
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session, asyncio.timeout(60):
                while not await _is_ready(session):
                    await asyncio.sleep(0.02)
                yield process, session
        finally:
            process.kill()


async def _is_ready(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get("/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False
