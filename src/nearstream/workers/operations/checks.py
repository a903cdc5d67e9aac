"""Say how the signer, Redis, Kafka and each worker do, with a remedy where one is needed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nearstream.schemas.live.state import WorkerState
from nearstream.workers.operations.terminal import in_bytes

CROWDED_RATIO = 0.8
SKEW_SECONDS = 1.0
_SAID = {
    "starting": "has no partitions yet",
    "live": "is live",
    "catching_up": "is catching up",
    "paused": "is paused by an outage",
    "halted": "is halted",
    "gone": "is gone without a stop",
}
_REMEDIES = {
    "paused": "work goes on by itself when that answers again",
    "halted": "look at `nearstream dlq list`, repair the cause, then stop it and start it again, with --drain to "
    "let what waits pass",
    "gone": "look at its log, and start it again",
}
_DUTIES = {"all": frozenset(("sign", "match"))}


Grade = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """One check: its result, its subject, and what to do."""

    grade: Grade
    subject: str
    detail: str


def memory(info: Mapping[str, Any]) -> Check:
    """Check how much memory a Redis server has left, by its reply to INFO."""
    used, limit, machine = (info.get(name) or 0 for name in ("used_memory", "maxmemory", "total_system_memory"))
    of_machine = f"the machine has {in_bytes(machine)}" if machine else "the memory of the machine is unknown"
    if not limit:
        remedy = "set maxmemory below that, so that a full index pauses the workers and does not end the server"
        return Check("WARN", "memory", f"{in_bytes(used)} used, no maxmemory, {of_machine}: {remedy}")
    left = f"{in_bytes(used)} used of maxmemory {in_bytes(limit)}, {in_bytes(max(limit - used, 0))} left"
    if machine and limit > machine:
        return Check("WARN", "memory", f"{left}, but {of_machine}: set maxmemory below that")
    if used < CROWDED_RATIO * limit:
        return Check("OK", "memory", left)
    remedy = "raise maxmemory, or shorten NEARSTREAM_RETENTION_SECONDS"
    if used < limit:
        return Check("WARN", "memory", f"{left}: {remedy}; workers pause when none is left")
    return Check("FAIL", "memory", f"{left}, workers pause: {remedy}")


def persistence(info: Mapping[str, Any]) -> Check:
    """Check that a Redis server keeps its data over a restart, by its reply to INFO."""
    if info.get("aof_enabled"):
        return Check("OK", "redis", "keeps an append-only file")
    problem = "keeps no append-only file, so a restart loses the index"
    return Check("WARN", "redis", f"{problem}: set appendonly yes, or run `nearstream rebuild` after a restart")


def clock(server: str, ahead_seconds: float, within_seconds: float) -> Check:
    """Check how far the clock of a server is ahead of this machine's, with the uncertainty of that."""
    if abs(ahead_seconds) - within_seconds <= SKEW_SECONDS:
        return Check("OK", "clock", f"{server} and this machine agree within {SKEW_SECONDS:g} s")
    direction = "ahead of" if ahead_seconds > 0 else "behind"
    problem = f"{server} is {abs(ahead_seconds):.1f} s {direction} this machine"
    reason = f"retention uses the clock of {server}, documents the times of their records"
    return Check("WARN", "clock", f"{problem}: set both clocks by NTP, because {reason}")


def records_ahead(seconds: float) -> Check:
    """Check how far the timestamp of a record, by a producer or a broker, is in the future. 0: none is."""
    if seconds <= SKEW_SECONDS:
        return Check("OK", "clock", "no record has a timestamp in the future (brokers do not report their time)")
    problem = f"a record has a timestamp {seconds:.0f} s in the future, until then it is the newer of every pair"
    remedy = "set by NTP the clocks that set timestamps, of producers or brokers, and the clock of this machine"
    return Check("WARN", "clock", f"{problem}: {remedy}")


def sentence(state: WorkerState) -> str:
    """Return how a worker does since when, why, and what to do."""
    return _about([state])


def sentences(states: Iterable[WorkerState]) -> list[str]:
    """Return one sentence for all workers of a state that share its reason."""
    alike: dict[tuple[str, str], list[WorkerState]] = {}
    for state in states:
        alike.setdefault((state.state, state.why), []).append(state)
    return [_about(each) for each in alike.values()]


def _about(states: Sequence[WorkerState]) -> str:
    first, said = min(states, key=lambda each: each.since), _SAID[states[0].state]
    name = named(first)
    if len(states) > 1:
        roles = Counter(each.role for each in states)
        name = f"{len(states)} workers ({', '.join(f'{roles[role]} {role}' for role in sorted(roles))})"
        said = said.replace("is ", "are ", 1)
    parts = [f"{name} {said} since {first.since.isoformat()}"]
    return ": ".join([*parts, *filter(None, (first.why, _REMEDIES.get(first.state)))])


def public_sentence(state: WorkerState) -> str:
    """Return how a worker does, without hosts, which the reason of an outage may name."""
    why = "" if state.state in ("paused", "gone") else state.why
    return ": ".join(filter(None, (f"worker {state.role} {_SAID[state.state]}", why)))


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
