"""A server of LMTP (RFC 2033), to which a mail server delivers messages.

Each recipient gets the reply of one function that takes the message, so a message is accepted when that function says
so, and not before. The memory of a message is bounded by its bytes, whatever its lines are.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from nearstream.workers.mail.connections import Connections, serving
from nearstream.workers.mail.memory import Memory
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES
from nearstream.workers.monitoring.metrics import LMTP_MESSAGES

SESSIONS = 64
RECIPIENTS_MAX = 1_000
LINE_MAX_BYTES = 4_096
IDLE_SECONDS = 300.0
MISTAKES_MAX = 20
_PIECE_BYTES = 65_536
_END = b"\r\n.\r\n"

TOO_LARGE = b"552 5.3.4 message larger than %d bytes" % MESSAGE_MAX_BYTES
NO_MEMORY = b"452 4.3.1 too many messages at a time, try again"
_TOO_MANY = b"421 4.3.2 too many connections\r\n"
_EXTENSIONS = b"250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE %d"

_OUTCOMES = {b"2": "accepted", b"4": "put_off", b"5": "refused"}

Deliver = Callable[[bytes], Awaitable[bytes]]


class LineTooLongError(Exception):
    """A command is longer than any may be."""


@dataclass
class Input:
    """What a client sends, as lines and messages.

    Attributes:
        reader: Where it comes from.
        memory: What is left for messages.
        unread: Bytes that were received and not yet read.
    """

    reader: asyncio.StreamReader
    memory: Memory
    unread: bytearray = field(default_factory=bytearray)

    async def line(self) -> bytes:
        """Return the next line without its end.

        Raises:
            EOFError: The client has closed the connection.
            LineTooLongError: The line has more than `LINE_MAX_BYTES`.
            TimeoutError: Nothing came for `IDLE_SECONDS`.
        """
        while (end := self.unread.find(b"\n")) < 0:
            if len(self.unread) > LINE_MAX_BYTES:
                raise LineTooLongError
            self.unread += await self._piece()
        if end > LINE_MAX_BYTES:
            raise LineTooLongError
        line = bytes(self.unread[:end])
        del self.unread[: end + 1]
        return line.rstrip(b"\r")

    @asynccontextmanager
    async def message(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Read a message up to its last line, a single dot, and reserve memory for it during the block.

        Yields:
            The message, and an empty reply, or nothing and the reply why it was not kept.

        Raises:
            EOFError: The client has closed the connection.
            TimeoutError: Nothing came for `IDLE_SECONDS`.
        """
        content, refusal, taken = bytearray(b"\r\n"), b"", 0  # the dot may be the first line
        piece, self.unread = bytes(self.unread), bytearray()
        try:
            while True:
                seen = max(0, len(content) - len(_END))
                content += piece
                if (end := content.find(_END, seen)) >= 0:
                    break
                refusal = refusal or self._refusal(len(content), len(piece))
                taken += 0 if refusal else len(piece)
                if refusal:
                    del content[: -len(_END)]
                piece = await self._piece()
            refusal = refusal or (TOO_LARGE if end > MESSAGE_MAX_BYTES else b"")
            self.unread = content[end + len(_END) :]
            del content[end + 2 :]
            message = b"" if refusal else bytes(content.replace(b"\r\n..", b"\r\n.")[2:])
            del content
            yield message, refusal
        finally:
            self.memory.give_back(taken)

    def _refusal(self, size: int, more: int) -> bytes:
        if size > MESSAGE_MAX_BYTES + len(_END):
            return TOO_LARGE
        return b"" if self.memory.take(more) else NO_MEMORY

    async def _piece(self) -> bytes:
        async with asyncio.timeout(IDLE_SECONDS):
            piece = await self.reader.read(_PIECE_BYTES)
        if not piece:
            raise EOFError
        return piece


@dataclass
class Session:
    """A conversation with a client.

    Attributes:
        input: What the client sends.
        deliver: Takes a message and returns the reply.
        has_sender: Whether a message has begun.
        recipients: Of this message.
        mistakes: Commands that were wrong.
    """

    input: Input
    deliver: Deliver
    has_sender: bool = False
    recipients: int = 0
    mistakes: int = 0

    async def replies(self) -> AsyncIterator[bytes]:
        """Yield each reply until the client leaves or makes too many mistakes."""
        yield b"220 nearstream LMTP"
        while True:
            try:
                verb, _, rest = (await self.input.line()).partition(b" ")
            except LineTooLongError:
                yield b"500 5.5.2 line too long"
                return
            if verb.upper() == b"QUIT":
                yield b"221 2.0.0 bye"
                return
            if verb.upper() == b"DATA" and self.recipients:
                yield b"354 end with a dot alone"
                yield await self._data()
                continue
            reply = self._reply(verb.upper(), rest.strip())
            self.mistakes += reply.startswith(b"50")
            yield reply
            if self.mistakes > MISTAKES_MAX:
                yield b"421 4.7.0 too many mistakes"
                return

    def _reply(self, verb: bytes, rest: bytes) -> bytes:
        match verb:
            case b"LHLO":
                self._forget()
                return b"250-nearstream\r\n" + _EXTENSIONS % MESSAGE_MAX_BYTES
            case b"MAIL":
                return self._sender(rest)
            case b"RCPT":
                return self._recipient(rest)
            case b"DATA":
                return b"503 5.5.1 expected RCPT first"
            case b"RSET" | b"NOOP":
                if verb == b"RSET":
                    self._forget()
                return b"250 2.0.0 OK"
            case b"VRFY":
                return b"252 2.1.5 send a message and see"
        return b"500 5.5.1 expected LHLO, MAIL, RCPT, DATA, RSET, NOOP, VRFY or QUIT"

    def _sender(self, rest: bytes) -> bytes:
        if self.has_sender:
            return b"503 5.5.1 there is a sender already"
        if not rest.upper().startswith(b"FROM:<"):
            return b"501 5.5.4 expected MAIL FROM:<address>"
        sizes = [word[5:] for word in rest.upper().split() if word.startswith(b"SIZE=")]
        if sizes and (not sizes[0].isdigit() or len(sizes[0]) > 9 or int(sizes[0]) > MESSAGE_MAX_BYTES):
            return TOO_LARGE
        self.has_sender = True
        return b"250 2.1.0 OK"

    def _recipient(self, rest: bytes) -> bytes:
        if not self.has_sender:
            return b"503 5.5.1 expected MAIL first"
        if not rest.upper().startswith(b"TO:<"):
            return b"501 5.5.4 expected RCPT TO:<address>"
        if self.recipients >= RECIPIENTS_MAX:
            return b"452 4.5.3 too many recipients"
        self.recipients += 1
        return b"250 2.1.5 OK"

    async def _data(self) -> bytes:
        """Return the reply to a message, once for each recipient."""
        recipients = self.recipients
        self._forget()
        async with self.input.message() as (message, refusal):
            reply = refusal or await self.deliver(message)
        LMTP_MESSAGES.labels(_OUTCOMES[reply[:1]]).inc()
        return b"\r\n".join([reply] * recipients)

    def _forget(self) -> None:
        self.has_sender, self.recipients = False, 0


def lmtp(address: str, deliver: Deliver) -> AbstractAsyncContextManager[str]:
    """Accept mail at `host:port` during a block, and yield the address.

    Raises:
        SettingsError: The address cannot be used.
    """
    memory = Memory()

    async def replies(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        async for reply in Session(Input(reader, memory), deliver).replies():
            yield reply + b"\r\n"

    return serving(address, Connections(replies, SESSIONS, _TOO_MANY))
