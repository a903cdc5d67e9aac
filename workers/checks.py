"""How what servers tell of themselves is judged, with the remedy where it is not well."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workers.show import in_bytes

CROWDED_SHARE = 0.8
SKEW_SECONDS = 1.0


class Grade(StrEnum):
    """How a check went."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Check:
    """One check: what was looked at, how it went, what to do about it."""

    grade: Grade
    subject: str
    detail: str


def memory(info: Mapping[str, Any]) -> Check:
    """How much a Redis may still take.

    Args:
        info: What it answers to INFO.
    """
    used, limit, machine = (info.get(name) or 0 for name in ("used_memory", "maxmemory", "total_system_memory"))
    of_machine = f"the machine has {in_bytes(machine)}" if machine else "what the machine has is not told"
    if not limit:
        remedy = "set maxmemory below that, so that a full index pauses its workers, not ends its server"
        return Check(Grade.WARN, "memory", f"{in_bytes(used)} used, no maxmemory, {of_machine}: {remedy}")
    told = f"{in_bytes(used)} used of maxmemory {in_bytes(limit)}, {in_bytes(max(limit - used, 0))} left"
    if machine and limit > machine:
        return Check(Grade.WARN, "memory", f"{told}, but {of_machine}: set maxmemory below that")
    if used < CROWDED_SHARE * limit:
        return Check(Grade.OK, "memory", told)
    remedy = "raise maxmemory, or shorten NEARSTREAM_RETENTION_SECONDS"
    if used < limit:
        return Check(Grade.WARN, "memory", f"{told}: {remedy}; workers pause when none is left")
    return Check(Grade.FAIL, "memory", f"{told}, workers pause: {remedy}")


def persistence(info: Mapping[str, Any]) -> Check:
    """Whether a Redis keeps what it holds over a restart; `info` is what it answers to INFO."""
    if info.get("aof_enabled"):
        return Check(Grade.OK, "redis", "keeps an append-only file")
    return Check(
        Grade.WARN, "redis", "keeps no append-only file, a restart loses the index: set appendonly yes (else `rebuild`)"
    )


def clock(whose: str, ahead_seconds: float, within_seconds: float) -> Check:
    """Whether a clock goes as that of this machine does.

    Args:
        whose: Who has it.
        ahead_seconds: How far it is ahead; below 0: behind.
        within_seconds: How exactly that is known.
    """
    told = f"{whose}'s is {abs(ahead_seconds):.1f} s {'ahead of' if ahead_seconds > 0 else 'behind'} this machine's"
    if abs(ahead_seconds) - within_seconds > SKEW_SECONDS:
        return Check(Grade.WARN, "clock", f"{told}: set both by NTP; retention goes by Redis's, times by records")
    return Check(Grade.OK, "clock", f"{whose}'s and this machine's agree within {SKEW_SECONDS:g} s")


def records_ahead(seconds: float) -> Check:
    """Whether records are dated later than now, by a producer's clock or a broker's; `seconds`: how far, 0: none is."""
    if seconds <= SKEW_SECONDS:
        return Check(Grade.OK, "clock", "no record is dated later than now (a broker tells no time of its own)")
    return Check(
        Grade.WARN,
        "clock",
        f"a record is dated {seconds:.0f} s later than now, until then it counts as the newer of every pair: set the "
        "clocks of who dates records (producers, or brokers) and of this machine by NTP",
    )
