"""The functions of a store: their Lua sources, with the constants of Python in them, and how a server gets them."""

import re
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ResponseError

from nearstream.schemas.documents import document
from nearstream.streams.ingest import lineage
from nearstream.streams.store import limits, messages, record, registration
from nearstream.workers.redis.server import layout
from nearstream.workers.redis.server.shared_connection import SharedConnection

_SOURCES = ("slot.lua", "sweeping.lua", "buckets.lua", "history.lua", "families.lua", "decisions.lua", "claims.lua")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")

MODULES = (document, lineage, limits, messages, record, registration, layout)
CONSTANTS: dict[str, int | float | str | bytes] = {
    **{
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float | str | bytes)
    },
    **{f"{kind.name}_KEY": kind.decode() for kind in layout.KeyKind},
    **{status.name: status.value for status in registration.Status},
}
"""What the sources may name: the constants of some modules, each kind of key, and each status."""


@cache
def function_library() -> tuple[str, str]:
    """Return the suffix of the function names, and the source that defines them.

    The suffix is derived from the source, constants included, so that two releases can run side by side.
    """
    source = "".join((files("nearstream.workers.redis.server") / "lua" / name).read_text("utf-8") for name in _SOURCES)
    # Values take the place of their names, because a function sees at most 60 variables of those around it.
    source = _NAME.sub(lambda name: _literal(CONSTANTS[name[0]]) if name[0] in CONSTANTS else name[0], source)
    suffix = blake2b(source.encode(), digest_size=4).hexdigest()
    return suffix, source.replace("@@", suffix)


def function_name(call: str) -> str:
    """Return the name of the function of a call."""
    return f"nearstream_store_{call}_{function_library()[0]}"


def lacks_functions(reply: object) -> bool:
    """Return whether a reply says that the server lacks our functions."""
    return isinstance(reply, ResponseError) and "Function not found" in str(reply)


async def load_functions(client: Redis | RedisCluster | SharedConnection) -> None:
    """Load the functions into all servers that lack them."""
    targets: list[dict[str, Any]] = [{}]
    if isinstance(client, RedisCluster):
        targets = [{"target_nodes": node} for node in client.get_primaries()]
    for target in targets:
        try:
            await client.execute_command("FUNCTION", "LOAD", function_library()[1], **target)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise


def _literal(value: float | str | bytes) -> str:
    if isinstance(value, bytes):
        return "'" + "".join(f"\\{byte}" for byte in value) + "'"
    return f"'{value}'" if isinstance(value, str) else str(value)
