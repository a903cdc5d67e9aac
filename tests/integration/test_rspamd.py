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
from tests.support.api import served
from tests.support.mail import CAMPAIGN, OTHER, campaign_mail, log_says

pytestmark = pytest.mark.foreign

RULES = Path(__file__).parent.parent.parent / "deploy/mail/rspamd-nearstream.lua"
COMPOSITES = RULES.parent / "rspamd-composites.conf"
ALLOWED = """
rspamd_config:register_symbol({ name = 'ALLOWED_SENDERS', score = -0.5, callback = function(task)
  return task:get_header('X-Allowed') ~= nil
end })
for name, option in pairs({ R_DKIM_ALLOW = 'shop.example:s1', DMARC_POLICY_ALLOW = 'shop.example' }) do
  rspamd_config:register_symbol({ name = name, score = 0.0, callback = function(task)
    return task:get_header('X-Signed') ~= nil, 1.0, option
  end })
end
"""
BULK = b'{"verdict":"bulk","count_1h":37,"score":0.5}'
CONTAINS = b'{"verdict":"none","contains":{"family":"8e14","count_1h":37,"count_24h":412,"labels":{"spam":%d,"ham":0}}}'
LABELLED = b'{"verdict":"%b","count_1h":37,"score":0.5,"labels":{"spam":4,"ham":4},"witness":"near"}'
OTHER_ATTACHMENTS = b'{"verdict":"near_duplicate","low_confidence":["near_threshold","attachments_differ"]}'
REFERENCES = b'{"verdict":"none","references":[{"collection":"feed","labels":{"spam":3}},{"labels":{"spam":0}}]}'
COPIES = 5  # of the campaign, which are known before a test


def http(status: bytes, body: bytes) -> bytes:
    """Return a whole response."""
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@dataclass
class Rspamd:
    """An rspamd, and what stands between it and the API."""

    address: str = ""
    log: Path = Path()
    api: str = ""  # where the API is
    asked: bytes = b""  # the last question
    response: bytes | None = None  # what rspamd gets in place of an answer of the API, None for that answer

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.asked = question = head + await reader.readexactly(size)
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

    async def scan_until_marked(self, least: int = 1, **headers: str) -> dict[str, Any]:
        """Scan mails of the campaign until one gets symbols, and return the symbols.

        On a machine that is busy with other tests an answer comes too late now and then.
        """
        async with asyncio.timeout(90):
            number = 0
            while len(symbols := await self.scan(campaign_mail(f"copy{number}", **headers))) < least:
                number += 1
            return symbols


@pytest.fixture(scope="module")
async def rspamd(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rspamd]:
    folder = tmp_path_factory.mktemp("rspamd")
    running_rspamd = Rspamd()
    relay = await asyncio.start_server(running_rspamd.relay, "127.0.0.1", 0, limit=2**20)
    host, port = relay.sockets[0].getsockname()
    async with AsyncExitStack() as resources:
        resources.callback(relay.close)
        ours = RULES.read_text().replace("127.0.0.1:9465", f"{host}:{port}")
        (folder / "nearstream.lua").write_text(ours.replace("authserv_id = ''", "authserv_id = 'mx.firm.example'"))
        rules = f"dofile('{folder}/nearstream.lua')\n{ALLOWED}"
        server = await asyncio.to_thread(rspamd_server, folder / "rspamd", rules, COMPOSITES.read_text())
        api = await resources.enter_async_context(served(redis_url, bulk_count=str(COPIES - 1)))
        for number in range(COPIES):
            await api.admit(f"first{number}", CAMPAIGN)
        context = running(server)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        running_rspamd.address, running_rspamd.api = server.address, api.address
        running_rspamd.log = folder / "rspamd/server.log"
        yield running_rspamd


async def test_a_copy_gets_the_symbol_with_its_score_and_number(rspamd: Rspamd) -> None:
    rspamd.response = None
    symbol = (await rspamd.scan_until_marked())["NEARSTREAM_BULK"]
    assert symbol["options"] == [str(COPIES - 1)]
    assert symbol["metric_score"] == 3.0
    assert 2.9 < symbol["score"] <= 3.0
    assert not await rspamd.scan(campaign_mail("other", OTHER))


async def test_its_results_of_dkim_and_dmarc_go_above_the_headers_of_a_message(rspamd: Rspamd) -> None:
    rspamd.response = http(b"200 OK", BULK)
    await rspamd.scan_until_marked()
    above = b"\r\n\r\nAuthentication-Results: mx.firm.example; dkim=none; dmarc=none%b\r\n"
    assert above % b"" in rspamd.asked
    await rspamd.scan_until_marked(3, X_Signed="yes")
    assert above % b"; dkim=pass header.d=shop.example; dmarc=pass header.from=a.example" in rspamd.asked


async def test_each_answer_has_its_symbol_and_no_points_if_the_sender_is_allowed(rspamd: Rspamd) -> None:
    for answer, name, points, options in (
        (LABELLED % b"known_bad", "NEARSTREAM_KNOWN_BAD", 6.0, ["4", "near"]),
        (LABELLED % b"near_bad", "NEARSTREAM_NEAR_BAD", 2.0, ["4", "near"]),
        (LABELLED % b"disputed", "NEARSTREAM_DISPUTED", 0.0, ["4", "near"]),
        (LABELLED % b"known_good", "NEARSTREAM_KNOWN_GOOD", -3.0, ["4", "near"]),
        (CONTAINS % 0, "NEARSTREAM_CONTAINS_BULK", 1.5, ["412"]),
        (CONTAINS % 3, "NEARSTREAM_CONTAINS_BAD", 2.0, ["3"]),
        (REFERENCES, "NEARSTREAM_REFERENCE_BAD", 3.0, ["3", "feed"]),
    ):
        rspamd.response = http(b"200 OK", answer)
        ((found, symbol),) = (await rspamd.scan_until_marked()).items()
        assert (found, symbol["score"], symbol["options"]) == (name, points, options)
    rspamd.response = http(b"200 OK", OTHER_ATTACHMENTS)
    assert set(await rspamd.scan_until_marked()) == {"NEARSTREAM_OTHER_ATTACHMENTS"}
    for answer, name in ((BULK, "NEARSTREAM_BULK"), (CONTAINS % 0, "NEARSTREAM_CONTAINS_BULK")):
        rspamd.response = http(b"200 OK", answer)
        symbols = await rspamd.scan_until_marked(2, X_Allowed="yes")
        scores = {symbol: found["score"] for symbol, found in symbols.items()}
        assert scores == {name: 0.0, f"{name}_ALLOWED": 0.0, "ALLOWED_SENDERS": -0.5}


async def test_without_an_answer_there_is_no_symbol_and_a_scan_goes_on(rspamd: Rspamd) -> None:
    for response in (
        b"",
        b"garbage\r\n\r\n",
        b"silent",
        http(b"429 Too Many Requests", b"{}"),
        http(b"500 Oops", BULK),
        b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"verd:',
        http(b"200 OK", b"null"),
        http(b"200 OK", b'{"verdict":"bulk"}'),
        http(b"200 OK", b'{"verdict":"unknown","degraded":true}'),
        http(b"401 Unauthorized", b"{}"),
    ):
        rspamd.response = response
        assert not await rspamd.scan(campaign_mail("anna"))
    await log_says(rspamd.log, "no answer from nearstream: 401")
    rspamd.response = http(b"200 OK", BULK)
    assert (await rspamd.scan_until_marked())["NEARSTREAM_BULK"]["options"] == ["37"]
