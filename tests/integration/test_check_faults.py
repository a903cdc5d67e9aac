"""Every check is answered in time, whatever Redis does, and the API recovers by itself."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from redis import Redis

from nearstream.workers.http import requests
from nearstream.workers.http.check import AT_ONCE
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.support.api import HASTY_SECONDS, Api, served
from tests.support.deployment import TEXTS, stop, until
from tests.support.forking import started

TEXT = TEXTS[0]
HASTY = {"api_seconds": str(HASTY_SECONDS)}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[LocalServer]:
    with running(redis_server(tmp_path)) as server:
        yield server


@pytest.fixture
async def api(redis: LocalServer) -> AsyncIterator[Api]:
    async with served(f"redis://{redis.address}/0", **HASTY) as running_api:
        await running_api.admit("a", TEXT)
        yield running_api


async def _is_whole(api: Api) -> bool:
    _, answer = await api.ask(TEXT)
    return answer["verdict"] == "near_duplicate" and not answer["degraded"]


@asynccontextmanager
async def _asked_throughout(api: Api, clients: int) -> AsyncIterator[list[tuple[int, dict[str, object]]]]:
    """Ask with some clients at a time during the block, and yield the list of all answers."""
    answers: list[tuple[int, dict[str, object]]] = []
    done = asyncio.Event()

    async def ask() -> None:
        while not done.is_set():
            answers.append(await api.ask(TEXT))

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(ask())
        try:
            yield answers
        finally:
            done.set()


async def test_redis_frozen_or_stopped_amid_requests_delays_none_of_them(api: Api, redis: LocalServer) -> None:
    async with _asked_throughout(api, 16) as answers:
        await until(lambda: _count(answers, degraded=False, at_least=50))
        redis.pause()
        await until(lambda: _count(answers, degraded=True, at_least=50))
        redis.resume()
        whole = sum(not answer["degraded"] for _, answer in answers)
        await until(lambda: _count(answers, degraded=False, at_least=whole + 50))
        degraded = len(answers) - sum(not answer["degraded"] for _, answer in answers)
        await asyncio.to_thread(redis.kill)
        await until(lambda: _count(answers, degraded=True, at_least=degraded + 50))
        assert (await api.get("/readyz"))[0] == 503
        assert (await api.get("/healthz"))[0] == 200
        await asyncio.to_thread(redis.start)
        await until(lambda: _answers(api))
    assert {status for status, _ in answers} == {200}
    assert {answer["verdict"] for _, answer in answers} <= {"near_duplicate", "unknown", "none"}


async def test_requests_above_the_limit_are_429_at_once(api: Api, redis: LocalServer) -> None:
    redis.pause()
    answers = await asyncio.gather(*(api.ask(TEXT) for _ in range(4 * AT_ONCE)))
    redis.resume()
    statuses = [status for status, _ in answers]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= AT_ONCE
    assert all(answer["verdict"] == "unknown" for status, answer in answers if status == 200)
    await until(lambda: _is_whole(api))


async def test_many_large_mails_delay_no_other_answer_for_long(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_SECONDS", 300.0)  # a busy machine takes long to carry all bodies
    mail = b"Content-Transfer-Encoding: base64\r\n\r\n" + b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZn\r\n" * 100_000
    async with _asked_throughout(api, 4) as others:
        await until(lambda: _count(others, degraded=False, at_least=10))
        sent = (api.send("POST", "/v1/check", mail, **{"Content-Type": "message/rfc822"}) for _ in range(12))
        answers = await asyncio.gather(*sent)
        whole = sum(not answer["degraded"] for _, answer in others)
        await until(lambda: _count(others, degraded=False, at_least=whole + 10))
    assert {status for status, _ in answers} <= {200, 429}
    assert {status for status, _ in others} == {200}


async def test_a_user_without_rights_gets_degraded_answers_and_one_line_in_the_log(
    redis: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Redis.from_url(f"redis://{redis.address}/0") as client:
        client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all")
        async with served(f"redis://reader:secret@{redis.address}/0", **HASTY) as api:
            await until(lambda: _answers(api))
            client.execute_command("ACL", "SETUSER", "reader", "-fcall_ro")
            answers = [await api.ask(TEXT) for _ in range(20)]
    assert {answer["verdict"] for _, answer in answers} == {"unknown"}
    assert {answer["reason"] for _, answer in answers} <= {"index_refused", "deadline"}
    lines = [record.message for record in caplog.records if "refuses" in record.message]
    assert len(lines) == 1
    assert "fcall_ro" in lines[0]


async def _count(answers: list[tuple[int, dict[str, object]]], *, degraded: bool, at_least: int) -> bool:
    return sum(answer["degraded"] is degraded for _, answer in answers) >= at_least


async def _answers(api: Api) -> bool:
    """Return whether Redis answers the API again, with what it has kept."""
    _, answer = await api.ask(TEXT)
    return not answer["degraded"] or answer["reason"] == "index_lost"


def _serve(redis_url: str, **settings: str) -> subprocess.Popen[bytes]:
    given = {"redis": redis_url, "namespace": "served", **settings}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    named = {f"NEARSTREAM_{name.upper()}": value for name, value in given.items()}
    command = [sys.executable, "-m", "nearstream", "serve", "--timeout", "2"]
    return started(command, inherited | named, stderr=subprocess.PIPE)


async def test_a_start_that_does_not_fit_is_refused(redis: LocalServer) -> None:
    url = f"redis://{redis.address}/0"
    cases = (
        ({"api": "0.0.0.0:0"}, 78, b"NEARSTREAM_API_TOKEN"),
        ({"api": "203.0.113.9:80", "api_token": "t" * 20}, 78, b"NEARSTREAM_API: cannot listen"),
        ({"redis": "redis://127.0.0.1:1/0"}, 69, b"Redis does not answer"),
        ({"hash_key": "k" * 32}, 78, b"scheme"),
    )
    async with served(url, namespace="served"):
        processes = [_serve(url, **settings) for settings, _, _ in cases]
        for process, (_, code, named) in zip(processes, cases, strict=True):
            _, log = await asyncio.to_thread(process.communicate, timeout=60)
            assert (process.returncode, named in log) == (code, True), log


async def test_a_server_waits_for_its_index_and_serves_until_it_is_stopped(redis: LocalServer, tmp_path: Path) -> None:
    url, (port, other_port), token = f"redis://{redis.address}/0", free_ports(2), tmp_path / "token"
    token.write_text("a-token-of-twenty-characters\n")
    headers = {"Authorization": f"Bearer {token.read_text().strip()}", "Content-Type": "text/plain"}
    process = _serve(url, api=f"127.0.0.1:{port}", api_token_file=str(token))
    without = _serve(url, namespace="never", api=f"127.0.0.1:{other_port}")
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def is_ready(status: int = 200, port: int = port) -> bool:
                with suppress(aiohttp.ClientConnectionError):
                    async with session.get(f"http://127.0.0.1:{port}/readyz") as response:
                        return response.status == status
                return False

            async def asked(**headers: str) -> tuple[int, dict[str, object]]:
                async with session.post("/v1/check", data=TEXT, headers=headers) as response:
                    return response.status, await response.json()

            async def is_found() -> bool:
                return (await asked(**headers))[1].get("verdict") == "near_duplicate"

            await until(lambda: is_ready(503))
            await until(lambda: is_ready(503, other_port))
            status, answer = await asked(**headers)
            assert (status, answer["error"]) == (503, "no_index")
            async with served(url, namespace="served") as filled:
                await filled.admit("a", TEXT)
                await until(is_ready)
                await until(is_found)
                assert (await asked())[0] == 401
        process.send_signal(signal.SIGTERM)
        _, log = await asyncio.to_thread(process.communicate, timeout=60)
    finally:
        stop(process)
        assert stop(without) == 0  # it has never got an index
    assert process.returncode == 0
    assert b"stopped" in log
    assert TEXT.encode() not in log
