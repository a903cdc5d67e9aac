"""What is said of workers, and of topics that none of them reads."""

from nearstream.workers.kafka.lag import GroupMembers, PartitionLag, unread
from nearstream.workers.operations.checks import public_sentence, sentence, standing_still
from nearstream.workers.redis.kept.worker_states import WorkerState

START = " since 2023-11-14T22:13:20+00:00"
ROWS = [PartitionLag("d", 0, 5, 0, 9, 3.0), PartitionLag("d", 1, 7, 0, 7, None), PartitionLag("s", 0, -1, 0, 2, 3.0)]


def state(name: str, role: str = "all", worker: str = "h:1", why: str = "") -> WorkerState:
    return WorkerState(worker=worker, role=role, group="g", state=name, since_ms=1_700_000_000_000, why=why)  # type: ignore[arg-type] # a literal


def test_a_worker_is_described_with_its_remedy() -> None:
    for given, said in (
        (state("live"), f"worker all (h:1, group g) is live{START}"),
        (
            state("halted", why="4 in a row"),
            f"worker all (h:1, group g) is halted{START}: 4 in a row: look at `nearstream dlq list`, repair the cause, "
            "then stop this worker and start it again",
        ),
        (
            state("paused", why="no Kafka"),
            f"worker all (h:1, group g) is paused by an outage{START}: no Kafka: it goes on by itself when that "
            "answers again",
        ),
    ):
        assert sentence(given) == said
        assert "h:1" not in public_sentence(given)


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
        ({"count": 1, "hosts": {("d", 0): "h", ("s", 0): "h"}}, []),
        (
            {"count": 1, "hosts": {("d", 0): "h"}},
            ["2 records of s wait, and no worker of group g reads them: start `nearstream worker`"],
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
