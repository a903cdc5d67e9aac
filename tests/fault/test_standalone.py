"""A server over a file is killed while it learns, and has lost nothing that it answered."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

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
