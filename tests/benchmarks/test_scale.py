"""How one collection grows is measured on several servers at once."""

import json

import pytest

from benchmarks.charts import svg
from benchmarks.scale import MATCH_BATCH, PARTITIONS, chart, dealt, main


def test_each_partition_has_one_worker_and_offsets_without_gaps() -> None:
    hands = dealt(range(40 * MATCH_BATCH), 3)  # type: ignore[arg-type]
    partitions = [{partition for partition, _, _ in hand} for hand in hands]
    assert sum(map(len, partitions)) == len(set().union(*partitions)) == PARTITIONS
    offsets = [first for hand in hands for partition, first, _ in hand if partition == 0]
    assert offsets == [0, MATCH_BATCH, 2 * MATCH_BATCH]
    assert sorted(each for hand in hands for _, _, batch in hand for each in batch) == [*range(40 * MATCH_BATCH)]


def test_what_servers_and_workers_use_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--documents", "96", "--slots", "2", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert (row["slots"], row["servers"], row["workers"]) == (2, 2, 1)
    assert 0 < row["busiest_server_us"] < row["server_us"]
    assert min(row["worker_us"], row["calls"]) > 0
    assert row["ceiling"] <= row["model"]
    assert "2 slots, 2 servers" in svg(chart(found, "command"))
