"""Carries the calls of a lane to slots, in one pipeline for each server."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from hiredis import pack_command
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import Connection
from redis.exceptions import (
    AskError,
    ConnectionError,
    MovedError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Call
from nearstream.workers.redis.server.client import Shared
from nearstream.workers.redis.server.errors import errors_mapped
from nearstream.workers.redis.server.functions import lacks_functions, load_functions
from nearstream.workers.redis.server.layout import StoreLayout
from nearstream.workers.redis.server.shared_connection import SharedConnection
from nearstream.workers.redis.store.calls import Command, LaneCalls

_ATTEMPTS = 5
_CURRENT_CAP = 16_384  # documents of which the lane remembers the current state
_MOVING_SECONDS = 0.05  # before a slot is asked again that is on its way to another server

_Server = ClusterNode | SharedConnection


class RedisTransport:
    """Carries the calls of one lane."""

    def __init__(self, client: Shared, layout: StoreLayout, calls: LaneCalls) -> None:
        """Take a connection, or the client of a cluster."""
        self._client, self._layout, self._calls = client, layout, calls
        self._current: dict[bytes, int] = {}  # of documents, the one registered first in front

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls, as `Transport.all` does.

        If replicas have to confirm what is decided, they have done so when this returns.
        """
        registers = any(call.name == "register" for call in calls)
        answers = await (self._registered(calls) if registers else self._sent(calls, [()] * len(calls)))
        confirming = self._calls.confirming(calls)
        if confirming:
            await self._sent(confirming, [()] * len(confirming))
        return answers

    async def _registered(self, calls: Sequence[Call]) -> Sequence[list[Any]]:
        """Return the replies to calls. Registrations are made again with the keys that they ask for.

        An update asks once, unless this lane remembers the former state. A late state or a removal asks once for each
        group of former states that it goes back to.
        """
        answers = await self._sent(calls, [self._remembered(call) for call in calls])
        registering = [at for at, call in enumerate(calls) if call.name == "register"]
        declared: list[set[int]] = [set() for _ in calls]
        while left := [(at, places) for at in registering if (places := _asking(answers[at]))]:
            for at, places in left:
                more = {answers[at][place] for place in places}
                if more <= declared[at]:
                    raise RuntimeError(f"slot {calls[at].slot} asks again for the keys of states {sorted(more)}")
                declared[at] |= more
            again = [calls[at]._replace(items=[calls[at].items[place] for place in places]) for at, places in left]
            found = await self._sent(again, [declared[at] for at, _ in left])
            for (at, places), some in zip(left, found, strict=True):
                for place, answer in zip(places, some, strict=True):
                    answers[at][place] = answer
        for at in registering:
            self._remember(calls[at], answers[at])
        return answers

    def _remembered(self, call: Call) -> list[int]:
        """Return the states that were current when this lane last registered the documents of a call."""
        current = self._current
        return (
            [current[one.document] for one in call.items if one.document in current] if call.name == "register" else []
        )

    def _remember(self, call: Call, answers: Sequence[Registered]) -> None:
        current = self._current
        for one, answer in zip(call.items, answers, strict=True):
            if answer.status is Status.NEW and not answer.is_late:
                current.pop(one.document, None)
                current[one.document] = answer.number
        while len(current) > _CURRENT_CAP:
            del current[next(iter(current))]

    async def _sent(self, calls: Sequence[Call], former: Sequence[Collection[int]]) -> list[list[Any]]:
        """Return the replies to calls that declare the keys of these former states."""
        both = zip(calls, former, strict=True)
        commands = [command for call, numbers in both for command in self._calls.commands(call, numbers)]
        commands.sort(key=lambda command: command.arguments[0] == "WAIT")  # so that a server waits once for all slots
        with errors_mapped():
            replies = await self._exchange(commands)
            failed = next((reply for reply in replies if isinstance(reply, Exception)), None)
            # Outside of a cluster, that a slot has moved is raised as it is: the server is a node of one.
            if isinstance(failed, AskError | MovedError) and isinstance(self._client, RedisCluster):
                raise IndexUnavailableError("a slot is on its way to another server") from failed
            if failed is not None:
                raise failed
        answers: dict[int, list[Any]] = {id(call): [] for call in calls}
        for command, reply in zip(commands, replies, strict=True):
            answers[id(command.call)] += self._calls.answers(command, reply)
        return [answers[id(call)] for call in calls]

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, errors among them.

        A command is sent again where a server lacks the functions, or does not have the slot any more or not yet.
        """
        replies: list[Any] = [None] * len(commands)
        left: Iterable[int] = range(len(commands))
        for _ in range(_ATTEMPTS):
            places: dict[_Server, list[int]] = {}
            for at in left:
                places.setdefault(await self._server(commands[at].call.slot), []).append(at)
            sent = [self._pipeline(server, [commands[at] for at in some]) for server, some in places.items()]
            # One server needs no task of its own, which takes a tenth of the time of a small call.
            received = await asyncio.gather(*sent) if len(sent) > 1 else [await one for one in sent]
            for some, got in zip(places.values(), received, strict=True):
                for at, reply in zip(some, got, strict=True):
                    replies[at] = reply
            moved = {id(commands[at].call) for at in left if _is_repeatable(replies[at])}
            left = [at for at in left if id(commands[at].call) in moved and _is_to_repeat(commands[at], replies[at])]
            if not left:
                break
            await self._prepare([replies[at] for at in left])
        return replies

    async def _server(self, slot: int) -> _Server:
        if isinstance(self._client, SharedConnection):
            return self._client
        await self._client.initialize()
        node = self._client.get_node_from_key(self._layout.tag(slot).decode())
        if node is None:
            raise ConnectionError(f"no server of the cluster has slot {slot}")
        return node

    async def _pipeline(self, server: _Server, commands: Sequence[Command]) -> list[Any]:
        words = [command.arguments for command in commands]
        if not isinstance(server, ClusterNode):
            return await server.execute_commands(words)
        # The packing of redis-py takes four times as long.
        packed = b"".join([pack_command(tuple(each)) for each in words])  # type: ignore[arg-type]
        try:
            return await _exchanged(server, packed, len(commands))
        except (RedisError, OSError, AttributeError) as error:  # see `errors.py` for the last one
            if isinstance(self._client, RedisCluster):
                # To close the client would close the connections of all other lanes too.
                with suppress(RedisClusterException):
                    await self._client.nodes_manager.initialize()
            return [error] * len(commands)

    async def _prepare(self, errors: Sequence[ResponseError]) -> None:
        if any(map(lacks_functions, errors)):
            await load_functions(self._client)
        moved = next((error for error in errors if isinstance(error, MovedError)), None)
        if moved is not None and isinstance(self._client, RedisCluster):
            await self._client.nodes_manager.move_slot(moved)
        if any(isinstance(error, AskError | TryAgainError) for error in errors):
            await asyncio.sleep(_MOVING_SECONDS)


async def _exchanged(server: ClusterNode, packed: bytes, count: int) -> list[Any]:
    """Send packed commands and return their replies."""
    connection = server.acquire_connection()
    try:
        await connection.send_packed_command(packed, check_health=False)
        return [await _reply(connection) for _ in range(count)]
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        server.release(connection)


async def _reply(connection: Connection) -> Any:  # noqa: ANN401 - as redis
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _asking(answers: Sequence[object]) -> list[int]:
    return [place for place, answer in enumerate(answers) if isinstance(answer, int)]


def _is_to_repeat(command: Command, reply: object) -> bool:
    """Return whether a command is sent again, if one of its call was refused.

    A server that has lost a slot does not wait for what is written elsewhere.
    """
    return command.call.name == "wait" or _is_repeatable(reply)


def _is_repeatable(reply: object) -> bool:
    return isinstance(reply, MovedError | AskError | TryAgainError) or lacks_functions(reply)
