"""A mail filter (milter) for Postfix, which marks each message with what the HTTP API says about it.

It never stops mail because of a failure: without an answer in time, a message passes unmarked.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.mail import milter_packets as packets
from nearstream.workers.mail.check_client import ASK_SECONDS, Answer, CheckClient
from nearstream.workers.mail.memory import Memory
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES

HEADER = b"X-Nearstream"
CONNECTIONS = 256
IDLE_SECONDS = 600.0  # Postfix keeps a connection as long as its client, which may pause for 300 s
FORGED_MAX = 100
"""A message with more headers of our name is refused. Deleting each takes Postfix a search through its queue file."""
_FORGED = b"550 5.7.1 too many headers X-Nearstream"
_STOP_SECONDS = 2 * ASK_SECONDS  # for messages in work

log = logging.getLogger(__name__)


@dataclass
class Message:
    """A message as far as it was received.

    Attributes:
        memory: What is left for it and others.
        content: Its bytes, as they are on the wire.
        forged: The names of headers of our name that it came with, in their order.
        size: Bytes in `content`.
        is_whole: Whether all of it was kept, because it was not too large.
    """

    memory: Memory
    content: BytesIO = field(default_factory=BytesIO)
    size: int = 0
    forged: list[bytes] = field(default_factory=list)
    is_whole: bool = True

    def add_header(self, header: packets.Header) -> None:
        """Add a header, unless it has our name."""
        if header.name.strip().lower() == HEADER.lower():
            if len(self.forged) <= FORGED_MAX:
                self.forged.append(header.name)
            return
        self.add(header.name + b":" + header.value.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n")

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
        self.content, self.size, self.forged, self.is_whole = BytesIO(), 0, [], True


@dataclass
class Milter:
    """The filter.

    Attributes:
        client: Asks about messages.
        memory: What is left for messages.
        talks: The connections of mail servers.
    """

    client: CheckClient
    memory: Memory = field(default_factory=Memory)
    talks: set[asyncio.Task[None]] = field(default_factory=set)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk with a mail server until it ends the connection, or breaks the protocol."""
        task = asyncio.current_task()
        if task is None or len(self.talks) >= CONNECTIONS:
            writer.transport.abort()
            return
        self.talks.add(task)
        message = Message(self.memory)
        try:
            async for command, data in _commands(reader):
                writer.write(await self._reply(message, command, data))
                async with asyncio.timeout(IDLE_SECONDS):
                    await writer.drain()
        except packets.ProtocolError as error:
            log.warning("a connection was closed: %s", error)
        except (OSError, TimeoutError):
            pass  # the mail server is gone, or waits for nothing
        except asyncio.CancelledError:
            pass  # the filter ends, and nothing awaits this task
        finally:
            self.talks.discard(task)
            message.clear()
            writer.transport.abort()

    async def _reply(self, message: Message, command: bytes, data: bytes) -> bytes:
        """Return the reply to a command."""
        match command:
            case packets.NEGOTIATE:
                return packets.negotiation(data)
            case packets.HEADER:
                message.add_header(packets.header(data))
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
        """Return what is to be done to a whole message: headers of our name that it came with go, and ours comes."""
        try:
            if len(message.forged) > FORGED_MAX:
                return packets.refused(_FORGED)
            # From the last one on, so that no number changes.
            numbered = reversed(list(enumerate(message.forged, 1)))
            changes = [packets.deleted(name, number) for number, name in numbered]
            message.content.seek(0)
            answer = await self.client.ask(message.content) if message.is_whole else None
            if answer is not None:
                changes.append(packets.added(HEADER, header_value(answer)))
            return b"".join(changes) + packets.packet(packets.CONTINUE)
        finally:
            message.clear()


def header_value(answer: Answer) -> bytes:
    """Return the value of our header: the verdict, the copies of the last hour, and the resemblance."""
    resemblance = "" if answer.resemblance is None else f"; r={answer.resemblance:.2f}"
    return f"verdict={answer.verdict}; n={answer.count_1h}{resemblance}".encode()


@asynccontextmanager
async def milter(address: str, client: CheckClient) -> AsyncIterator[str]:
    """Accept mail servers at `host:port` during the block, and yield the address with the port that was taken.

    Raises:
        SettingsError: The address cannot be used.
    """
    filtering = Milter(client)
    host, port = address.rsplit(":", 1)
    try:
        server = await asyncio.start_server(filtering.talk, host, int(port))
    except OSError as error:
        raise SettingsError(f"--listen: cannot listen on {address}: {error.strerror or error}") from None
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
    finally:
        server.close()
        if filtering.talks:
            await asyncio.wait(filtering.talks, timeout=_STOP_SECONDS)
        for task in filtering.talks:
            task.cancel()


async def _commands(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield each command with its data until the mail server ends the connection.

    Raises:
        ProtocolError: A packet is too large.
        TimeoutError: No whole packet came within `IDLE_SECONDS`.
    """
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                size = int.from_bytes(await reader.readexactly(4), "big")
                if not 0 < size <= packets.PACKET_MAX_BYTES:
                    raise packets.ProtocolError(
                        f"expected a packet of 1 to {packets.PACKET_MAX_BYTES} bytes, got {size}"
                    )
                rest = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return
        if rest[:1] == packets.QUIT:
            return
        yield rest[:1], rest[1:]
