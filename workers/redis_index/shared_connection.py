"""One connection to Redis on which many calls are under way at a time."""

import asyncio
import math
from collections import deque
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ConnectionError, ResponseError, TimeoutError

_CONNECT_SECONDS = 1.0
_UNANSWERED = 256  # calls
_SILENT_SECONDS = 5.0  # after which a server that leaves a call unanswered is asked on a new connection

Argument = bytes | str | int


class SharedConnection:
    """A connection that sends each call at once and reads the replies in the order of the calls.

    A call takes a quarter of the time that a client with a pool needs, and a caller that gives up does not close the
    connection for the others. It is opened by the first call, and again by the first one after it was lost.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        """Take a pool that makes the connections, without a timeout for their sockets."""
        self._pool = pool
        self._connection: AbstractConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()  # with the time of each call

    async def execute_command(self, *arguments: Argument) -> Any:  # noqa: ANN401 - as redis
        """Return the reply to a command.

        Raises:
            ConnectionError: There is no connection, or too many calls are unanswered.
            TimeoutError: The server has left calls unanswered for too long.
            ResponseError: The server refuses the command.
        """
        if self._connection is None:
            await self._opened()
        connection, loop = self._connection, asyncio.get_running_loop()
        if connection is None or not connection.is_connected:
            raise ConnectionError("the connection was lost")
        if self._waiting:
            self._require_answers(loop.time())
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((future, loop.time()))
        try:
            # The stub of hiredis knows tuples of one item only.
            await connection.send_packed_command(pack_command(arguments), check_health=False)  # type: ignore[arg-type]
        except BaseException:
            future.cancel()  # it keeps its place, because the server may have got the command
            raise
        return await future

    async def aclose(self) -> None:
        """Close the connection. Calls under way fail."""
        tasks = [task for task in (self._opening, self._reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lose(ConnectionError("the connection was closed"))

    def _require_answers(self, now: float) -> None:
        if now - self._waiting[0][1] > _SILENT_SECONDS:
            error = TimeoutError(f"no reply for {_SILENT_SECONDS:g} s")
            if self._reading is not None:
                self._reading.cancel()
            self._lose(error)
            raise error
        if len(self._waiting) >= _UNANSWERED:
            raise ConnectionError(f"{_UNANSWERED} calls are unanswered")

    async def _opened(self) -> None:
        """Open the connection, once for all calls that wait for it."""
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

    def _has_opened(self, opening: asyncio.Task[None]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # raised by the calls, which may all have given up

    async def _read(self, connection: AbstractConnection) -> None:
        """Hand each reply to the call that it belongs to, until the connection is lost."""
        try:
            while True:
                try:
                    reply, error = await connection.read_response(timeout=math.inf, disconnect_on_error=False), None
                except ResponseError as refusal:
                    reply, error = None, refusal
                future, _ = self._waiting.popleft()
                if future.done():
                    continue  # its call has given up
                if error is None:
                    future.set_result(reply)
                else:
                    future.set_exception(error)
        except Exception as error:  # noqa: BLE001 - raised by the calls
            self._lose(error)
        finally:
            await connection.disconnect(nowait=True)

    def _lose(self, error: Exception) -> None:
        """Let all calls under way fail. The next one opens another connection."""
        self._connection = None
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)
