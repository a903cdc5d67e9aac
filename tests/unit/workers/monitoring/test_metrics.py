"""Metrics count what was delivered."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.judge import MatchCounts
from nearstream.streams.store.registration import Status
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import GroupMetrics, WorkerMetrics, count_matched, count_verdict, register

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"


def _value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_removal_of_a_document_that_is_not_known_is_counted_as_one() -> None:
    before = _value("nearstream_documents_total", outcome="removed_unknown")
    removals = [ConsumerRecord("signatures", 0, offset, 1000, b"a/%d" % offset, None, []) for offset in (2, 3)]
    retraction = ProducerRecord("t", b"a/2", b"{}", [("ce_type", b"nearstream.retraction.v1")])
    count_matched(removals[:1], [retraction] * 4)
    assert _value("nearstream_documents_total", outcome="removed_unknown") == before
    count_matched(removals[1:], [])
    assert _value("nearstream_documents_total", outcome="removed_unknown") == before + 1


@pytest.mark.parametrize(("status", "joins"), [(Status.NEW, 1), (Status.UNCHANGED, 0), (Status.KNOWN, 0)])
def test_verdicts_count_by_kind_and_joining_by_the_size_of_the_family(status: Status, joins: int) -> None:
    third = decode_event((EXAMPLES / "verdict.json").read_bytes())
    assert isinstance(third, DocumentVerdict)
    names = [("nearstream_verdicts_total", {"verdict": "near_duplicate"})]
    names += [("nearstream_family_size_bucket", {"le": bound}) for bound in ("2.0", "5.0")]
    before = [_value(name, **labels) for name, labels in names]
    count_verdict(third, status)
    grown = [_value(name, **labels) - was for (name, labels), was in zip(names, before, strict=True)]
    assert grown == [1, 0, joins]


def test_a_worker_is_told_as_it_is_when_asked() -> None:
    health, counts = Health(assigned=frozenset({("documents", 2), ("documents", 3)})), MatchCounts()
    metrics = WorkerMetrics(health, counts, {"version": "1", "scheme": "s"})
    counts.candidates["looked_up"], counts.overtaken = 3, 2
    health.lags = (PartitionLag("documents", 2, 5, 0, 9, 1.5), PartitionLag("documents", 3, 9, 0, 9, None))
    health.halted = "too many"
    register(metrics)
    told = _samples(REGISTRY.collect())
    REGISTRY.unregister(metrics)
    assert told["nearstream_candidates_total", "looked_up"] == 3
    assert told["nearstream_documents_overtaken_total", ""] == 2
    assert told["nearstream_degraded", ""] == 1
    assert told["nearstream_consumer_lag_records", "documents 2"] == 4
    assert told["nearstream_consumer_lag_seconds", "documents 2"] == 1.5
    assert told["nearstream_consumer_lag_records", "documents 3"] == 0
    assert ("nearstream_consumer_lag_seconds", "documents 3") not in told
    assert told["nearstream_build_info", "1 s"] == 1


def test_the_api_tells_of_every_role_also_where_none_works() -> None:
    rows = [("sign", PartitionLag("documents", number, 4 - 5 * number, 0, 9, 1.5 + number)) for number in (0, 1)]
    read = _samples(GroupMetrics(lambda: rows, lambda: [("all", "live"), ("all", "live")]).collect())
    assert [read[f"nearstream_group_{name}", "documents sign"] for name in ("lag_records", "lag_seconds")] == [14, 2.5]
    assert read["nearstream_group_committed_offsets", "documents sign"] == 4
    assert (read["nearstream_workers", "all live"], read["nearstream_workers", "match live"]) == (2, 0)
    assert _samples(GroupMetrics(list, lambda: None).collect()) == {}


def _samples(families: Iterable[Metric]) -> dict[tuple[str, str], float]:
    return {
        (sample.name, " ".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
