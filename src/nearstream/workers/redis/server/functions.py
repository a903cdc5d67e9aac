"""Our functions on a server: as functions where it has these, else as scripts."""

import logging
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import NoScriptError, ResponseError

from nearstream.workers.redis.server.function_library import function_library, scripts
from nearstream.workers.redis.server.held_connections import HeldConnections
from nearstream.workers.redis.server.shared_connection import Argument, SharedConnection

_Client = Redis | RedisCluster | SharedConnection | HeldConnections

_log = logging.getLogger(__name__)

_scripted: WeakSet[_Client] = WeakSet()  # clients of servers without functions


def as_taken(client: _Client, words: Sequence[Argument]) -> Sequence[Argument]:
    """Return a command as the server of this client takes it."""
    if client in _scripted and words[0] in ("FCALL", "FCALL_RO"):
        return ("EVALSHA", scripts()[str(words[1])].sha, *words[2:])
    return words


def lacks_functions(reply: object) -> bool:
    """Return whether a reply says that the server lacks our functions, or all functions."""
    if not isinstance(reply, ResponseError):
        return False
    return isinstance(reply, NoScriptError) or "Function not found" in str(reply) or _is_unknown(reply)


async def load_functions(client: _Client) -> None:
    """Load the functions into all servers that lack them, as scripts where a server knows no functions."""
    targets: list[dict[str, Any]] = [{}]
    if isinstance(client, RedisCluster):
        targets = [{"target_nodes": node} for node in client.get_primaries()]
    for target in targets:
        if client not in _scripted and not await _has_loaded(client, target):
            _log.info("the server has no functions, so scripts are called")
            _scripted.add(client)
        if client in _scripted:
            for script in scripts().values():
                await client.execute_command("SCRIPT", "LOAD", script.source, **target)


async def _has_loaded(client: _Client, target: dict[str, Any]) -> bool:
    """Load the functions into a server, and return whether it knows functions."""
    try:
        await client.execute_command("FUNCTION", "LOAD", function_library()[1], **target)
    except ResponseError as error:
        if _is_unknown(error):
            return False
        if "already exists" not in str(error):
            raise
    return True


def _is_unknown(error: ResponseError) -> bool:
    return str(error).removeprefix("ERR ").lower().startswith("unknown command")
