"""The mail filter keeps to its protocol and its bounds, and lets mail pass whatever the API does."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from nearstream.workers.config.settings import load
from nearstream.workers.http.client import mail_client
from nearstream.workers.mail import milter as milter_module
from nearstream.workers.mail import milter_packets as packets
from nearstream.workers.mail.message import Memory
from nearstream.workers.mail.milter import FORGED_MAX, Answer, Contained, Message, header_value, milter
from tests.support.mail import campaign_mail

OFFER = struct.pack(">III", 6, 0x1FF, 0x1FFFFF)
BULK = b'{"verdict":"bulk","count_1h":37,"resemblance":0.941,"degraded":false}'
CONTINUE = packets.packet(packets.CONTINUE)
MARKED = [packets.added(b"X-Nearstream", b"verdict=bulk; n=37; r=0.94"), CONTINUE]
TOKENS = f"# of the filter\n{'t' * 20} inbox 200\n"
NO_API = {"API": "127.0.0.1:1"}

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
    respond: Respond, collection: str = "default", api_seconds: float = 60.0, *, learns: bool = False
) -> AsyncIterator[MailServer]:
    """Run an API and a filter, and yield a mail server that has connected."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await respond(reader, writer)
        finally:
            writer.close()

    api = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**20)
    given = {"API": _address(api), "API_TOKEN": TOKENS, "API_SECONDS": str(api_seconds)}
    async with _listening(given, collection, learns=learns) as address:
        server = await _connected(address)
        try:
            yield server
        finally:
            server.writer.close()
            api.close()


def _address(server: asyncio.Server) -> str:
    return "{}:{}".format(*server.sockets[0].getsockname())


@asynccontextmanager
async def _listening(
    given: Mapping[str, str] = NO_API, collection: str = "default", *, learns: bool = False
) -> AsyncIterator[str]:
    """Run a filter with these settings, by default without an API, and yield its address."""
    settings = load({f"NEARSTREAM_{name}": value for name, value in given.items()})
    async with mail_client(settings, collection, learns=learns) as (ask, _), milter("127.0.0.1:0", ask) as address:
        yield address


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


async def test_the_api_gets_the_mail_as_it_is_on_the_wire() -> None:
    mail, asked = b"Keywords: one,\r\n\ttwo\r\nX:\r\n" + campaign_mail("anna"), []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        asked.append(await reader.readexactly(len(mail)))
        writer.write(_response(BULK))
        await writer.drain()

    for learns, path in ((False, b"/v1/check"), (True, b"/v1/check?learn=1")):
        async with _filtering(respond, "inbox", learns=learns) as server:
            for recipient in (b"<anna@b.example>\0NOTIFY=NEVER\0", b"<bea@c.example>\0"):
                await server.tell(packets.RECIPIENT, recipient)
            assert await server.send(mail.replace(b",\r\n\t", b",\n\t")) == MARKED
        head, sent = asked[-2].lower(), asked[-1]
        assert sent == mail
        assert head.startswith(b"post " + path + b" http/1.1\r\n")
        bearer = b"authorization: bearer " + b"t" * 20
        for line in (
            b"content-type: message/rfc822",
            bearer,
            b"nearstream-collection: inbox",
            b"nearstream-recipient: <anna@b.example>",
        ):
            assert b"\r\n" + line + b"\r\n" in head


async def test_of_a_burst_few_questions_are_asked_at_a_time_and_all_are_answered() -> None:
    asked, most = 0, 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked, most
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        most = max(most, asked)
        await asyncio.sleep(0.01)
        asked -= 1
        writer.write(_response(BULK))
        writer.close()

    api = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with _listening({"API": _address(api), "API_SECONDS": "60"}) as address:
        servers = [await _connected(address) for _ in range(40)]
        replies = await asyncio.gather(*(server.send(campaign_mail("anna")) for server in servers))
        for server in servers:
            server.writer.close()
    api.close()
    assert (replies, most) == ([MARKED] * 40, 8)


async def test_a_header_of_our_name_goes_and_the_others_stay() -> None:
    forged = b"X-Nearstream: verdict=none\r\nX-Nearstreams: a\r\nx-NEARstream: b\r\n"
    deletions = [packets.deleted(b"x-NEARstream", 2), packets.deleted(b"X-Nearstream", 1)]
    async with _filtering(_says(_response(BULK))) as server:
        assert await server.send(forged + campaign_mail("anna")) == deletions + MARKED
        await server.tell(packets.HEADER, b"X-Nearstream\0 forged\0")
        await server.tell(packets.ABORT)  # after which nothing of the mail is left for the next
        await server.tell(packets.MACROS, b"Ci\0queue\0")
        assert await server.send(campaign_mail("anna")) == MARKED


NO_ANSWERS = {
    "closed": _says(b""),
    "no HTTP": _says(b"garbage\r\n\r\n"),
    "no UTF-8": _says(_response(b"\xff\xfe")),
    "injection": _says(_response(BULK.replace(b"bulk", b"bulk\\r\\nSubject: x"))),
    "negative": _says(_response(BULK.replace(b"37", b"-1"))),
    "unknown": _says(_response(b'{"verdict":"unknown","degraded":true}')),
    "large": _says(_response(b" " * 70_000 + BULK)),
    "cut body": _says(_response(BULK)[:-10]),
    "redirect": _says(_response(BULK, b"302 Found", b"Location: http://127.0.0.1:1/\r\n")),
    "413": _says(_response(b"{}", b"413 Too Large")),
    "silent": _never,
}


@pytest.mark.parametrize("name", NO_ANSWERS)
async def test_without_an_answer_mail_passes_unmarked_and_forged_headers_go(name: str) -> None:
    async with _filtering(NO_ANSWERS[name], api_seconds=0.15) as server:
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


async def test_a_flood_of_forged_headers_is_refused_and_a_mail_that_is_too_large_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(milter_module, "MESSAGE_MAX_BYTES", 200_000)
    names = ("bulk", "too_large", "refused")
    before = [_counted(name) for name in names]
    async with _filtering(_says(_response(BULK))) as server:
        (reply,) = await server.send(b"X-Nearstream: a\r\n" * (FORGED_MAX + 1) + campaign_mail("anna"))
        assert reply[4:].startswith(packets.REPLY_CODE + b"550 5.7.1 ")
        assert await server.send(campaign_mail("anna", "word " * 100_000)) == [CONTINUE]
        assert await server.send(campaign_mail("anna")) == MARKED
    assert [_counted(name) for name in names] == [count + 1 for count in before]


def _counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("nearstream_milter_messages_total", {"outcome": outcome}) or 0.0


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


async def test_what_is_no_milter_protocol_closes_the_connection() -> None:
    async with _listening() as address:
        for sent in (
            packets.packet(packets.NEGOTIATE, struct.pack(">III", 2, 0x1FF, 0x1FFFFF)),
            packets.packet(packets.NEGOTIATE, struct.pack(">III", 6, 0x1FF, 0x7F)),
            packets.packet(packets.NEGOTIATE, b"short"),
            packets.packet(packets.HEADER, b"no end"),
            struct.pack(">I", 0),
            struct.pack(">I", packets.PACKET_MAX_BYTES + 1),
            b"GET / HTTP/1.1\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(sent)
            assert await _is_closed(reader)
            writer.close()


async def test_connections_above_the_limit_are_closed_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milter_module, "CONNECTIONS", 1)
    async with _listening() as address:
        first = await _connected(address)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await _connected(address)
        assert await first.send(campaign_mail("anna")) == [CONTINUE]


async def test_a_mail_server_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milter_module, "IDLE_SECONDS", 0.05)
    async with _listening() as address:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        assert await _is_closed(reader)
        writer.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux waits like this")
async def test_a_mail_server_that_writes_small_packets_need_not_wait_for_acknowledgements() -> None:
    async with _listening() as address:
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


def test_the_header_has_the_verdict_the_copies_and_the_resemblance() -> None:
    assert header_value(Answer("none")) == b"verdict=none; n=0"
    assert header_value(Answer("none", 0, 0.41, Contained(412))) == b"verdict=none; n=0; r=0.41; contains=412"
