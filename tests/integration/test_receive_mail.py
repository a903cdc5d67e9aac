"""`nearstream lmtp` sends mail to a real Kafka, and accepts none that Kafka has not confirmed."""

import asyncio
import http.client
import json
import re
import smtplib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.ingest.parse import ParsedDocument, parse_record
from nearstream.workers.config.settings import load
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.operations import receive_mail
from nearstream.workers.operations.receive_mail import receiving
from nearstream.workers.pipeline.deployment import Deployment
from tests.devstack.debian import unpacked
from tests.devstack.exim import exim_server
from tests.devstack.maddy import maddy_server
from tests.devstack.postfix import main_lines, postfix_folder, postfix_server
from tests.devstack.server import LocalServer, free_ports, running
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.mail import CAMPAIGN, campaign_mail, command, log_says, sink, swaks

pytestmark = pytest.mark.foreign

DEPLOY = Path(__file__).parent.parent.parent / "deploy/mail"
SETTINGS = {"profile": "mail", "hash_key": "k" * 32}


@asynccontextmanager
async def _served(deployment: LocalDeployment, *options: str, port: int | None = None) -> AsyncIterator[str]:
    """Run the command, at a port or a free one, and yield its address."""
    port = port or free_ports(1)[0]
    address, log = f"127.0.0.1:{port}", deployment.logs / "lmtp.log"
    ours = {
        name.removeprefix("NEARSTREAM_").lower(): value
        for name, value in deployment.environment.items()
        if name.startswith("NEARSTREAM_")
    }
    with command(log, "lmtp", "--listen", address, *options, **ours | {"status": "127.0.0.1:0"}):
        await log_says(log, f"LMTP: {address}")
        yield address


def _send_by_smtp(address: str, mail: bytes) -> None:
    host, port = address.rsplit(":", 1)
    with smtplib.SMTP(host, int(port), timeout=90) as client:
        client.sendmail("shop@a.example", ["anna@b.example"], mail)


def _send(address: str, mail: bytes) -> tuple[int, bytes]:
    """Send a mail and return the reply to it."""
    host, port = address.rsplit(":", 1)
    with smtplib.LMTP(host, int(port), timeout=90) as client:
        client.ehlo("client.example")
        client.mail("shop@a.example")
        client.rcpt("anna@b.example")
        return client.data(mail)


def _body(address: str, path: str) -> str:
    with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", path)
        return str(connection.getresponse().read(), "utf-8")


async def test_a_mail_by_swaks_is_on_the_topic_when_it_is_accepted(kafka: str, redis_url: str, tmp_path: Path) -> None:
    await asyncio.to_thread(unpacked, "swaks")
    async with (
        deployed(kafka, redis_url, tmp_path, **SETTINGS) as deployment,
        _served(deployment, "--collection", "inbox") as address,
    ):
        sent = await asyncio.to_thread(swaks, address, campaign_mail("anna"), "--protocol", "LMTP")
        assert sent.returncode == 0, sent.stdout + sent.stderr
        assert await asyncio.to_thread(_send, address, campaign_mail("bernd")) == (250, b"2.0.0 OK")
        log = await log_says(deployment.logs / "lmtp.log", "status: http://")
        (status,) = re.findall(r"status: http://(\S+)/metrics", log)
        metrics = await asyncio.to_thread(_body, status, "/metrics")
        assert 'nearstream_lmtp_messages_total{outcome="accepted"} 2.0' in metrics.splitlines()
        assert json.loads(await asyncio.to_thread(_body, status, "/readyz"))["ready"] is True
        first, second = sorted(await deployment.read(DOCUMENTS.name), key=lambda record: record.key or b"")
    assert (first.key, second.key) == (b"<anna@a.example>", b"<bernd@a.example>")
    parsed = parse_record(second, Deployment.of(deployment.settings).document_limits)
    assert isinstance(parsed, ParsedDocument)
    document = parsed.document
    assert (document.collection, document.source) == ("inbox", "mail")
    assert " ".join(CAMPAIGN.split()) in " ".join((document.text or "").split())
    assert b"shop@a.example" not in json.dumps([*map(repr, second)]).encode()  # no address, and no other header


def _postfix(folder: Path, next_hop: str, port: int) -> LocalServer:
    return postfix_server(folder / "postfix", next_hop, main_lines(DEPLOY / "postfix-lmtp-main.cf", _9467=str(port)))


def _exim(folder: Path, next_hop: str, port: int) -> LocalServer:
    routers, transports = ((DEPLOY / f"exim-{kind}.conf").read_text() for kind in ("routers", "transports"))
    return exim_server(folder / "exim", next_hop, routers, transports.replace("9467", str(port)))


def _maddy(folder: Path, next_hop: str, port: int) -> LocalServer:
    copies = (DEPLOY / "maddy-copies.conf").read_text().replace("9467", str(port))
    return maddy_server(folder / "maddy", next_hop, copies)


@pytest.mark.timeout(600)  # for the first run, which builds Maddy
@pytest.mark.parametrize("server", [_postfix, _exim, _maddy])
async def test_a_mail_server_delivers_each_mail_and_sends_a_copy(
    kafka: str, redis_url: str, tmp_path: Path, server: Callable[[Path, str, int], LocalServer]
) -> None:
    async with AsyncExitStack() as resources:
        folder = resources.enter_context(postfix_folder())
        kept = await resources.enter_async_context(sink())
        port = free_ports(1)[0]
        mail_server = await asyncio.to_thread(server, folder, kept.address, port)
        deployment = await resources.enter_async_context(deployed(kafka, redis_url, tmp_path, **SETTINGS))
        await resources.enter_async_context(_served(deployment, port=port))
        context = running(mail_server)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        await asyncio.to_thread(_send_by_smtp, mail_server.address, campaign_mail("anna"))
        assert (await kept.delivered("anna"))["Subject"] == "News"

        async def is_there() -> bool:
            return [record.key for record in await deployment.read(DOCUMENTS.name)] == [b"<anna@a.example>"]

        await until(is_there)
        assert [*kept.mails] == ["<anna@a.example>"]


async def test_without_kafka_mail_is_put_off_and_accepted_when_it_is_back(
    broker: LocalServer, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive_mail, "CONFIRM_SECONDS", 2.0)
    async with AsyncExitStack() as resources:
        deployment = await resources.enter_async_context(deployed(broker.address, redis_url, tmp_path, **SETTINGS))
        ours = Deployment.of(deployment.settings)
        address, ending = await resources.enter_async_context(receiving(ours, "127.0.0.1:0", "default", 30.0))
        assert (await _accepted(address, "before"))[0] == 250
        broker.pause()
        code, text = await asyncio.to_thread(_send, address, campaign_mail("frozen"))
        broker.resume()
        assert (code, text[:5]) == (451, b"4.3.0")
        assert (await _accepted(address, "frozen"))[0] == 250
        await asyncio.to_thread(broker.kill)
        code, text = await asyncio.to_thread(_send, address, campaign_mail("down"))
        assert (code, text[:5]) == (451, b"4.3.0")
        await asyncio.to_thread(broker.start)
        assert (await _accepted(address, "down"))[0] == 250
        assert not ending.done()
        keys = {record.key for record in await deployment.read(DOCUMENTS.name)}
    assert keys == {b"<before@a.example>", b"<frozen@a.example>", b"<down@a.example>"}


async def test_a_start_without_kafka_is_refused(redis_url: str) -> None:
    given = {"NEARSTREAM_KAFKA": "127.0.0.1:1", "NEARSTREAM_REDIS": redis_url}
    with pytest.raises(KafkaUnreachableError):
        async with receiving(Deployment.of(load(given)), "127.0.0.1:0", "default", 0.5):
            pass


async def _accepted(address: str, name: str) -> tuple[int, bytes]:
    """Send a mail as a mail server does, again and again until it is accepted, and return the reply."""
    async with asyncio.timeout(120):
        while (reply := await asyncio.to_thread(_send, address, campaign_mail(name)))[0] == 451:
            await asyncio.sleep(0.2)
    return reply
