"""Connections to Redis on each of which one call is under way at a time."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoReplyError

from nearstream.workers.redis.server.shared_connection import Argument

_CONNECTIONS = 4  # further calls wait for one of them
_SILENT_SECONDS = 5.0  # between two replies


class HeldConnections:
    """A few connections that stay open, for the calls of lanes.

    A call takes a third of the time that a client with a pool needs, which takes locks, makes a task to send and sets a
    timer for each reply.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._idle: list[AbstractConnection] = []
        self._free = asyncio.Semaphore(_CONNECTIONS)

    async def execute_command(self, *arguments: Argument) -> Any:  # noqa: ANN401 - as redis
        """Return the reply to a command."""
        (reply,) = await self.execute_commands([arguments])
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def execute_commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Return the reply to each command, or its refusal.

        If anything goes wrong, the connection is closed, because replies may be under way.
        """
        # The stub of hiredis knows tuples of one item only.
        packed = b"".join([pack_command(tuple(command)) for command in commands])  # type: ignore[arg-type]
        async with self._free:
            connection: AbstractConnection
            connection = self._idle.pop() if self._idle else self._pool.make_connection()  # type: ignore[no-untyped-call]
            try:
                replies = await _exchanged(connection, packed, len(commands))
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            self._idle.append(connection)
            return replies

    async def aclose(self) -> None:
        """Close the connections. A call under way opens another one, or keeps its own."""
        while self._idle:
            await self._idle.pop().disconnect()


async def _exchanged(connection: AbstractConnection, packed: bytes, count: int) -> list[Any]:
    replies: list[Any] = []
    try:
        async with asyncio.timeout(_SILENT_SECONDS) as limit:
            await _make_ready(connection)
            await connection.send_packed_command(packed, check_health=False)
            while True:
                replies.append(await _reply(connection))
                if len(replies) == count:
                    return replies
                limit.reschedule(asyncio.get_running_loop().time() + _SILENT_SECONDS)
    except TimeoutError as error:
        raise NoReplyError(f"no reply for {_SILENT_SECONDS:g} s") from error


async def _make_ready(connection: AbstractConnection) -> None:
    if connection.is_connected and not await connection.can_read():
        return
    await connection.disconnect(nowait=True)
    await connection.connect()  # type: ignore[no-untyped-call]


async def _reply(connection: AbstractConnection) -> Any:  # noqa: ANN401 - as redis
    try:
        return await connection.read_response(timeout=math.inf)
    except ResponseError as refusal:
        return refusal
