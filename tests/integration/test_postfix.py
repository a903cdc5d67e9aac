"""A real Postfix delivers mail with the header of `nearstream milter`, which asks a real `nearstream serve`."""

import asyncio
import re
import secrets
import signal
import smtplib
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.devstack.debian import unpacked
from tests.devstack.postfix import main_lines, postfix_folder, postfix_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.support.mail import CAMPAIGN, OTHER, Sink, campaign_api, campaign_mail, command, log_says, sink, swaks

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).parent.parent.parent
BULK = re.compile(r"verdict=bulk; n=4; r=(0\.[89]\d|1\.00)")


@dataclass(frozen=True)
class MailServer:
    """A Postfix with our filter.

    Attributes:
        postfix: The server.
        sink: Where it delivers to.
        api: The process of the API, which the filter asks.
        milter_log: The log of the filter.
    """

    postfix: LocalServer
    sink: Sink
    api: subprocess.Popen[bytes]
    milter_log: Path

    async def send(self, mail: bytes) -> None:
        sent = await asyncio.to_thread(swaks, self.postfix.address, mail)
        assert sent.returncode == 0, sent.stdout + sent.stderr


@pytest.fixture(scope="module")
async def mail_server(redis_url: str) -> AsyncIterator[MailServer]:
    (milter_port,) = free_ports(1)
    main = main_lines(ROOT / "deploy/mail/postfix-main.cf", _9466=str(milter_port))
    # A machine that is busy with other tests may stop the filter for longer than a mail server would wait.
    main |= {name: "60s" for name in main if name.endswith("_timeout")}
    async with AsyncExitStack() as resources:
        folder = resources.enter_context(postfix_folder())
        kept = await resources.enter_async_context(sink())
        # Made first: where there is no Postfix or swaks nothing else has to start.
        await asyncio.to_thread(unpacked, "swaks")
        postfix = await asyncio.to_thread(postfix_server, folder / "postfix", kept.address, main)
        api = await resources.enter_async_context(campaign_api(redis_url, folder))
        milter_log = folder / "milter.log"
        listen = f"127.0.0.1:{milter_port}"
        resources.enter_context(command(milter_log, "milter", "--listen", listen, api=api.address))
        await log_says(milter_log, f"milter: {listen}")
        context = running(postfix)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        yield MailServer(postfix, kept, api.process, milter_log)


async def test_a_copy_is_delivered_with_the_header_and_another_mail_with_another(mail_server: MailServer) -> None:
    (header,) = await _marked(mail_server, campaign_mail)
    assert BULK.fullmatch(header)
    (header,) = await _marked(mail_server, lambda name: campaign_mail(name, OTHER))
    assert header.startswith("verdict=none; n=0")
    assert "contains" not in header
    (header,) = await _marked(mail_server, lambda name: campaign_mail(name, f"{OTHER}\n{CAMPAIGN}\n{OTHER}"))
    assert re.fullmatch(r"verdict=none; n=0; r=0\.\d\d; contains=4", header)


async def test_forged_headers_are_removed_whatever_their_form(mail_server: MailServer) -> None:
    forged = (
        b"X-Nearstream: verdict=none; n=0\r\nx-nearstream:verdict=known_good\r\nX-NEARSTREAM : verdict=none\r\n"
        b"X-Nearstream-Other: stays\r\nX-Nearstream:\r\n verdict=none\r\n"
    )
    (header,) = await _marked(mail_server, lambda name: forged + campaign_mail(name))
    assert BULK.fullmatch(header)
    mail_server.api.send_signal(signal.SIGSTOP)
    try:
        await mail_server.send(forged + campaign_mail("silent"))
        mail = await mail_server.sink.delivered("silent")
        assert not [name for name in mail if name.strip().lower() == "x-nearstream"]
        assert mail["X-Nearstream-Other"] == "stays"
        assert "mail passes unmarked: none within 0.5 s" in await log_says(mail_server.milter_log, "passes")
    finally:
        mail_server.api.send_signal(signal.SIGCONT)
    await _marked(mail_server, campaign_mail)
    with pytest.raises(smtplib.SMTPDataError, match="too many headers"), smtplib.SMTP(*_at(mail_server)) as client:
        client.sendmail("a@a.example", ["b@b.example"], b"X-Nearstream: x\r\n" * 101 + campaign_mail("flood"))


async def test_mail_arrives_as_it_was_sent(mail_server: MailServer) -> None:
    """The body and all other headers are not touched, also of several mails on one connection."""
    mails = {
        "folded": b"Keywords: one,\r\n\ttwo\r\n" + campaign_mail("folded"),
        "large": campaign_mail("large", f"{OTHER}\n" * 200),
        "dots": campaign_mail("dots", ".\n..\nFrom here\n"),
    }
    with smtplib.SMTP(*_at(mail_server), timeout=60) as client:
        for mail in mails.values():
            await asyncio.to_thread(client.sendmail, "a@a.example", ["b@b.example"], mail)
    for name, mail in mails.items():
        delivered, sent = await mail_server.sink.delivered(name), message_from_bytes(mail)
        assert delivered.get_payload() == sent.get_payload()
        for header, value in sent.items():
            assert delivered[header] == value


async def _marked(mail_server: MailServer, mail: Callable[[str], bytes]) -> list[str]:
    """Send mails until one is delivered with a header of ours, and return all such headers of it.

    On a machine that is busy with other tests the API misses its deadline now and then.
    """
    async with asyncio.timeout(90):
        while True:
            name = secrets.token_hex(4)
            await mail_server.send(mail(name))
            delivered = await mail_server.sink.delivered(name)
            if found := [value for header, value in delivered.items() if header.strip().lower() == "x-nearstream"]:
                return found


def _at(mail_server: MailServer) -> tuple[str, int]:
    host, port = mail_server.postfix.address.rsplit(":", 1)
    return host, int(port)
