"""Say in a sentence how each worker does, with the remedy where it stands still."""

from collections.abc import Sequence

from nearstream.workers.operations.terminal import utc_time
from nearstream.workers.redis.kept.worker_states import WorkerState

_SAID = {
    "starting": "has no partitions yet",
    "live": "is live",
    "catching_up": "is catching up",
    "paused": "is paused by an outage",
    "halted": "is halted",
    "gone": "is gone without a stop",
}
_REMEDIES = {
    "paused": "it goes on by itself when that answers again",
    "halted": "look at `nearstream dlq list`, repair the cause, then stop this worker and start it again",
    "gone": "look at its log, and start it again",
}
_DUTIES = {"all": frozenset(("sign", "match"))}


def sentence(state: WorkerState) -> str:
    """Return how a worker does since when, why, and what to do."""
    parts = [f"{named(state)} {_SAID[state.state]} since {utc_time(state.since_ms)}"]
    return ": ".join([*parts, *filter(None, (state.why, _REMEDIES.get(state.state)))])


def public_sentence(state: WorkerState) -> str:
    """Return how a worker does, without its host."""
    return ": ".join(filter(None, (f"worker {state.role} {_SAID[state.state]}", state.why)))


def named(state: WorkerState) -> str:
    """Return a name of a worker: its role, host, process and group."""
    return f"worker {state.role} ({state.worker}, group {state.group})"


def standing_still(states: Sequence[WorkerState]) -> list[WorkerState]:
    """Return the workers that are halted, paused, or gone without another one."""
    served = {(each.group, duty) for each in states if each.state != "gone" for duty in _duties(each)}
    return [each for each in states if each.state in ("halted", "paused") or _is_missed(each, served)]


def _duties(state: WorkerState) -> frozenset[str]:
    return _DUTIES.get(state.role, frozenset((state.role,)))


def _is_missed(state: WorkerState, served: set[tuple[str, str]]) -> bool:
    return state.state == "gone" and any((state.group, duty) not in served for duty in _duties(state))
