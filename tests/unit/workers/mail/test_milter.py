"""The mail filter keeps to its protocol and its bounds, and lets mail pass whatever the API does."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from prometheus_client import REGISTRY

from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.http.client import api_client, mail_client
from nearstream.workers.mail import milter as milter_module
from nearstream.workers.mail import milter_packets as packets
from nearstream.workers.mail.message import Memory
from nearstream.workers.mail.milter import FORGED_MAX, Answer, Contained, Message, header_value, milter
from tests.support.mail import campaign_mail

OFFER = struct.pack(">III", 6, 0x1FF, 0x1FFFFF)
BULK = b'{"verdict":"bulk","count_1h":37,"resemblance":0.941,"degraded":false}'
CONTINUE = packets.packet(packets.CONTINUE)

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _response(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status, len(body), more, body)


def _says(response: bytes) -> Respond:
    """Return an API that reads the head of each request and answers all in one way."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        await writer.drain()

    return respond


async def _never(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


class MailServer:
    """A mail server at the other end of a filter."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def tell(self, kind: bytes, data: bytes = b"") -> None:
        self.writer.write(packets.packet(kind, data))
        await self.writer.drain()

    async def reply(self) -> bytes:
        """Return the next packet of the filter."""
        async with asyncio.timeout(60):
            head = await self.reader.readexactly(4)
            return head + await self.reader.readexactly(int.from_bytes(head, "big"))

    async def send(self, mail: bytes) -> list[bytes]:
        """Send a mail and return the replies at its end."""
        head, _, body = mail.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            await self.tell(packets.HEADER, name + b"\0" + value + b"\0")
        await self.tell(packets.END_OF_HEADERS)
        for start in range(0, len(body), 65_535):
            await self.tell(packets.BODY, body[start : start + 65_535])
            if await self.reply() != CONTINUE:
                break
        await self.tell(packets.END)
        replies = [await self.reply()]
        while replies[-1][4:5] in (packets.ADD_HEADER, packets.CHANGE_HEADER):
            replies.append(await self.reply())
        return replies


@asynccontextmanager
async def _filtering(
    respond: Respond, collection: str = "default", api_seconds: float = 60.0
) -> AsyncIterator[MailServer]:
    """Run an API and a filter, and yield a mail server that has connected."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await respond(reader, writer)
        finally:
            writer.close()

    api = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**20)
    host, port = api.sockets[0].getsockname()
    given = {"API": f"{host}:{port}", "API_TOKEN": "t" * 20, "API_SECONDS": str(api_seconds)}
    settings = load({f"NEARSTREAM_{name}": value for name, value in given.items()})
    async with mail_client(settings, collection) as client, milter("127.0.0.1:0", client) as address:
        server = await _connected(address)
        try:
            yield server
        finally:
            server.writer.close()
            api.close()


async def _connected(address: str) -> MailServer:
    server = MailServer(*await asyncio.open_connection(*address.split(":")))
    await server.tell(packets.NEGOTIATE, OFFER)
    reply = await server.reply()
    assert struct.unpack(">III", reply[5:]) == (6, 0x11, packets.STEPS)
    return server


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the filter closes the connection, and return whether it has said nothing."""
    async with asyncio.timeout(60):
        try:
            return await reader.read() == b""
        except ConnectionResetError:
            return True


def _added(value: bytes) -> list[bytes]:
    return [packets.added(b"X-Nearstream", value), CONTINUE]


async def test_the_api_gets_the_mail_as_it_is_on_the_wire() -> None:
    mail, asked = b"Keywords: one,\r\n\ttwo\r\nX:\r\n" + campaign_mail("anna"), []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        asked.append(await reader.readexactly(len(mail)))
        writer.write(_response(BULK))
        await writer.drain()

    async with _filtering(respond, "inbox") as server:
        assert await server.send(mail.replace(b",\r\n\t", b",\n\t")) == _added(b"verdict=bulk; n=37; r=0.94")
    head = asked[0].lower()
    assert asked[1] == mail
    assert head.startswith(b"post /v1/check http/1.1\r\n")
    for line in (b"content-type: message/rfc822", b"authorization: bearer tttt", b"nearstream-collection: inbox"):
        assert b"\r\n" + line in head


async def test_a_header_of_our_name_goes_and_the_others_stay() -> None:
    forged = b"X-Nearstream: verdict=none\r\nX-Nearstreams: a\r\nx-NEARstream: b\r\n"
    async with _filtering(_says(_response(BULK))) as server:
        replies = await server.send(forged + campaign_mail("anna"))
    deletions = [packets.deleted(b"x-NEARstream", 2), packets.deleted(b"X-Nearstream", 1)]
    assert replies == deletions + _added(b"verdict=bulk; n=37; r=0.94")


@pytest.mark.parametrize(
    "respond",
    [
        _says(b""),
        _says(b"garbage\r\n\r\n"),
        _says(_response(b"\xff\xfe")),
        _says(_response(BULK.replace(b"bulk", b"bulk\\r\\nSubject: x"))),
        _says(_response(BULK.replace(b"37", b"-1"))),
        _says(_response(b'{"verdict":"unknown","degraded":true}')),
        _says(_response(b" " * 70_000 + BULK)),
        _says(_response(BULK)[:-10]),
        _says(_response(BULK, b"302 Found", b"Location: http://127.0.0.1:1/\r\n")),
        _says(_response(b"{}", b"413 Too Large")),
        _never,
    ],
    ids=[
        "closed",
        "no HTTP",
        "no UTF-8",
        "injection",
        "negative",
        "unknown",
        "large",
        "cut body",
        "redirect",
        "413",
        "silent",
    ],
)
async def test_without_an_answer_mail_passes_unmarked_and_forged_headers_go(respond: Respond) -> None:
    async with _filtering(respond, api_seconds=0.15) as server:
        for _ in range(2):
            replies = await server.send(b"X-Nearstream: verdict=none\r\n" + campaign_mail("anna"))
            assert replies == [packets.deleted(b"X-Nearstream", 1), CONTINUE]


async def test_the_log_tells_the_begin_and_the_end_of_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    responses = [b"", b"", _response(BULK), b""]

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _says(responses.pop(0))(reader, writer)

    with caplog.at_level("INFO", "nearstream.workers.http.client"):
        async with _filtering(respond) as server:
            for _ in range(4):
                await server.send(campaign_mail("anna"))
    told = [record.getMessage() for record in caplog.records]
    assert ["passes unmarked" in text for text in told] == [True, False, True]
    assert "answers again" in told[1]


async def test_a_filter_that_learns_lets_the_api_learn_each_mail() -> None:
    asked: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n"))
        writer.write(_response(BULK))

    api = await asyncio.start_server(respond, "127.0.0.1")
    settings = load({"NEARSTREAM_API": "{}:{}".format(*api.sockets[0].getsockname())})
    async with mail_client(settings, "default", learns=True) as client:
        assert await client(BytesIO(campaign_mail("anna"))) is not None
    api.close()
    assert asked == [b"POST /v1/check?learn=1 HTTP/1.1\r\n"]


async def test_a_flood_of_forged_headers_is_refused() -> None:
    async with _filtering(_says(_response(BULK))) as server:
        (reply,) = await server.send(b"X-Nearstream: a\r\n" * (FORGED_MAX + 1) + campaign_mail("anna"))
        assert reply[4:].startswith(packets.REPLY_CODE + b"550 5.7.1 ")
        assert await server.send(campaign_mail("anna")) == _added(b"verdict=bulk; n=37; r=0.94")


async def test_a_mail_that_is_too_large_passes_and_the_next_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milter_module, "MESSAGE_MAX_BYTES", 200_000)
    async with _filtering(_says(_response(BULK))) as server:
        assert await server.send(campaign_mail("anna", "word " * 100_000)) == [CONTINUE]
        assert await server.send(campaign_mail("anna")) == _added(b"verdict=bulk; n=37; r=0.94")


def test_messages_share_their_memory_and_give_it_back() -> None:
    memory = Memory(left=100)
    one, other = Message(memory), Message(memory)
    one.add(b"x" * 60)
    other.add(b"y" * 60)
    other.add(b"z")  # nothing of a message is left out in its middle
    assert (one.is_whole, other.is_whole, memory.left) == (True, False, 40)
    one.clear()
    other.clear()
    other.add(b"y" * 60)
    assert (other.is_whole, memory.left, other.content.getvalue()) == (True, 40, b"y" * 60)


@pytest.mark.parametrize(
    "sent",
    [
        packets.packet(packets.NEGOTIATE, struct.pack(">III", 2, 0x1FF, 0x1FFFFF)),
        packets.packet(packets.NEGOTIATE, struct.pack(">III", 6, 0x1FF, 0x7F)),
        packets.packet(packets.NEGOTIATE, b"short"),
        packets.packet(packets.HEADER, b"no end"),
        struct.pack(">I", 0),
        struct.pack(">I", packets.PACKET_MAX_BYTES + 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_milter_protocol_closes_the_connection(sent: bytes) -> None:
    settings = load({"NEARSTREAM_API": "127.0.0.1:1"})
    async with mail_client(settings, "default") as client, milter("127.0.0.1:0", client) as address:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(sent)
        assert await _is_closed(reader)
        writer.close()


async def test_connections_above_the_limit_are_closed_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milter_module, "CONNECTIONS", 1)
    settings = load({"NEARSTREAM_API": "127.0.0.1:1"})
    async with mail_client(settings, "default") as client, milter("127.0.0.1:0", client) as address:
        first = await _connected(address)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await _connected(address)
        assert await first.send(campaign_mail("anna")) == [CONTINUE]


async def test_a_mail_server_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milter_module, "IDLE_SECONDS", 0.05)
    settings = load({"NEARSTREAM_API": "127.0.0.1:1"})
    async with mail_client(settings, "default") as client, milter("127.0.0.1:0", client) as address:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        assert await _is_closed(reader)
        writer.close()


async def test_messages_are_counted_by_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("bulk", "too_large", "refused")
    before = [_counted(name) for name in names]
    async with _filtering(_says(_response(BULK))) as server:
        await server.send(campaign_mail("anna"))
        for _ in range(FORGED_MAX + 1):
            await server.tell(packets.HEADER, b"X-Nearstream\0 forged\0")
        await server.tell(packets.END)
        assert (await server.reply())[4:5] == packets.REPLY_CODE
        monkeypatch.setattr(milter_module, "MESSAGE_MAX_BYTES", 10)
        await server.send(campaign_mail("anna"))
    assert [_counted(name) for name in names] == [count + 1 for count in before]


def _counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("nearstream_milter_messages_total", {"outcome": outcome}) or 0.0


async def test_an_aborted_mail_leaves_nothing_for_the_next() -> None:
    async with _filtering(_says(_response(BULK))) as server:
        await server.tell(packets.HEADER, b"X-Nearstream\0 forged\0")
        await server.tell(packets.ABORT)
        await server.tell(packets.MACROS, b"Ci\0queue\0")
        assert await server.send(campaign_mail("anna")) == _added(b"verdict=bulk; n=37; r=0.94")


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux waits like this")
async def test_a_mail_server_that_writes_small_packets_need_not_wait_for_acknowledgements() -> None:
    settings = load({"NEARSTREAM_API": "127.0.0.1:1"})
    async with mail_client(settings, "default") as client, milter("127.0.0.1:0", client) as address:
        async with asyncio.timeout(60):
            # Each mail would take 40 ms. One that a busy machine delays says nothing.
            while await asyncio.to_thread(_seconds_of_small_packets, address) > 0.03:
                pass


def _seconds_of_small_packets(address: str) -> float:
    """Return how long the filter takes for a mail whose headers come one by one, as Postfix sends them."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as server, server.makefile("rb") as replies:
        server.sendall(packets.packet(packets.NEGOTIATE, OFFER))
        replies.read(17)
        began = time.perf_counter()
        for number in range(20):
            server.sendall(packets.packet(packets.HEADER, b"Received\0 relay%d\0" % number))
        server.sendall(packets.packet(packets.END))
        replies.read(5)
        return time.perf_counter() - began


async def test_an_address_in_use_is_named() -> None:
    settings = load({"NEARSTREAM_API": "127.0.0.1:1"})
    async with mail_client(settings, "default") as client, milter("127.0.0.1:0", client) as address:
        with pytest.raises(SettingsError, match=f"--listen: cannot listen on {address}"):
            await milter(address, client).__aenter__()


async def test_the_client_sends_the_one_token_that_it_is_given() -> None:
    token = "t" * 20
    for setting in (token, f"# for mail\n{token} mail 200\n"):
        async with api_client(load({"NEARSTREAM_API_TOKEN": setting}), "/v1/check", "") as client:
            assert client.session.headers["Authorization"] == f"Bearer {token}"
    with pytest.raises(SettingsError, match=r"NEARSTREAM_API_TOKEN: expected the one token .*, got 2"):
        await mail_client(load({"NEARSTREAM_API_TOKEN": f"{token} *\n{token}2 mail\n"}), "default").__aenter__()


def test_the_header_has_the_verdict_the_copies_and_the_resemblance() -> None:
    for answer, value in [
        (Answer("none"), b"verdict=none; n=0"),
        (Answer("none", 0, 0.41, Contained(412)), b"verdict=none; n=0; r=0.41; contains=412"),
    ]:
        assert header_value(answer) == value
