"""Name the server behind an address, and what is known of servers of its kind."""

from collections.abc import Mapping
from typing import Any

from nearstream.workers.operations.doctor_checks import Check, Grade

TESTED, REFUSED = "tested", "does not work"
# The rows of the table in docs/operations.md that a server can be told to belong to.
KNOWN = {
    "Redis 6": TESTED,
    "Redis 7.0": TESTED,
    "Redis 7.2": TESTED,
    "Redis 7.4": TESTED,
    "Redis 8": TESTED,
    "Valkey 8": TESTED,
    "Valkey 9": TESTED,
    "Kvrocks": REFUSED,
    "Dragonfly": REFUSED,
}
_OTHERS = {"kvrocks_version": "Kvrocks", "dragonfly_version": "Dragonfly"}


def server(info: Mapping[str, Any]) -> Check:
    """Name a server and its row of the table.

    Args:
        info: Its reply to INFO.
    """
    name, row = _named(info)
    known = KNOWN.get(row)
    where = "see the table of servers in docs/operations.md"
    if known is None:
        return Check(Grade.WARN, "redis", f"{name} answers, of which nothing is known: {where}")
    grade = Grade.FAIL if known == REFUSED else Grade.OK
    return Check(grade, "redis", f"{name} answers ({row}: {known}, {where})")


def _named(info: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of a server with its version, and its row."""
    for field, kind in _OTHERS.items():
        if field in info:
            return f"{kind} {info[field]}", kind
    kind = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get(f"{kind.lower()}_version", "?"))
    major, minor = (*version.split("."), "")[:2]
    return f"{kind} {version}", f"{kind} {major}.{minor}" if f"{kind} {major}.{minor}" in KNOWN else f"{kind} {major}"
