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
_UNANSWERED = 4_096  # commands: those of 64 questions to an index of 64 slots
_SILENT_SECONDS = 5.0  # after which a server that leaves a call unanswered is asked on a new connection

Argument = bytes | str | int


class SharedConnection:
    """A connection that sends each call at once and reads the replies in the order of the calls.

    A call takes a quarter of the time that a client with a pool needs, and a caller that gives up does not close the
    connection for the others. It is opened by the first call, and again by the first one after it was lost.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: AbstractConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()  # with the time of each call

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
        if self._waiting:
            self._require_answers(loop.time(), len(commands))
        futures: list[asyncio.Future[Any]] = [loop.create_future() for _ in commands]
        self._waiting.extend((future, loop.time()) for future in futures)
        try:
            # The stub of hiredis knows tuples of one item only.
            packed = b"".join([pack_command(tuple(command)) for command in commands])  # type: ignore[arg-type]
            await connection.send_packed_command(packed, check_health=False)
        except BaseException:
            for future in futures:
                future.cancel()  # it keeps its place, because the server may have got the command
            raise
        return await _replies(futures)

    async def aclose(self) -> None:
        """Close the connection. Calls under way fail."""
        tasks = [task for task in (self._opening, self._reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lose(ConnectionError("the connection was closed"))

    def _require_answers(self, now: float, more: int) -> None:
        if now - self._waiting[0][1] > _SILENT_SECONDS:
            error = TimeoutError(f"no reply for {_SILENT_SECONDS:g} s")
            if self._reading is not None:
                self._reading.cancel()
            self._lose(error)
            raise error
        if len(self._waiting) + more > _UNANSWERED:
            raise ConnectionError(f"{len(self._waiting)} commands are unanswered")

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


async def _replies(futures: Sequence[asyncio.Future[Any]]) -> list[Any]:
    """Return the reply to each command, or its refusal. If the connection is lost, its error is raised."""
    if len(futures) == 1:  # as most are. To gather takes longer.
        try:
            return [await futures[0]]
        except ResponseError as refusal:
            return [refusal]
    replies = await asyncio.gather(*futures, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, ResponseError):
            raise reply
    return list(replies)
