"""A mail filter (milter) for Postfix, which adds a header with the verdict of the HTTP API to each message.

A failure never stops mail: without an answer in time, a message passes unmarked.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated

import msgspec
from msgspec import Meta

from nearstream.schemas.checks.check import CHECK_VERDICTS
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.mail import milter_packets as packets
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES, Memory
from nearstream.workers.monitoring.metrics import MAIL_CONNECTIONS, MILTER_MESSAGES, MILTER_SECONDS

TAKE_SECONDS = 300.0  # within which a client takes a reply
_STOP_SECONDS = 1.0  # for messages in work
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
HEADER = b"X-Nearstream"
CONNECTIONS = 256
IDLE_SECONDS = 600.0  # Postfix keeps a connection as long as its client, which may pause for 300 s
FORGED_MAX = 100
"""A message with more headers of our name is refused. Deleting each takes Postfix a search through its queue file."""
_FORGED = b"550 5.7.1 too many headers X-Nearstream"
log = logging.getLogger(__name__)


class _PromptProtocol(asyncio.StreamReaderProtocol):
    """Acknowledges what it gets at once, also where no reply follows.

    A client that writes several small packets, such as the headers of a message for a milter, sends the next ones only
    after that. The kernel would wait 40 ms for a reply with which it could send the acknowledgement.
    """

    _socket: socket.socket | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket of the connection."""
        self._socket = transport.get_extra_info("socket")
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take data. The kernel forgets the option with each reply, so it is set each time."""
        super().data_received(data)
        if _QUICKACK is not None and self._socket is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)


class Labels(msgspec.Struct, frozen=True):
    """Labels of a text that lies in the message."""

    spam: Annotated[int, Meta(ge=0)] = 0


class Contained(msgspec.Struct, frozen=True):
    """A text in the message, its attachments, or a reference, with copies or labels."""

    count_24h: Annotated[int, Meta(ge=0)] = 0  # copies of the text within the last day
    labels: Labels = Labels()


class Answer(msgspec.Struct, frozen=True):
    """What a mail server needs of a `schemas.check.CheckAnswer`, also of one by another version of the API."""

    verdict: Annotated[str, Meta(pattern="^[a-z_]{1,32}$")]
    count_1h: Annotated[int, Meta(ge=0)] = 0  # copies within the last hour
    resemblance: Annotated[float, Meta(ge=0, le=1)] | None = None  # to the most similar known message
    contains: Contained | None = None
    attachments: Contained | None = None
    references: tuple[Contained, ...] = ()
    witness: Annotated[str, Meta(pattern="^[a-z_]{0,32}$")] = ""  # by what labels reach the message


Ask = Callable[[BytesIO, str], Awaitable[Answer | None]]


@dataclass
class Message:
    """A message as far as it was received."""

    memory: Memory  # what is left for it and others
    content: BytesIO = field(default_factory=BytesIO)  # its bytes, as they are on the wire
    size: int = 0  # bytes in `content`
    # The names of headers of our name that it came with, in their order.
    forged: list[bytes] = field(default_factory=list)
    recipient: str = ""  # the first address that it is for
    is_whole: bool = True  # whether all of it was kept, because it was not too large

    def add_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless it has our name."""
        if name.strip().lower() == HEADER.lower():
            if len(self.forged) <= FORGED_MAX:
                self.forged.append(name)
            return
        self.add(name + b":" + value.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n")

    def add(self, piece: bytes) -> None:
        """Add bytes, if there is room."""
        fits = self.is_whole and len(piece) <= MESSAGE_MAX_BYTES - self.size
        if not fits or not self.memory.take(len(piece)):
            self.is_whole = False
            return
        self.content.write(piece)
        self.size += len(piece)

    def clear(self) -> None:
        """Forget it, for the next one."""
        self.memory.give_back(self.size)
        self.content, self.size, self.forged, self.recipient, self.is_whole = BytesIO(), 0, [], "", True


@dataclass
class Milter:
    """The filter."""

    ask: Ask  # asks about a message
    memory: Memory = field(default_factory=Memory)  # what is left for messages
    tasks: set[asyncio.Task[None]] = field(default_factory=set)  # a task for each connection

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a mail server until one of both leaves, unless there are too many connections."""
        task = asyncio.current_task()
        if task is None or len(self.tasks) >= CONNECTIONS:
            writer.close()
            return
        self.tasks.add(task)
        try:
            with MAIL_CONNECTIONS.track_inprogress():
                await self._talk(reader, writer)
        except (EOFError, OSError, TimeoutError):
            pass  # the mail server is gone, or says nothing
        except asyncio.CancelledError:
            pass  # the filter ends, and nothing awaits this task
        finally:
            self.tasks.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with aclosing(self.replies(reader)) as replies:
            async for reply in replies:
                writer.write(reply)
                try:
                    async with asyncio.timeout(TAKE_SECONDS):
                        await writer.drain()
                except TimeoutError:
                    writer.transport.abort()  # to close it would wait for the mail server
                    return

    async def end(self) -> None:
        """Let messages in work come to their end for a moment, and close all connections."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=_STOP_SECONDS)
        for task in self.tasks:  # a message without a reply is sent again
            task.cancel()

    async def replies(self, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        """Yield the reply to each command until the mail server leaves, or breaks the protocol."""
        message = Message(self.memory)
        try:
            async for command, data in _commands(reader):
                yield await self._reply(message, command, data)
        except packets.ProtocolError as error:
            log.warning("a connection was closed: %s", error)
        finally:
            message.clear()

    async def _reply(self, message: Message, command: bytes, data: bytes) -> bytes:
        match command:
            case packets.NEGOTIATE:
                return packets.negotiation(data)
            case packets.RECIPIENT:
                message.recipient = message.recipient or packets.address(data)
            case packets.HEADER:
                message.add_header(*packets.header(data))
            case packets.END_OF_HEADERS:
                message.add(b"\r\n")
            case packets.BODY:
                message.add(data)
                return packets.packet(packets.CONTINUE if message.is_whole else packets.SKIP)
            case packets.END:
                message.add(data)
                return await self._verdict(message)
            case packets.ABORT | packets.QUIT_NEW:
                message.clear()
        return b"" if command in packets.SILENT else packets.packet(packets.CONTINUE)

    async def _verdict(self, message: Message) -> bytes:
        """Return the changes of a whole message: delete headers of our name that it came with, and add ours."""
        try:
            if len(message.forged) > FORGED_MAX:
                MILTER_MESSAGES.labels("refused").inc()
                return packets.refused(_FORGED)
            # From the last one on, so that no number changes.
            numbered = reversed(list(enumerate(message.forged, 1)))
            changes = [packets.deleted(name, number) for number, name in numbered]
            message.content.seek(0)
            answer = None
            if message.is_whole:
                with MILTER_SECONDS.time():
                    answer = await self.ask(message.content, message.recipient)
            MILTER_MESSAGES.labels(_outcome(message, answer)).inc()
            if answer is not None:
                changes.append(packets.added(HEADER, header_value(answer)))
            return b"".join(changes) + packets.packet(packets.CONTINUE)
        finally:
            message.clear()


def _outcome(message: Message, answer: Answer | None) -> str:
    if answer is None:
        return "unmarked" if message.is_whole else "too_large"
    return answer.verdict if answer.verdict in CHECK_VERDICTS else "other"  # of another version of the API


def header_value(answer: Answer) -> bytes:
    """Return the value of our header.

    It has the verdict, the number of copies within the last hour, the resemblance, and by what labels reach it. Of a
    text that lies in it, it has the weight of labels of spam, else the copies within the last day, and of its
    attachments and of references the weight of such labels.
    """
    resemblance = "" if answer.resemblance is None else f"; r={answer.resemblance:.2f}"
    witness = f"; by={answer.witness}" if answer.witness else ""
    held = answer.contains
    spam = held.labels.spam if held else 0
    contains = f"; contains_bad={spam}" if spam else f"; contains={held.count_24h}" if held else ""
    spam = answer.attachments.labels.spam if answer.attachments else 0
    files = f"; attachments_bad={spam}" if spam else ""
    spam = max((each.labels.spam for each in answer.references), default=0)
    referred = f"; reference_bad={spam}" if spam else ""
    return f"verdict={answer.verdict}; n={answer.count_1h}{resemblance}{witness}{contains}{files}{referred}".encode()


@asynccontextmanager
async def milter(address: str, ask: Ask) -> AsyncIterator[str]:
    """Accept mail servers during the block, and yield the address with its port."""
    loop, filtering = asyncio.get_running_loop(), Milter(ask)
    host, port = address.rsplit(":", 1)
    try:
        server = await loop.create_server(
            lambda: _PromptProtocol(asyncio.StreamReader(loop=loop), filtering.talk, loop=loop), host, int(port)
        )
    except OSError as error:
        raise SettingsError(f"--listen: cannot listen on {address}: {error.strerror or error}") from None
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
    finally:
        server.close()
        await filtering.end()


async def _commands(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                size = int.from_bytes(await reader.readexactly(4), "big")
                if not 0 < size <= packets.PACKET_MAX_BYTES:
                    expected = f"expected a packet of 1 to {packets.PACKET_MAX_BYTES} bytes, got {size}"
                    raise packets.ProtocolError(expected)
                rest = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return
        if rest[:1] == packets.QUIT:
            return
        yield rest[:1], rest[1:]
