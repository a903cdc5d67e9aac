"""What each worker says of itself.

A worker says its state every few seconds in the hash `{namespace}:workers`, in a field of its own, with the time of the
server. It removes the field when it is stopped, so a worker that says nothing more and is still there has died.
"""

import msgspec

from nearstream.schemas.documents.document import EPOCH, from_milliseconds
from nearstream.schemas.live.state import WorkerState
from nearstream.workers.redis.server.client import Caller, ask, ask_fields, server_time_ms

SAID_SECONDS = 10.0  # after which a worker that says nothing more is gone
GONE_SECONDS = 3_600.0  # after which it is forgotten


class _Said(msgspec.Struct, frozen=True):
    at_ms: int
    state: WorkerState


_UNREADABLE = _Said(0, WorkerState(worker="", role="", group="", state="gone", since=EPOCH, why=""))


async def say_state(client: Caller, namespace: str, state: WorkerState) -> None:
    """Say the state of this worker."""
    key, now_ms = _key(namespace), await server_time_ms(client)
    await ask(client, "HSET", key, state.worker, msgspec.json.encode(_Said(now_ms, state)))
    await ask(client, "PEXPIRE", key, int(1000 * GONE_SECONDS))


async def forget_worker(client: Caller, namespace: str, worker: str) -> None:
    """Forget a worker that is stopped, and those that have been gone for long."""
    key, now_ms = _key(namespace), await server_time_ms(client)
    said = await _said(client, key)
    old = [field for field, each in said.items() if now_ms - each.at_ms > 1000 * GONE_SECONDS]
    await ask(client, "HDEL", key, worker.encode(), *old)


async def worker_states(client: Caller, namespace: str) -> list[WorkerState]:
    """Return the state of each worker, ordered by role and worker."""
    now_ms = await server_time_ms(client)
    said = (await _said(client, _key(namespace))).values()
    states = [_now(each, now_ms) for each in said if now_ms - each.at_ms <= 1000 * GONE_SECONDS]
    return sorted(states, key=lambda state: (state.role, state.worker))


def _now(said: _Said, now_ms: int) -> WorkerState:
    if now_ms - said.at_ms <= 1000 * SAID_SECONDS:
        return said.state
    last = said.state
    why = f"its last state was {last.state}{': ' if last.why else ''}{last.why}"
    return msgspec.structs.replace(last, state="gone", since=from_milliseconds(said.at_ms), why=why)


async def _said(client: Caller, key: bytes) -> dict[bytes, _Said]:
    """Return what each worker says. A field that cannot be read is of none, and counts as very old."""
    return {field: _decoded(value) for field, value in (await ask_fields(client, key)).items()}


def _decoded(value: bytes) -> _Said:
    try:
        return msgspec.json.decode(value, type=_Said)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _UNREADABLE


def _key(namespace: str) -> bytes:
    return f"{{{namespace}}}:workers".encode()
