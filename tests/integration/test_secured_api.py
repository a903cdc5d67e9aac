"""The HTTP API with the rights that its page names, and no others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import aiohttp
import pytest
from redis import Redis

from tests.devstack.server import free_ports
from tests.support.deployment import TEXTS, LocalDeployment, until
from tests.support.mail import command, log_says
from tests.support.secured import Secured, secured_servers

TEXT, OTHER = TEXTS[0], TEXTS[5]
NEAR = TEXT.replace(" the ", " each ", 1)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_servers(tmp_path_factory.mktemp("secured"), ("nearstream", "api")) as servers:
        yield servers


@asynccontextmanager
async def _serving(secured: Secured) -> AsyncIterator[aiohttp.ClientSession]:
    """Run `nearstream serve` as its own user for the block, and yield a client of it."""
    (port,) = free_ports(1)
    redis = secured.redis.settings(user="api")["NEARSTREAM_REDIS"]
    deployment = secured.deployment(
        "api", redis=redis, api=f"127.0.0.1:{port}", api_seconds="60", label_delay_seconds="0"
    )
    log = secured.logs / "api.log"
    with command(log, "serve", "--since", "1h", **deployment.given()):
        await log_says(log, "API: http://")
        await log_says(log, "connected to Kafka")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session


async def _check(session: aiohttp.ClientSession, text: str, **query: str) -> dict[str, object]:
    """Return the answer about a text, which is whole and, if that was asked, learned once Kafka is connected."""
    headers = {"Content-Type": "text/plain", "nearstream-id": "<1@a.example>"}
    async with asyncio.timeout(60):
        while True:
            async with session.post("/v1/check", data=text, params=query, headers=headers) as response:
                assert response.status == 200
                answer: dict[str, object] = await response.json()
            assert not answer["degraded"], answer
            assert answer["learn_reason"] in ("", "kafka_unavailable"), answer
            if answer["learned"] == bool(query):
                return answer


async def _accepted(session: aiohttp.ClientSession, method: str, path: str, **said: object) -> None:
    """Send a change until Kafka has confirmed it."""
    async with asyncio.timeout(60):
        while True:
            async with session.request(method, path, json=said or None) as response:
                if response.status != 503:
                    assert response.status == 202, await response.text()
                    return


async def test_the_documented_rights_suffice_for_all_that_the_server_does(secured: Secured) -> None:
    worker, name = secured.deployment("nearstream"), "<1@a.example>"
    with worker.worker():
        await until(lambda: _has_index(worker))
        async with _serving(secured) as session:
            assert (await _check(session, OTHER))["verdict"] == "none"
            assert (await _check(session, TEXT, learn="1"))["verdict"] == "none"
            await worker.drained()
            assert (await _check(session, NEAR))["verdict"] == "near_duplicate"
            await _accepted(session, "POST", "/v1/label", id=name, label="spam")
            await worker.drained()
            assert (await _check(session, NEAR))["labels"] == {"spam": 1, "ham": 0}
            await until(lambda: _shows(session, name))
            async with session.get(f"/v1/families/{quote(name, safe='')}/members") as response:
                assert (await response.json())["size"] == 1
            async with session.get("/v1/skip", params={"url": "https://a.example/"}) as response:
                assert (await response.json())["reason"] == ""
            async with session.get("/readyz") as response:
                assert response.status == 200
            await _accepted(session, "DELETE", f"/v1/documents/default/{quote(name, safe='')}")
            await worker.drained()
            assert (await _check(session, NEAR))["verdict"] == "none"
    log = (secured.logs / "api.log").read_text()
    assert "permission" not in log


def test_its_user_may_run_nothing_that_writes(secured: Secured) -> None:
    with Redis.from_url(f"redis://{secured.redis.server.address}/0", decode_responses=True) as admin:
        user = admin.acl_getuser("api")
        granted = {name.removeprefix("+") for name in user["commands"] if name.startswith("+")}
        assert not any(_writes(admin, name) for name in granted - {"fcall_ro"})
        assert "permission" in admin.execute_command("ACL DRYRUN", "api", "HGET", "other", "field")


def _writes(admin: Redis, name: str) -> bool:
    """Return whether a command writes."""
    facts = admin.execute_command("COMMAND", "INFO", name)[name.lower()]
    return "write" in facts["flags"]


async def _has_index(worker: LocalDeployment) -> bool:
    """Return whether the worker has made the index."""
    done = await asyncio.to_thread(worker.run, "doctor")
    return b"index     ready" in done.stdout


async def _shows(session: aiohttp.ClientSession, name: str) -> bool:
    """Return whether the live page has a document with its verdict, which came through Kafka, and its states."""
    async with session.get("/v1/document", params={"id": name}) as response:
        shown = await response.json()
    return response.status == 200 and bool(shown["verdict"] and shown["states"])
