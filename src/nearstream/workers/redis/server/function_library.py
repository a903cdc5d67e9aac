"""The functions of a store: their Lua sources, with the constants of Python in them."""

import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b, sha1
from importlib.resources import files
from typing import NamedTuple

from nearstream.schemas.documents import document
from nearstream.streams.ingest import lineage
from nearstream.streams.store import limits, messages, record, registration
from nearstream.workers.redis.server import layout

_SOURCES = ("slot.lua", "sweeping.lua", "buckets.lua", "history.lua", "families.lua", "decisions.lua", "claims.lua")
# What a script begins with. It makes all functions, which takes some microseconds, and calls one.
_SCRIPT = """\
local called
local function register(name, callback)
  if type(name) == 'table' then name, callback = name.function_name, name.callback end
  if name == '@@' then called = callback end
end
"""
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


class Script(NamedTuple):
    """A script for servers without functions.

    Attributes:
        sha: By which EVALSHA calls it.
        source: Its text in Lua.
    """

    sha: str
    source: str


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


@cache
def scripts() -> Mapping[str, Script]:
    """Return for each function the script that does the same, by the name of the function."""
    suffix, source = function_library()
    _, _, functions = source.replace("redis.register_function", "register").partition("\n")
    names = re.findall(rf"'(nearstream_store_\w+_{suffix})'", source)
    names += [f"nearstream_store_{name}_{suffix}" for name in re.findall(r"^define\('(\w+)'", source, re.MULTILINE)]
    sources = {name: f"{_SCRIPT.replace('@@', name)}{functions}\nreturn called(KEYS, ARGV)\n" for name in names}
    return {
        name: Script(sha1(text.encode(), usedforsecurity=False).hexdigest(), text) for name, text in sources.items()
    }


def function_name(call: str) -> str:
    """Return the name of the function of a call."""
    return f"nearstream_store_{call}_{function_library()[0]}"


def _literal(value: float | str | bytes) -> str:
    if isinstance(value, bytes):
        return "'" + "".join(f"\\{byte}" for byte in value) + "'"
    return f"'{value}'" if isinstance(value, str) else str(value)
