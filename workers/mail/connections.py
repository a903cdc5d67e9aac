"""Connections of mail servers: a limited number of them, each served by a generator of replies."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.monitoring.metrics import MAIL_CONNECTIONS

TAKE_SECONDS = 300.0  # within which a client takes a reply
_STOP_SECONDS = 1.0  # for messages in work

Replies = Callable[[asyncio.StreamReader], AsyncGenerator[bytes]]


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
    host, port = address.rsplit(":", 1)
    try:
        server = await asyncio.start_server(connections.talk, host, int(port))
    except OSError as error:
        raise SettingsError(f"--listen: cannot listen on {address}: {error.strerror or error}") from None
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
    finally:
        server.close()
        await connections.end()
