"""Which workers have halted, as they say themselves.

A halted worker says so every second in the hash `{namespace}:halted`, in a field of its own, with the time of the
server. What it has not said again for a while no longer counts, because then it was stopped.
"""

import msgspec

from nearstream.workers.redis_index.client import Caller, ask, server_time_ms

SAID_SECONDS = 10.0  # after which a worker that says nothing more is no longer taken for halted


class Halt(msgspec.Struct, frozen=True, kw_only=True):
    """What a halted worker says of itself.

    Attributes:
        worker: The host and the process id.
        role: The role of the worker.
        group: The consumer group.
        since_ms: When it halted, in milliseconds since 1970 by the clock of its machine.
        why: Which limit was exceeded, and by what.
    """

    worker: str
    role: str
    group: str
    since_ms: int
    why: str

    def __str__(self) -> str:
        """Say it in a line, with what to do."""
        remedy = "look at `nearstream dlq list`, repair the cause, then stop this worker and start it again"
        return f"worker {self.role} ({self.worker}, group {self.group}) is halted: {self.why}: {remedy}"


class _Said(msgspec.Struct, frozen=True):
    at_ms: int
    halt: Halt


async def say_halted(client: Caller, namespace: str, halt: Halt) -> None:
    """Say that this worker is halted, and forget the workers that say so no longer.

    Raises:
        IndexUnavailableError: The server does not answer.
        SettingsError: The server refuses our name, password or rights.
    """
    key, now_ms = _key(namespace), await server_time_ms(client)
    stale = [field for field, said in (await _said(client, key)).items() if not _counts(said, now_ms)]
    if stale:
        await ask(client, "HDEL", key, *stale)
    await ask(client, "HSET", key, halt.worker, msgspec.json.encode(_Said(now_ms, halt)))
    await ask(client, "PEXPIRE", key, int(6000 * SAID_SECONDS))


async def halts(client: Caller, namespace: str) -> list[Halt]:
    """Return the workers that are halted now, ordered by the time of the halt.

    Raises:
        IndexUnavailableError: The server does not answer.
        SettingsError: The server refuses our name, password or rights.
    """
    now_ms = await server_time_ms(client)
    said = (await _said(client, _key(namespace))).values()
    return sorted((each.halt for each in said if _counts(each, now_ms)), key=lambda halt: (halt.since_ms, halt.worker))


def _counts(said: _Said, now_ms: int) -> bool:
    return now_ms - said.at_ms <= 1000 * SAID_SECONDS


async def _said(client: Caller, key: bytes) -> dict[bytes, _Said]:
    found = await ask(client, "HGETALL", key)
    # A client answers with a dictionary, a shared connection with the list that Redis sends.
    fields = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    return {field: msgspec.json.decode(value, type=_Said) for field, value in fields.items()}


def _key(namespace: str) -> bytes:
    return f"{{{namespace}}}:halted".encode()
