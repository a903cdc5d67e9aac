"""The LMTP server keeps to its protocol and its bounds, and accepts what was delivered and nothing else."""

import asyncio
import smtplib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from prometheus_client import REGISTRY

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.mail import lmtp as lmtp_module
from nearstream.workers.mail.lmtp import LINE_MAX_BYTES, MISTAKES_MAX, RECIPIENTS_MAX, Input, lmtp
from nearstream.workers.mail.memory import Memory
from tests.support.mail import campaign_mail

ACCEPTED = b"250 2.0.0 OK"


@dataclass
class Client:
    """A client that sends bytes, and what the server has delivered.

    Attributes:
        reader: From the server.
        writer: To the server.
        address: `host:port` of the server.
        delivered: The messages.
        reply: What the next message is answered with.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str
    delivered: list[bytes]
    reply: list[bytes] = field(default_factory=list)

    async def say(self, sent: bytes) -> None:
        self.writer.write(sent)
        await self.writer.drain()

    async def line(self) -> bytes:
        async with asyncio.timeout(60):
            return (await self.reader.readline()).rstrip()

    async def ask(self, sent: bytes) -> bytes:
        """Send a line and return the last line of the reply."""
        await self.say(sent + b"\r\n")
        while (line := await self.line())[3:4] == b"-":
            pass
        return line

    async def begin(self, recipients: int = 1) -> None:
        """Send all that precedes a message."""
        assert (await self.ask(b"LHLO client.example"))[:3] == b"250"
        assert (await self.ask(b"MAIL FROM:<>"))[:3] == b"250"
        for number in range(recipients):
            assert (await self.ask(b"RCPT TO:<r%d@b.example>" % number))[:3] == b"250"
        assert (await self.ask(b"DATA"))[:3] == b"354"


@asynccontextmanager
async def _served() -> AsyncIterator[Client]:
    delivered: list[bytes] = []
    replies: list[bytes] = []

    async def deliver(message: bytes) -> bytes:
        delivered.append(message)
        return replies.pop(0) if replies else ACCEPTED

    async with lmtp("127.0.0.1:0", deliver) as address:
        client = Client(*await asyncio.open_connection(*address.split(":")), address, delivered, replies)
        assert (await client.line())[:3] == b"220"
        try:
            yield client
        finally:
            client.writer.close()


async def test_a_mail_is_delivered_byte_by_byte_with_a_reply_for_each_recipient() -> None:
    mail = campaign_mail("anna", ".\n..\n.leading\nFrom here\n")
    async with _served() as client:

        def send() -> dict[str, tuple[int, bytes]]:
            host, port = client.address.split(":")
            with smtplib.LMTP(host, int(port), timeout=60) as sender:
                sender.sendmail("shop@a.example", ["a@b.example"], mail)
                client.reply.append(b"451 4.3.0 later")
                with pytest.raises(smtplib.SMTPDataError, match="later"):
                    sender.sendmail("shop@a.example", ["a@b.example"], mail)
                return sender.sendmail("", ["a@b.example"], campaign_mail("bernd"))

        assert await asyncio.to_thread(send) == {}
        assert client.delivered == [mail, mail, campaign_mail("bernd")]
        client.reply.append(b"451 4.3.0 later")
        await client.begin(3)
        await client.say(b"x\r\n.\r\n")
        assert [await client.line() for _ in range(3)] == [b"451 4.3.0 later"] * 3


async def test_commands_may_come_all_at_once_and_a_message_in_pieces() -> None:
    message = (
        b"LHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n..a\r\n.\r\nMAIL FROM:<a@b> SIZE=9\r\nRCPT TO:<c@d>\r\n"
    )
    async with _served() as client:
        await client.say(message)
        replies = [await client.line() for _ in range(12)]
        assert [reply[:3] for reply in replies] == [b"250"] * 8 + [b"354"] + [b"250"] * 3
        await client.ask(b"DATA")
        for piece in (b".", b"\r", b"\n"):
            await client.say(piece)
        assert await client.line() == ACCEPTED
        await client.begin()
        for piece in (b"b\r", b"\n.", b"\r\n"):
            await client.say(piece)
            await asyncio.sleep(0)
        assert await client.line() == ACCEPTED
    assert client.delivered == [b".a\r\n", b"", b"b\r\n"]


@pytest.mark.parametrize("end", [b"\n.\n", b"\r.\r", b"\n.\r\n", b"\r\n.\n"])
async def test_a_message_ends_with_no_other_line_than_a_dot_alone(end: bytes) -> None:
    """A message whose end two servers see at different places would smuggle a second one in."""
    async with _served() as client:
        await client.begin()
        await client.say(b"a" + end + b"MAIL FROM:<forged@a.example>\r\n.\r\n")
        assert await client.line() == ACCEPTED
    assert client.delivered == [b"a" + end + b"MAIL FROM:<forged@a.example>\r\n"]


async def test_what_is_too_large_is_refused_and_the_next_mail_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmtp_module, "MESSAGE_MAX_BYTES", 100_000)
    async with _served() as client:
        for size, expected in ((1_000_000, b"552"), (100_001, b"552"), (100_000, b"250"), (5, b"250")):
            await client.begin()
            await client.say(b"x" * (size - 2) + b"\r\n.\r\n")
            assert (await client.line())[:3] == expected, size
    assert [len(message) for message in client.delivered] == [100_000, 5]


async def test_messages_share_their_memory_and_give_it_back() -> None:
    memory = Memory(left=100_000)
    for content, refusal in ((b"y" * 200_000, b"452"), (b"y" * 60_000, b""), (b"", b"")):
        reader = asyncio.StreamReader()
        reader.feed_data(content + b"\r\n.\r\nQUIT\r\n")
        incoming = Input(reader, memory)
        async with incoming.message() as (message, refused):
            assert refused[:3] == refusal
            assert message == (b"" if refusal else content + b"\r\n")
        assert await incoming.line() == b"QUIT"
        assert memory.left == 100_000


async def test_many_empty_lines_take_no_more_memory_than_their_bytes() -> None:
    async with _served() as client:
        await client.begin()
        await client.say(b"\r\n" * 4_000_000 + b".\r\n")
        assert await client.line() == ACCEPTED
    assert client.delivered == [b"\r\n" * 4_000_000]


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (b"DATA", b"503"),
        (b"RCPT TO:<a@b>", b"503"),
        (b"MAIL FROM: a@b", b"501"),
        (b"MAIL FROM:<a@b> SIZE=37748737", b"552"),
        (b"MAIL FROM:<a@b> SIZE=" + b"9" * 4_000, b"552"),
        (b"MAIL FROM:<a@b> SIZE=-1", b"552"),
        (b"MAIL FROM:<\xff\xfe> BODY=8BITMIME SMTPUTF8", b"250"),
        (b"EHLO a", b"500"),
        (b"", b"500"),
        (b"\x00\xff", b"500"),
        (b"VRFY a", b"252"),
        (b"noop", b"250"),
        (b"rset", b"250"),
        (b"quit", b"221"),
        (b"x" * (LINE_MAX_BYTES + 1), b"500"),
    ],
)
async def test_each_command_has_its_reply(sent: bytes, reply: bytes) -> None:
    async with _served() as client:
        assert (await client.ask(sent))[:3] == reply


async def test_a_client_with_too_many_mistakes_recipients_or_bytes_is_stopped() -> None:
    async with _served() as client:
        for _ in range(MISTAKES_MAX + 1):
            assert (await client.ask(b"HELO"))[:3] == b"500"
        assert (await client.line())[:3] == b"421"
        assert await client.line() == b""
    async with _served() as client:
        await client.ask(b"MAIL FROM:<a@b>")
        assert (await client.ask(b"MAIL FROM:<a@b>"))[:3] == b"503"
        await client.say(b"RCPT TO:<a@b>\r\n" * (RECIPIENTS_MAX + 1))
        replies = [(await client.line())[:3] for _ in range(RECIPIENTS_MAX + 1)]
        assert replies == [b"250"] * RECIPIENTS_MAX + [b"452"]
    async with _served() as client:
        await client.say(b"x" * 70_000)
        assert (await client.line())[:3] == b"500"
        try:
            assert await client.line() == b""
        except ConnectionResetError:
            pass


async def test_messages_are_counted_by_what_became_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmtp_module, "MESSAGE_MAX_BYTES", 1_000)
    names = ("accepted", "put_off", "refused")
    before = [_counted(name) for name in names]
    async with _served() as client:
        client.reply += [ACCEPTED, b"451 later"]
        for content in (b"one", b"two", b"three" * 1_000):
            await client.begin(2)
            await client.say(content + b"\r\n.\r\n")
            assert (await client.line())[:3] == (await client.line())[:3]
    assert [_counted(name) for name in names] == [count + 1 for count in before]


def _counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("nearstream_lmtp_messages_total", {"outcome": outcome}) or 0.0


async def test_sessions_above_the_limit_are_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmtp_module, "SESSIONS", 1)
    async with _served() as client:
        reader, writer = await asyncio.open_connection(*client.address.split(":"))
        assert (await reader.readline())[:3] == b"421"
        writer.close()
        assert (await client.ask(b"NOOP"))[:3] == b"250"


async def test_a_client_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async with _served() as client:
        monkeypatch.setattr(lmtp_module, "IDLE_SECONDS", 0.05)
        assert (await client.ask(b"NOOP"))[:3] == b"250"
        assert await client.line() == b""


async def test_a_mail_that_is_cut_off_is_not_delivered() -> None:
    async with _served() as client:
        await client.begin()
        await client.say(b"half a mail\r\n")
        client.writer.write_eof()
        assert await client.line() == b""
    assert client.delivered == []


async def test_an_address_in_use_is_named() -> None:
    async with _served() as client:
        with pytest.raises(SettingsError, match=f"--listen: cannot listen on {client.address}"):
            await lmtp(client.address, _never).__aenter__()


async def _never(_: bytes) -> bytes:
    raise AssertionError
