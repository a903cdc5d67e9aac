"""Checks of what servers report."""

from nearstream.workers.operations.checks import clock, memory, persistence, records_ahead

GIB = 1 << 30


def info(used: int = GIB, limit: int = 4 * GIB, machine: int = 8 * GIB) -> dict[str, object]:
    return {"used_memory": used, "maxmemory": limit, "total_system_memory": machine}


def test_memory_that_is_left_is_told_with_the_remedy() -> None:
    for told, grade, words in (
        (info(), "OK", "1.0 GiB used of maxmemory 4.0 GiB, 3.0 GiB left"),
        (info(machine=0), "OK", "3.0 GiB left"),
        (info(used=7 * GIB // 2), "WARN", "raise maxmemory, or shorten NEARSTREAM_RETENTION_SECONDS"),
        (info(used=5 * GIB), "FAIL", "0 B left, workers pause: raise maxmemory"),
        (info(limit=9 * GIB), "WARN", "but the machine has 8.0 GiB: set maxmemory below that"),
        (info(limit=0), "WARN", "1.0 GiB used, no maxmemory, the machine has 8.0 GiB: set maxmemory below that"),
        ({}, "WARN", "no maxmemory, the memory of the machine is unknown"),
    ):
        check = memory(told)
        assert (check.grade, check.subject) == (grade, "memory")
        assert words in check.detail


def test_a_server_that_keeps_nothing_over_a_restart_is_told() -> None:
    assert persistence({"aof_enabled": 1}).grade == "OK"
    kept = persistence({"aof_enabled": 0})
    assert kept.grade == "WARN"
    assert "set appendonly yes" in kept.detail


def test_a_clock_that_goes_wrong_is_told() -> None:
    for ahead, within, grade, words in (
        (0.9, 0.0, "OK", "agree within 1 s"),
        (-0.9, 0.0, "OK", "agree within 1 s"),
        (2.5, 0.1, "WARN", "Redis is 2.5 s ahead of this machine: set both clocks by NTP"),
        (-2.5, 0.1, "WARN", "Redis is 2.5 s behind this machine: set both clocks by NTP"),
        (2.5, 2.0, "OK", "agree"),  # a slow answer is too imprecise
    ):
        check = clock("Redis", ahead, within)
        assert (check.grade, check.subject) == (grade, "clock")
        assert words in check.detail


def test_records_from_the_future_are_told() -> None:
    assert records_ahead(0.0).grade == "OK"
    assert records_ahead(1.0).grade == "OK"
    assert records_ahead(90.0).grade == "WARN"
    assert "a record has a timestamp 90 s in the future" in records_ahead(90.0).detail
