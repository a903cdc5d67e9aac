"""The way of a mail from nothing to its header, as `docs/mail.md` shows it, with a real Postfix, Kafka and Redis."""

import asyncio
import re
import secrets
import signal
import smtplib
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import header
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from tests.devstack.debian import unpacked
from tests.devstack.postfix import main_lines, postfix_folder, postfix_server
from tests.devstack.server import free_ports, running
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.mail import OTHER, Sink, campaign_mail, command, log_says, sink, swaks

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(280)]

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/mail.md").read_text().partition("## Files")[0]
BULK_COUNT = re.findall(r"NEARSTREAM_BULK_COUNT=(\d+)", PAGE)[0]
COMMANDS = re.findall(r"^ +nearstream (serve|milter --learn) &$", PAGE, re.MULTILINE)
HEADERS = re.findall(r"\| `X-Nearstream: (.*)` \|", PAGE)
BODY = re.findall(r'--body "(.*)"', PAGE)[0]
NAMES = ("Anna", "Bernd", "Carla", "Dora", "Emil", "Frida", "Georg", "Hanna", "Ines", "Jakob", "Karl", "Lena")
BULK = re.compile(r"verdict=bulk; n=\d+; r=(0\.[89]\d|1\.00)")
FORGED = (
    b"X-Nearstream: verdict=none; n=0\r\nx-nearstream:verdict=known_good\r\nX-NEARSTREAM : verdict=none\r\n"
    b"X-Nearstream-Other: stays\r\nX-Nearstream:\r\n verdict=none\r\n"
)


@dataclass(frozen=True)
class MailServer:
    """A Postfix with our filter."""

    address: str
    sink: Sink  # where it delivers to
    deployment: LocalDeployment
    api: subprocess.Popen[bytes]  # the process that the filter asks
    milter_log: Path

    async def send(self, name: str, mail: bytes) -> Message:
        """Send a mail of this name, and return it as it is delivered."""
        sent = await asyncio.to_thread(swaks, self.address, mail)
        assert sent.returncode == 0, sent.stdout + sent.stderr
        return await self.sink.delivered(name)


@pytest.fixture(scope="module")
async def mail_server(
    kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MailServer]:
    logs, (api_port, milter_port) = tmp_path_factory.mktemp("mail"), free_ports(2)
    settings = {"profile": "mail", "hash_key": "k" * 32, "bulk_count": BULK_COUNT, "api": f"127.0.0.1:{api_port}"}
    settings["mail_domains"] = "b.example tenant"  # the domain to which all mail goes
    main = main_lines(ROOT / "deploy/mail/postfix-main.cf", _9466=str(milter_port))
    # A machine that is busy with other tests may stop the filter for longer than a mail server would wait.
    main |= {name: "60s" for name in main if name.endswith("_timeout")}
    # Made first: where there is no Postfix or swaks nothing else has to start.
    await asyncio.to_thread(unpacked, "swaks")
    async with AsyncExitStack() as resources:
        folder = resources.enter_context(postfix_folder())
        kept = await resources.enter_async_context(sink())
        postfix = await asyncio.to_thread(postfix_server, folder / "postfix", kept.address, main)
        deployment = await resources.enter_async_context(deployed(kafka, redis_url, logs, **settings))
        resources.enter_context(deployment.worker())
        await until(lambda: _has_index(deployment))
        processes = {}
        for name in COMMANDS:
            options = ["--listen", f"127.0.0.1:{milter_port}"] if "milter" in name else []
            started = command(logs / f"{name}.log", *name.split(), *options, **deployment.given())
            processes[name] = resources.enter_context(started)
        for name in COMMANDS:
            await log_says(logs / f"{name}.log", "127.0.0.1:")
        context = running(postfix)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        milter_log = logs / "milter --learn.log"
        yield MailServer(postfix.address, kept, deployment, processes["serve"], milter_log)


async def test_the_page_leads_to_the_headers_that_it_shows(mail_server: MailServer) -> None:
    assert (COMMANDS, len(HEADERS)) == (["serve", "milter --learn"], 4)
    found: list[str] = []
    while HEADERS[-1].partition("; n")[0] not in "".join(found) and len(found) < len(NAMES):
        found.append(await _header_of_next(mail_server))
    for number, told in enumerate(found):
        # On a busy machine an answer comes too late now and then, and the mail has no header.
        copies = max(0, number - 1)
        shown = HEADERS[min(number, 3)].replace("n=2", f"n={copies}") if copies >= int(BULK_COUNT) else HEADERS[number]
        assert told in ("", shown), found
    assert found[-1], found
    sent = await mail_server.deployment.read(DOCUMENTS.name)
    assert {header(record.headers, "nearstream-collection") for record in sent} == {b"tenant"}


async def test_forged_headers_are_removed_whatever_their_form(mail_server: MailServer) -> None:
    await _send_until_bulk(mail_server)
    mail_server.api.send_signal(signal.SIGSTOP)
    try:
        mail = await mail_server.send("silent", FORGED + campaign_mail("silent"))
        assert _ours(mail) == []
        assert mail["X-Nearstream-Other"] == "stays"
        assert "mail passes unmarked: none within 0.5 s" in await log_says(mail_server.milter_log, "passes")
    finally:
        mail_server.api.send_signal(signal.SIGCONT)
    await _send_until_bulk(mail_server)


async def test_mail_arrives_as_it_was_sent(mail_server: MailServer) -> None:
    """The body and all other headers are not touched, also of several mails on one connection."""
    mails = {
        "folded": b"Keywords: one,\r\n\ttwo\r\n" + campaign_mail("folded"),
        "large": campaign_mail("large", f"{OTHER}\n" * 200),
        "dots": campaign_mail("dots", ".\n..\nFrom here\n"),
    }
    host, port = mail_server.address.rsplit(":", 1)
    with smtplib.SMTP(host, int(port), timeout=60) as client:
        for mail in mails.values():
            await asyncio.to_thread(client.sendmail, "a@a.example", ["b@b.example"], mail)
    for name, mail in mails.items():
        delivered, sent = await mail_server.sink.delivered(name), message_from_bytes(mail)
        assert delivered.get_payload() == sent.get_payload()
        for field, value in sent.items():
            assert delivered[field] == value


async def _has_index(deployment: LocalDeployment) -> bool:
    try:
        index = await RedisIndex.open_to_read(Deployment.of(deployment.settings).index_address())
    except (IndexLostError, SettingsError):
        return False
    await index.close()
    return True


async def _header_of_next(mail_server: MailServer) -> str:
    """Send the next copy, and return its header when its text is in the index."""
    kept, deployment = mail_server.sink, mail_server.deployment
    number = len(kept.mails) + 1
    name = NAMES[number - 1]
    body = BODY.replace("$name", name).replace("${RANDOM}", f"{7919 * number % 32768}")
    sent = await asyncio.to_thread(swaks, mail_server.address, None, "--body", body)
    assert sent.returncode == 0, sent.stdout + sent.stderr

    async def is_delivered() -> bool:
        return len(kept.mails) == number

    async def is_sent() -> bool:
        return len(await deployment.read(DOCUMENTS.name)) == number

    await until(is_delivered)
    await until(is_sent)
    await deployment.drained()
    return str([*kept.mails.values()][-1]["X-Nearstream"] or "")


async def _send_until_bulk(mail_server: MailServer) -> None:
    """Send copies with forged headers until one is delivered with one header of ours, which says that it is bulk.

    On a machine that is busy with other tests the API misses its deadline now and then.
    """
    async with asyncio.timeout(90):
        found = list[str]()
        while not (found and BULK.fullmatch(found[0])):
            name = secrets.token_hex(4)
            found = _ours(await mail_server.send(name, FORGED + campaign_mail(name)))
            assert len(found) <= 1


def _ours(mail: Message) -> list[str]:
    return [value for header, value in mail.items() if header.strip().lower() == "x-nearstream"]
