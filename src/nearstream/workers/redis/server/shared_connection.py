"""One connection to Redis on which many calls are under way at a time."""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ConnectionError, ResponseError, TimeoutError

_CONNECT_SECONDS = 1.0
_UNANSWERED = 4_096  # calls
_SILENT_SECONDS = 5.0  # after which a server that leaves calls unanswered is asked on a new connection

Argument = bytes | str | int


class SharedConnection:
    """A connection that sends each call at once and reads the replies in the order of the calls.

    A call takes a quarter of the time that a client with a pool needs, and a caller that gives up does not close the
    connection for the others. It is opened by the first call, and again by the first one after it was lost. Where the
    server is silent, all calls under way fail.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: AbstractConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        # For each call, who waits for its replies, those that have come, and their count.
        self._waiting: deque[tuple[asyncio.Future[list[Any]], list[Any], int]] = deque()
        self._heard = 0.0  # when the last reply came, or the first call that waits was made

    async def execute_command(self, *arguments: Argument) -> Any:  # noqa: ANN401 - as redis
        """Return the reply to a command."""
        (reply,) = await self.execute_commands([arguments])
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def execute_commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Return the reply to each command, or its refusal."""
        if self._connection is None:
            await self._opened()
        connection, loop = self._connection, asyncio.get_running_loop()
        if connection is None or not connection.is_connected:
            raise ConnectionError("the connection was lost")
        if len(self._waiting) >= _UNANSWERED:
            raise ConnectionError(f"{len(self._waiting)} calls are unanswered")
        if not self._waiting:
            self._heard = loop.time()
        answered: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.append((answered, [], len(commands)))
        try:
            # The stub of hiredis knows tuples of one item only.
            packed = b"".join([pack_command(tuple(command)) for command in commands])  # type: ignore[arg-type]
            async with asyncio.timeout(_SILENT_SECONDS):
                await connection.send_packed_command(packed, check_health=False)
        except BaseException:
            answered.cancel()  # it keeps its place, because the server may have got the commands
            raise
        return await answered

    async def aclose(self) -> None:
        """Close the connection. Calls under way fail."""
        tasks = [task for task in (self._opening, self._reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lose(ConnectionError("the connection was closed"))

    async def _opened(self) -> None:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._has_opened)
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        self._reading = asyncio.create_task(self._read(connection))
        self._look(self._reading)

    def _look(self, reading: asyncio.Task[None]) -> None:
        """Lose the connection if the server is silent, else look again in a while."""
        loop = asyncio.get_running_loop()
        if self._waiting and loop.time() - self._heard > _SILENT_SECONDS:
            reading.cancel()
            self._lose(TimeoutError(f"no reply for {_SILENT_SECONDS:g} s"))
        elif not reading.done():
            loop.call_later(_SILENT_SECONDS / 5, self._look, reading)

    def _has_opened(self, opening: asyncio.Task[None]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # raised by the calls, which may all have given up

    async def _read(self, connection: AbstractConnection) -> None:
        """Hand each reply to the call that it belongs to, until the connection is lost."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                reply = await _reply(connection)
                answered, replies, count = self._waiting[0]
                self._heard = loop.time()
                replies.append(reply)
                if len(replies) == count:
                    self._waiting.popleft()
                    if not answered.done():  # its caller may have given up
                        answered.set_result(replies)
        except Exception as error:  # noqa: BLE001 - raised by the calls
            self._lose(error)
        finally:
            await connection.disconnect(nowait=True)

    def _lose(self, error: Exception) -> None:
        """Let all calls under way fail. The next one opens another connection."""
        self._connection = None
        while self._waiting:
            answered, _, _ = self._waiting.popleft()
            if not answered.done():
                answered.set_exception(error)


async def _reply(connection: AbstractConnection) -> Any:  # noqa: ANN401 - as redis
    try:
        return await connection.read_response(timeout=math.inf, disconnect_on_error=False)
    except ResponseError as refusal:
        return refusal
