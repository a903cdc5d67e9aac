"""Connections of mail servers: a limited number of them, each served by a generator of replies."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.monitoring.metrics import MAIL_CONNECTIONS

TAKE_SECONDS = 300.0  # within which a client takes a reply
_STOP_SECONDS = 1.0  # for messages in work

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux has it

Replies = Callable[[asyncio.StreamReader], AsyncGenerator[bytes]]


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


@dataclass
class Connections:
    """Connections of clients.

    Attributes:
        replies: Yields the replies to what a client sends, until one of both leaves.
        most: Connections at a time.
        full: The reply to a client above this limit.
        tasks: A task for each connection.
    """

    replies: Replies
    most: int
    full: bytes
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client until one of both leaves."""
        task = asyncio.current_task()
        if task is None or len(self.tasks) >= self.most:
            writer.write(self.full)
            writer.close()
            return
        self.tasks.add(task)
        try:
            with MAIL_CONNECTIONS.track_inprogress():
                await self._reply(reader, writer)
        except (EOFError, OSError, TimeoutError):
            pass  # the client is gone, or says nothing
        except asyncio.CancelledError:
            pass  # the server ends, and nothing awaits this task
        finally:
            self.tasks.discard(task)
            writer.close()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with aclosing(self.replies(reader)) as replies:
            async for reply in replies:
                writer.write(reply)
                try:
                    async with asyncio.timeout(TAKE_SECONDS):
                        await writer.drain()
                except TimeoutError:
                    writer.transport.abort()  # to close it would wait for the client
                    return

    async def end(self) -> None:
        """Let messages in work come to their end for a moment, and close all connections."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=_STOP_SECONDS)
        for task in self.tasks:  # a message without a reply is sent again
            task.cancel()


@asynccontextmanager
async def serving(address: str, connections: Connections) -> AsyncIterator[str]:
    """Accept clients at `host:port` during the block, and yield the address with the port that was taken.

    Raises:
        SettingsError: The address cannot be used.
    """
    loop = asyncio.get_running_loop()
    host, port = address.rsplit(":", 1)
    try:
        server = await loop.create_server(
            lambda: _PromptProtocol(asyncio.StreamReader(loop=loop), connections.talk, loop=loop), host, int(port)
        )
    except OSError as error:
        raise SettingsError(f"--listen: cannot listen on {address}: {error.strerror or error}") from None
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
    finally:
        server.close()
        await connections.end()
