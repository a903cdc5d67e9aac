"""The functions of a store: their Lua sources, with the constants of Python in them."""

import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b, sha1
from importlib.resources import files
from typing import NamedTuple

from nearstream.schemas.documents.document import CLOCKS_MS
from nearstream.streams.ingest.sites import SITE_BYTES
from nearstream.streams.store import limits
from nearstream.streams.store.families import ADDRESS_BYTES
from nearstream.streams.store.messages import FAMILY_ID_BYTES, LINK_BYTES
from nearstream.streams.store.registration import DOCUMENT_BYTES, NUMBER_BYTES, TIME_BYTES, Status
from nearstream.workers.redis.server import layout
from nearstream.workers.redis.server.layout import STATE_FORMAT, STUB, KeyKind, python_struct

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


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str)


CONSTANTS: dict[str, int | float | str] = {
    **{name: value for name, value in (vars(limits) | vars(layout)).items() if name.isupper() and _is_plain(value)},
    "ADDRESS_BYTES": ADDRESS_BYTES,
    "CLOCKS_MS": CLOCKS_MS,
    "LINK_BYTES": LINK_BYTES,
    "NUMBER_BYTES": NUMBER_BYTES,
    "TIME_BYTES": TIME_BYTES,
    "NO_STATE": rf"\{STUB}" + r"\0" * (python_struct(STATE_FORMAT).size - 1),
    "DOCUMENT_BYTES": DOCUMENT_BYTES,
    "NO_MARK": r"\0" * python_struct(layout.MARK_OF_TIME_FORMAT).size,
    "PATCH": r"\255\255",
    "NO_NUMBER": r"\0" * NUMBER_BYTES,
    "NO_ID": r"\0" * FAMILY_ID_BYTES,
    "NO_SITE": r"\0" * SITE_BYTES,
    **{f"{kind.name}_KEY": kind.decode() for kind in KeyKind},
    **{status.name: status.value for status in Status},
}


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


def _literal(value: float | str) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
