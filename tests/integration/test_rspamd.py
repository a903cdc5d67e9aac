"""A real rspamd gives mail the symbol of `deploy/mail/rspamd-nearstream.lua`, and nothing if there is no answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.devstack.rspamd import rspamd_server
from tests.devstack.server import running
from tests.support.mail import COPIES, OTHER, campaign_api, campaign_mail, log_says

pytestmark = pytest.mark.foreign

RULES = Path(__file__).parent.parent.parent / "deploy/mail/rspamd-nearstream.lua"
COMPOSITES = RULES.parent / "rspamd-composites.conf"
ALLOWED = """
rspamd_config:register_symbol({ name = 'ALLOWED_SENDERS', score = -0.5, callback = function(task)
  return task:get_header('X-Allowed') ~= nil
end })
"""
BULK = b'{"verdict":"bulk","count_1h":37,"score":0.5}'
CONTAINS = b'{"verdict":"none","contains":{"family":"8e14","count_1h":37,"count_24h":412,"characters":900}}'


@dataclass
class Rspamd:
    """An rspamd, and what stands between it and the API.

    Attributes:
        address: Its `host:port`.
        log: The file of its log.
        api: Where the API is.
        response: What rspamd gets in place of an answer of the API, None for that answer.
    """

    address: str = ""
    log: Path = Path()
    api: str = ""
    response: bytes | None = None

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            question = head + await reader.readexactly(size)
            if self.response is None:
                from_api, to_api = await asyncio.open_connection(*self.api.split(":"))
                to_api.write(question)
                writer.write(await from_api.read())  # rspamd asks for the connection to be closed
                to_api.close()
            elif self.response == b"silent":
                await reader.read()
            else:
                writer.write(self.response)
            await writer.drain()
        except ConnectionError:
            pass  # rspamd has given up
        finally:
            writer.close()

    async def scan(self, mail: bytes) -> dict[str, Any]:
        """Return the result of a scan."""
        timeout = aiohttp.ClientTimeout(30)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"http://{self.address}/checkv2", data=mail) as response,
        ):
            assert response.status == 200
            result: dict[str, Any] = await response.json()
            assert result["is_skipped"] is False
            symbols: dict[str, Any] = result["symbols"]
            return symbols

    async def scan_until_marked(self) -> dict[str, Any]:
        """Scan mails of the campaign until one gets the symbol, and return the symbol.

        On a machine that is busy with other tests an answer comes too late now and then.
        """
        async with asyncio.timeout(90):
            number = 0
            while not (symbols := await self.scan(campaign_mail(f"copy{number}"))):
                number += 1
            symbol: dict[str, Any] = symbols["NEARSTREAM_BULK"]
            return symbol


@pytest.fixture(scope="module")
async def rspamd(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rspamd]:
    folder = tmp_path_factory.mktemp("rspamd")
    running_rspamd = Rspamd()
    relay = await asyncio.start_server(running_rspamd.relay, "127.0.0.1", 0, limit=2**20)
    host, port = relay.sockets[0].getsockname()
    async with AsyncExitStack() as resources:
        resources.callback(relay.close)
        (folder / "nearstream.lua").write_text(RULES.read_text().replace("127.0.0.1:9465", f"{host}:{port}"))
        rules = f"dofile('{folder}/nearstream.lua')\n{ALLOWED}"
        server = await asyncio.to_thread(rspamd_server, folder / "rspamd", rules, COMPOSITES.read_text())
        api = await resources.enter_async_context(campaign_api(redis_url, folder))
        context = running(server)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        running_rspamd.address, running_rspamd.api = server.address, api.address
        running_rspamd.log = folder / "rspamd/server.log"
        yield running_rspamd


async def test_a_copy_gets_the_symbol_with_its_score_and_number(rspamd: Rspamd) -> None:
    rspamd.response = None
    symbol = await rspamd.scan_until_marked()
    assert symbol["options"] == [str(COPIES - 1)]
    assert symbol["metric_score"] == 3.0
    assert 2.9 < symbol["score"] <= 3.0
    assert not await rspamd.scan(campaign_mail("other", OTHER))


@pytest.mark.parametrize(("verdict", "points"), [("known_bad", 6.0), ("known_good", -3.0)])
async def test_a_copy_of_labelled_mail_gets_its_symbol_with_the_weight(
    rspamd: Rspamd, verdict: str, points: float
) -> None:
    answer = b'{"verdict":"%b","count_1h":37,"score":0.5,"labels":{"spam":4,"ham":4}}' % verdict.encode()
    rspamd.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
    async with asyncio.timeout(90):
        while not (symbols := await rspamd.scan(campaign_mail("anna"))):
            pass  # the machine is busy with other tests, so that the answer came too late
    ((name, symbol),) = symbols.items()
    assert (name, symbol["score"], symbol["options"]) == (f"NEARSTREAM_{verdict.upper()}", points, ["4"])


async def test_a_copy_with_other_attachments_gets_a_symbol_of_its_own(rspamd: Rspamd) -> None:
    answer = b'{"verdict":"near_duplicate","low_confidence":["near_threshold","attachments_differ"]}'
    rspamd.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
    async with asyncio.timeout(90):
        while not (symbols := await rspamd.scan(campaign_mail("anna"))):
            pass  # the machine is busy with other tests, so that the answer came too late
    assert set(symbols) == {"NEARSTREAM_OTHER_ATTACHMENTS"}


async def test_a_mail_that_contains_bulk_gets_a_symbol_of_its_own(rspamd: Rspamd) -> None:
    rspamd.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(CONTAINS), CONTAINS)
    async with asyncio.timeout(90):
        while not (symbols := await rspamd.scan(campaign_mail("anna"))):
            pass  # the machine is busy with other tests, so that the answer came too late
    ((name, symbol),) = symbols.items()
    assert (name, symbol["score"], symbol["options"]) == ("NEARSTREAM_CONTAINS_BULK", 1.5, ["412"])


@pytest.mark.parametrize(("said", "name"), [(BULK, "BULK"), (CONTAINS, "CONTAINS_BULK")])
async def test_bulk_mail_of_an_allowed_sender_gets_no_points(rspamd: Rspamd, said: bytes, name: str) -> None:
    rspamd.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
    async with asyncio.timeout(90):
        while len(symbols := await rspamd.scan(campaign_mail("anna", X_Allowed="yes"))) < 2:
            pass  # the machine is busy with other tests, so that the answer came too late
    points = {symbol: found["score"] for symbol, found in symbols.items()}
    assert points == {f"NEARSTREAM_{name}": 0.0, f"NEARSTREAM_{name}_ALLOWED": 0.0, "ALLOWED_SENDERS": -0.5}


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"garbage\r\n\r\n",
        b"silent",
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n%b" % (len(BULK), BULK),
        b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"verd:',
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"verdict":"bulk"}',
        b'HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{"verdict":"unknown","degraded":true    }',
    ],
    ids=["closed", "no HTTP", "silent", "429", "500", "cut JSON", "null", "no score", "unknown"],
)
async def test_without_an_answer_there_is_no_symbol_and_a_scan_goes_on(rspamd: Rspamd, response: bytes) -> None:
    rspamd.response = response
    assert not await rspamd.scan(campaign_mail("anna"))
    rspamd.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BULK), BULK)
    assert (await rspamd.scan_until_marked())["options"] == ["37"]


async def test_the_log_says_that_the_token_is_wrong(rspamd: Rspamd) -> None:
    rspamd.response = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}"
    assert not await rspamd.scan(campaign_mail("anna"))
    await log_says(rspamd.log, "no answer from nearstream: 401")
