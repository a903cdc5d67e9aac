"""Clients that stall keep nobody else out, and their bodies share one bound of memory."""

import asyncio
from collections import Counter
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import aiohttp
import pytest

from nearstream.workers.http import application, requests
from nearstream.workers.http.application import HEAD_BYTES
from nearstream.workers.http.requests import FOR_SHORT_BYTES, SHORT_BYTES
from nearstream.workers.mail.message import MEMORY_BYTES, Memory
from tests.support.api import Api, served
from tests.support.deployment import until

BODY_BYTES = 15 * 1024 * 1024
HEAD = (
    "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: message/rfc822\r\n"
    f"Content-Length: {BODY_BYTES}\r\n\r\n"
)


async def connected(api: Api, held: ExitStack) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = api.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    held.callback(writer.transport.abort)
    return reader, writer


async def test_stalled_bodies_share_a_bound(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The time for bodies runs out when the server has read all that it takes, however long that is.

    Who is thrown out for that is no error in the log.
    """
    memory, deadlines, stalling = Memory(), list[asyncio.Timeout](), Counter[str]()

    def without_end(_: float) -> asyncio.Timeout:
        deadlines.append(asyncio.timeout(None))
        return deadlines[-1]

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Send a body but for its last byte, and return the status of the answer."""
        stalling["clients"] += 1
        try:
            writer.write(HEAD.encode() + b"\n" * (BODY_BYTES - 1))
            await writer.drain()
            return (await reader.readline()).split()[1]
        except (ConnectionError, IndexError):
            return b"429"  # the server closed before it had read all
        finally:
            stalling["clients"] -= 1

    async def all_is_read() -> bool:
        return 0 < stalling["clients"] * (BODY_BYTES - 1) == MEMORY_BYTES - memory.left

    monkeypatch.setattr(application, "Memory", lambda: memory)
    monkeypatch.setattr(requests, "asyncio", SimpleNamespace(timeout=without_end))
    with ExitStack() as held:
        async with served(redis_url) as api:
            clients = [await connected(api, held) for _ in range(24)]
            answers = asyncio.gather(*(stall(*each) for each in clients))
            await until(all_is_read)
            for each in deadlines:
                with suppress(RuntimeError):  # a request that was refused has ended
                    each.reschedule(0.0)
            statuses = await answers
            assert set(statuses) == {b"408", b"429"}
            assert 1 <= statuses.count(b"408") <= MEMORY_BYTES // BODY_BYTES
            status, _ = await api.ask("a few words " * 20)  # all of it was given back
            assert status == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_large_bodies_leave_memory_to_short_ones(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "Memory", lambda: Memory(left=FOR_SHORT_BYTES + SHORT_BYTES))
    async with served(redis_url) as api:
        for size, status in ((SHORT_BYTES, 200), (3 * SHORT_BYTES, 429), (SHORT_BYTES, 200)):
            assert (await api.ask("word " * (size // 5)))[0] == status


async def test_s03_clients_that_stall_keep_nobody_out(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "CONNECTIONS", 8)
    monkeypatch.setattr(requests, "BODY_SECONDS", 1.0)  # for which the server waits at its end
    async with served(redis_url) as api:
        for beginning in (
            b"",
            HEAD.encode() + b"x",
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHo",
            b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 120,  # of which no answer is read
        ):
            with ExitStack() as held:
                for _ in range(8):
                    _, writer = await connected(api, held)
                    writer.write(beginning)
                for _ in range(3):
                    url = f"http://{api.address}/healthz"
                    async with aiohttp.ClientSession() as session, session.get(url) as answer:
                        assert answer.status == 200


async def test_s03_headers_are_bounded_together(redis_url: str) -> None:
    with ExitStack() as held:
        async with served(redis_url) as api:
            reader, writer = await connected(api, held)
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            with suppress(ConnectionError):
                for number in range(2 * HEAD_BYTES // 8_000):
                    writer.write(b"h%d: %b\r\n" % (number, b"x" * 8_000))
                    await writer.drain()
                assert await asyncio.wait_for(reader.read(), 60) == b""
            assert (await api.get("/healthz"))[0] == 200


async def test_a_client_that_leaves_is_no_error(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as held:
        async with served(redis_url) as api:
            _, writer = await connected(api, held)
            writer.write(HEAD.encode() + b"x")
            await api.get("/healthz")
            writer.transport.abort()
            for _ in range(3):
                await api.get("/healthz")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_connection_without_a_request_is_closed(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "FIRST_SECONDS", 0.2)
    with ExitStack() as held:
        async with served(redis_url) as api:
            for beginning in (b"", b"GET / HTTP/1.1\r\nHost: "):
                reader, writer = await connected(api, held)
                writer.write(beginning)
                with suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 60) == b""
                assert reader.at_eof() or reader.exception() is not None
