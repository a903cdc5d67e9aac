"""Checks of what servers report, and what is said of workers and of topics that none of them reads."""

import re

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.live.state import WorkerState
from nearstream.workers.kafka.lag import GroupMembers, PartitionLag, unread
from nearstream.workers.operations.checks import (
    clock,
    memory,
    persistence,
    public_sentence,
    sentence,
    sentences,
    standing_still,
)

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


START = " since 2023-11-14T22:13:20+00:00"
SIGNATURES = "mine.nearstream.signatures.v1"
ROWS = [
    PartitionLag("d", 0, 5, 0, 9, 3.0),
    PartitionLag("d", 1, 7, 0, 7, None),
    PartitionLag(SIGNATURES, 0, -1, 0, 2, 3.0),
]


def state(name: str, role: str = "all", worker: str = "h:1", why: str = "") -> WorkerState:
    return WorkerState(
        worker=worker, role=role, group="g", state=name, since=from_milliseconds(1_700_000_000_000), why=why
    )  # type: ignore[arg-type] # a literal


def test_a_worker_is_described_with_its_remedy() -> None:
    for given, said in (
        (state("live"), f"worker all (h:1, group g) is live{START}"),
        (
            state("halted", why="4 in a row"),
            f"worker all (h:1, group g) is halted{START}: 4 in a row: look at `nearstream dlq list`, repair the cause, "
            "then stop it and start it again, with --drain to let what waits pass",
        ),
        (
            state("paused", why="no Kafka"),
            f"worker all (h:1, group g) is paused by an outage{START}: no Kafka: work goes on by itself when that "
            "answers again",
        ),
    ):
        assert sentence(given) == said
        assert not re.search("h:1|group g|no Kafka", public_sentence(given))


def test_workers_that_share_a_state_and_its_reason_are_one_sentence() -> None:
    states = [state("paused", role, f"h:{number}", "no Redis") for number in range(12) for role in ("match", "sign")]
    together, alone = sentences([*states, state("halted", why="4 in a row")])
    assert together == (
        f"24 workers (12 match, 12 sign) are paused by an outage{START}: no Redis: work goes on by itself when that "
        "answers again"
    )
    assert alone == sentence(state("halted", why="4 in a row"))


def test_what_stands_still_is_found() -> None:
    for states, still in (
        ([state("live"), state("catching_up"), state("starting")], []),
        ([state("gone"), state("live", worker="h:2")], []),
        ([state("gone"), state("live", "sign", "h:2")], ["gone"]),
        ([state("gone"), state("live", "sign", "h:2"), state("live", "match", "h:3")], []),
        ([state("gone", "sign"), state("halted", worker="h:2")], ["halted"]),
        ([state("paused")], ["paused"]),
    ):
        assert [each.state for each in standing_still(states)] == still


def test_a_topic_that_no_worker_reads_is_named() -> None:
    for members, said in (
        (None, []),
        ({"is_settled": False}, []),
        ({}, ["no worker of group g runs, and 6 records wait: start `nearstream worker`"]),
        ({"count": 1, "hosts": {("d", 0): "h", (SIGNATURES, 0): "h"}}, []),
        (
            {"count": 1, "hosts": {("d", 0): "h"}},
            [f"2 records of {SIGNATURES} wait, and no worker of group g reads them: start `nearstream worker match`"],
        ),
    ):
        known = (
            None
            if members is None
            else GroupMembers(**{"group": "g", "is_settled": True, "count": 0, "hosts": {}} | members)
        )
        assert list(unread(ROWS, known)) == said
    never_read = [PartitionLag("d", 0, -1, 0, 2, 3.0), PartitionLag("d", 1, -1, 0, 0, None)]
    nobody = GroupMembers("g", is_settled=True, count=0, hosts={})
    assert [len(list(unread(rows, nobody))) for rows in (never_read, never_read[1:])] == [1, 0]
