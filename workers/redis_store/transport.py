"""Carries the calls of a lane to the slots of a store, in one pipeline for each server."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import RedisCluster
from redis.exceptions import ResponseError

from nearstream.streams.store.store import Call
from nearstream.workers.redis_index.client import Client
from nearstream.workers.redis_index.errors import errors_mapped
from nearstream.workers.redis_store.calls import Command, LaneCalls
from nearstream.workers.redis_store.function_library import function_library
from nearstream.workers.redis_store.layout import StoreLayout


class RedisTransport:
    """Carries the calls of one lane."""

    def __init__(self, client: Client, layout: StoreLayout, calls: LaneCalls) -> None:
        """Take a client of a server, or of a cluster."""
        self._client, self._layout, self._calls = client, layout, calls

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls, as `Transport.all` does."""
        commands = [command for call in calls for command in self._calls.commands(call)]
        with errors_mapped():
            replies = await self._exchange(commands)
            failed = next((reply for reply in replies if isinstance(reply, Exception)), None)
            if failed is not None:
                raise failed
        answers: dict[int, list[Any]] = {id(call): [] for call in calls}
        for command, reply in zip(commands, replies, strict=True):
            answers[id(command.call)] += self._calls.answers(command, reply)
        return [answers[id(call)] for call in calls]

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies of the servers, errors among them, loading the functions where they are missing."""
        replies = await self._pipelined(commands)
        missing = [at for at, reply in enumerate(replies) if _lacks_functions(reply)]
        if missing:
            await load_functions(self._client)
            for at, reply in zip(missing, await self._pipelined([commands[at] for at in missing]), strict=True):
                replies[at] = reply
        return replies

    async def _pipelined(self, commands: Sequence[Command]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command.arguments, **await self._target(command.call.slot))
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return replies

    async def _target(self, slot: int) -> dict[str, Any]:
        """Return the option that sends a command to the server of a slot."""
        if not isinstance(self._client, RedisCluster):
            return {}
        await self._client.initialize()
        return {"target_nodes": self._client.get_node_from_key(self._layout.tag(slot).decode())}


async def load_functions(client: Client) -> None:
    """Load the functions into all servers that lack them."""
    targets: list[dict[str, Any]] = [{}]
    if isinstance(client, RedisCluster):
        targets = [{"target_nodes": node} for node in client.get_primaries()]
    for target in targets:
        try:
            await client.execute_command("FUNCTION LOAD", function_library()[1], **target)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise


def _lacks_functions(reply: object) -> bool:
    return isinstance(reply, ResponseError) and "Function not found" in str(reply)
