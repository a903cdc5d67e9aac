"""Every metric: name, kind, labels, meaning."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, time

from prometheus_client import REGISTRY, Counter, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from schemas.dead_letter import REASON_HEADER
from schemas.record import Outgoing, Record, header
from streams.matcher import MatchCounts
from workers.health import Health

_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

disable_created_metrics()  # type: ignore[no-untyped-call]
DOCUMENTS = Counter("nearstream_documents", "Records of documents, by outcome; their sum is what was read", ["outcome"])
EVENTS = Counter("nearstream_events", "Events sent, repeats included; a retraction once for each topic", ["type"])
DEAD_LETTERS = Counter("nearstream_dead_letters", "Dead letters sent", ["reason"])
STAGE_SECONDS = Histogram("nearstream_stage_seconds", "Time of a batch in a stage", ["stage"], buckets=_SHORT)
END_TO_END_SECONDS = Histogram(
    "nearstream_end_to_end_seconds", "From a record's timestamp to the delivery of its events", buckets=_LONG
)
OUTAGES = Counter("nearstream_outages", "Failed tries because a service was away", ["kind"])
REBALANCES = Counter("nearstream_rebalances", "Assignments of partitions")
GAP_RECORDS = Counter("nearstream_index_gap_records", "Records admitted again because the index had lost them")

_OUTCOMES = {name: DOCUMENTS.labels(name) for name in ("signed", "empty", "dead_letter", "removed")}


def count_signed(records: Sequence[Record], outgoing: Sequence[Outgoing]) -> None:
    """Counts a delivered batch of documents."""
    dead = _count_letters(outgoing)
    removed = sum(sent.value is None for sent in outgoing)
    _OUTCOMES["dead_letter"].inc(dead)
    _OUTCOMES["removed"].inc(removed)
    _OUTCOMES["signed"].inc(len(outgoing) - dead - removed)
    _OUTCOMES["empty"].inc(len(records) - len(outgoing))


def count_matched(records: Sequence[Record], outgoing: Sequence[Outgoing]) -> None:
    """Counts a delivered batch of signatures."""
    _count_letters(outgoing)
    for sent in outgoing:
        kind = header(sent.headers, "ce_type")
        if kind is not None:
            EVENTS.labels(kind.decode().removeprefix("nearstream.").removesuffix(".v1")).inc()
    now = time()
    for record in records:
        END_TO_END_SECONDS.observe(max(now - record.timestamp_ms / 1000, 0.0))


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Notes how long a stage took, if it ended well."""
    began = perf_counter()
    yield
    STAGE_SECONDS.labels(stage).observe(perf_counter() - began)


@dataclass(frozen=True, eq=False)
class WorkerMetrics(Collector):
    """What is read from a worker at the moment of asking.

    Attributes:
        health: How it is.
        counts: What its matcher did; None: it has none.
        build: Labels of `nearstream_build_info`.
    """

    health: Health
    counts: MatchCounts | None
    build: Mapping[str, str]

    def collect(self) -> Iterator[Metric]:
        """All families, as prometheus-client asks for them."""
        yield _gauge(
            "nearstream_degraded", "1 during an outage or a hold", {(): bool(self.health.in_outage or self.health.held)}
        )
        yield from self._lag()
        if self.counts is not None:
            yield from _matching(self.counts)
        build = GaugeMetricFamily("nearstream_build_info", "Always 1", labels=list(self.build))
        build.add_metric(list(self.build.values()), 1)
        yield build

    def register(self) -> None:
        """Adds these to what the process tells."""
        REGISTRY.register(self)

    def _lag(self) -> Iterator[Metric]:
        places = [(lag, (lag.topic, str(lag.partition))) for lag in self.health.lags]
        labels = ("topic", "partition")
        yield _gauge(
            "nearstream_consumer_lag_records",
            "Records of the group not acknowledged",
            {place: lag.records for lag, place in places},
            labels,
        )
        yield _gauge(
            "nearstream_consumer_lag_seconds",
            "Age of the oldest of them",
            {place: lag.seconds for lag, place in places if lag.seconds is not None},
            labels,
        )


def _matching(counts: MatchCounts) -> Iterator[Metric]:
    yield _counter("nearstream_candidates", "Earlier documents compared", "stage", counts.candidates)
    yield _counter("nearstream_events_suppressed", "Relations found, but not to be sent", "relation", counts.suppressed)
    yield CounterMetricFamily(
        "nearstream_bucket_overflows", "Full buckets of admitted documents", value=counts.full_buckets
    )
    yield CounterMetricFamily(
        "nearstream_index_stale", "Records that were older than what the index holds", value=counts.statuses["stale"]
    )


def _count_letters(outgoing: Sequence[Outgoing]) -> int:
    reasons = [reason for sent in outgoing if (reason := header(sent.headers, REASON_HEADER)) is not None]
    for reason in reasons:
        DEAD_LETTERS.labels(reason.decode()).inc()
    return len(reasons)


def _counter(name: str, meaning: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in list(values.items()):
        family.add_metric([value], count)
    return family


def _gauge(name: str, meaning: str, values: Mapping[tuple[str, ...], float], labels: Sequence[str] = ()) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=list(labels))
    for place, value in values.items():
        family.add_metric(place, value)
    return family
