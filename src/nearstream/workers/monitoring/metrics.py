"""All metrics: name, type, labels and meaning."""

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from time import perf_counter, time
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord, header
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.labels.label import is_label_key
from nearstream.schemas.live.state import WorkerStateName
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.dead_letter import REASON_HEADER
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.judge import MatchCounts
from nearstream.streams.store.registration import Status
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health

_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ORDINALS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
_LONG = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

EXPOSITION_TYPE = CONTENT_TYPE_LATEST  # media type of `exposition()`
disable_created_metrics()  # type: ignore[no-untyped-call]
DOCUMENTS = Counter(
    "nearstream_documents",
    "Records by outcome. Matching counts labels and removals: removed_unknown ones matched no document",
    ["outcome"],
)
EVENTS = Counter("nearstream_events", "Events sent, including repeats. A retraction counts once per topic", ["type"])
VERDICTS = Counter("nearstream_verdicts", "Verdicts reached by kind, including repeats, sent or not", ["verdict"])
FAMILY_SIZE = Histogram(
    "nearstream_family_size",
    "Ordinal of each new or changed document in its family, 1 for the first",
    buckets=_ORDINALS,
)
DEAD_LETTERS = Counter("nearstream_dead_letters", "Dead letters sent", ["reason"])
STAGE_SECONDS = Histogram("nearstream_stage_seconds", "Time that a stage takes for a batch", ["stage"], buckets=_SHORT)
END_TO_END_SECONDS = Histogram(
    "nearstream_end_to_end_seconds", "Time from a record's timestamp to the delivery of its events", buckets=_LONG
)
CHECKS = Counter("nearstream_check_requests", "Answers of the HTTP API to checks, and errors", ["verdict"])
CHECK_SECONDS = Histogram(
    "nearstream_check_seconds", "Time from a whole request of the HTTP API to its answer", buckets=_SHORT
)
DECISIONS = Counter("nearstream_decisions", "Decisions for crawlers, including repeats", ["action", "because"])
ERROR_TEXTS = Counter("nearstream_error_texts", "Texts to which three pages of a host turned")
SKIPS = Counter("nearstream_skip_requests", "Answers of the HTTP API to crawlers", ["answer"])
API_RECORDS = Counter(
    "nearstream_api_records", "Records that the HTTP API sent for documents to learn or remove", ["outcome"]
)
MILTER_MESSAGES = Counter("nearstream_milter_messages", "Messages that passed the mail filter", ["outcome"])
MILTER_SECONDS = Histogram(
    "nearstream_milter_seconds", "Time that the mail filter waited for the answer about a message", buckets=_SHORT
)
MAIL_CONNECTIONS = Gauge("nearstream_mail_connections", "Connections of mail servers")
ALERTS = Counter("nearstream_alerts", "Alerts sent, including repeats", ["name", "state"])
ALERTS_FIRING = Gauge("nearstream_alerts_firing", "Alerts that have begun and not ended", ["name"])
SSE_DROPPED = Counter("nearstream_sse_dropped", "Events that readers of the event stream were too slow for")
WEBHOOKS = Counter("nearstream_webhooks", "Alerts for webhooks, by what became of them", ["target", "outcome"])
OUTAGES = Counter("nearstream_outages", "Failed attempts because a service was unavailable", ["kind"])
REBALANCES = Counter("nearstream_rebalances", "Partition assignments received")
GAP_RECORDS = Counter("nearstream_index_gap_records", "Records admitted again because the index had lost them")

_OUTCOME_NAMES = ("signed", "empty", "dead_letter", "removed", "removed_unknown", "labelled")
_ROLES = ("sign", "match", "all", "decide", "alert")
_OUTCOMES = {name: DOCUMENTS.labels(name) for name in _OUTCOME_NAMES}
_ALERT, _RETRACTION = b"nearstream.alert.v1", b"nearstream.retraction.v1"


def register(collector: Collector) -> None:
    """Let metrics be read at each scrape of this process."""
    REGISTRY.register(collector)


def exposition() -> bytes:
    """Return all metrics in the text format of Prometheus."""
    return generate_latest()


def count_signed(records: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> None:
    """Count the outcomes of a delivered batch of documents."""
    dead = _count_dead_letters(outgoing)
    removals = sum(sent.value is None for sent in outgoing)
    _OUTCOMES["dead_letter"].inc(dead)
    _OUTCOMES["signed"].inc(len(outgoing) - dead - removals)
    _OUTCOMES["empty"].inc(len(records) - len(outgoing))


def count_matched(records: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> None:
    """Count the events, the removals and the labels of a delivered batch of signatures."""
    _count_dead_letters(outgoing)
    retracted = {sent.key for sent in outgoing if header(sent.headers, "ce_type") == _RETRACTION}
    others = [record for record in records if not is_label_key(record.key)]
    _OUTCOMES["labelled"].inc(len(records) - len(others))
    removed = [record.key in retracted for record in others if record.value is None]
    _OUTCOMES["removed"].inc(sum(removed))
    _OUTCOMES["removed_unknown"].inc(len(removed) - sum(removed))
    for sent in outgoing:
        kind = header(sent.headers, "ce_type")
        if kind is not None:
            EVENTS.labels(kind.decode().removeprefix("nearstream.").removesuffix(".v1")).inc()
    now = time()
    for record in records:
        END_TO_END_SECONDS.observe(max(now - record.timestamp_ms / 1000, 0.0))


def count_decided(_: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> None:
    """Count the decisions and the dead letters of a delivered batch of verdicts."""
    _count_dead_letters(outgoing)
    for sent in outgoing:
        if sent.value is not None and header(sent.headers, REASON_HEADER) is None:
            decision = decode_json(Decision, sent.value)
            DECISIONS.labels(decision.action, decision.because).inc()


def count_alerts(outgoing: Sequence[ProducerRecord]) -> list[Alert]:
    """Count the alerts and dead letters of a delivered batch, and return the alerts."""
    _count_dead_letters(outgoing)
    alerts = [decode_json(Alert, sent.value or b"") for sent in outgoing if header(sent.headers, "ce_type") == _ALERT]
    for alert in alerts:
        ALERTS.labels(alert.name, alert.state).inc()
    return alerts


def set_firing(counts: Mapping[str, int]) -> None:
    """Set how many alerts of each name have begun and not ended."""
    for name, count in counts.items():
        ALERTS_FIRING.labels(name).set(count)


def count_verdict(verdict: DocumentVerdict, status: Status) -> None:
    """Count a verdict, and the ordinal of a document that is new or has changed."""
    VERDICTS.labels(verdict.verdict).inc()
    if status is Status.NEW:
        FAMILY_SIZE.observe(verdict.family.ordinal)


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Observe how long a stage took, unless it failed."""
    began = perf_counter()
    yield
    STAGE_SECONDS.labels(stage).observe(perf_counter() - began)


@dataclass(frozen=True, eq=False)
class WorkerMetrics(Collector):
    """Metrics that are read from a worker at each scrape."""

    health: Health  # state of the worker
    counts: MatchCounts | None  # Counts of its matcher. None: the worker has no matcher.
    build: Mapping[str, str]  # labels of `nearstream_build_info`

    def collect(self) -> Iterator[Metric]:
        """Yield all metric families, as prometheus-client requires."""
        yield _gauge(
            "nearstream_degraded",
            "1 during an outage or while the worker is halted, else 0",
            {(): bool(self.health.in_outage or self.health.halted)},
        )
        yield from self._lag()
        if self.counts is not None:
            yield from _matching(self.counts)
        build = GaugeMetricFamily("nearstream_build_info", "Always 1", labels=list(self.build))
        build.add_metric(list(self.build.values()), 1)
        yield build

    def _lag(self) -> Iterator[Metric]:
        rows = [((lag.topic, str(lag.partition)), lag) for lag in self.health.own_lags]
        labels = ("topic", "partition")
        yield _gauge(
            "nearstream_consumer_lag_records",
            "Records not yet acknowledged by the consumer group",
            {values: lag.records for values, lag in rows},
            labels,
        )
        yield _gauge(
            "nearstream_consumer_lag_seconds",
            "Age of the oldest record not yet acknowledged by the consumer group",
            {values: lag.seconds for values, lag in rows if lag.seconds is not None},
            labels,
        )


@dataclass(frozen=True, eq=False)
class GroupMetrics(Collector):
    """Metrics of all workers together, which `nearstream serve` reads at each scrape, so that absence is seen."""

    lags: Callable[[], Iterable[tuple[str, PartitionLag]]]  # each partition, with the role that reads it
    workers: Callable[[], Sequence[tuple[str, str]] | None]  # Role and state of each worker. None: not known now.

    def collect(self) -> Iterator[Metric]:
        """Yield all metric families, as prometheus-client requires."""
        records, seconds, committed = (
            Counted[tuple[str, ...]](),
            dict[tuple[str, ...], float](),
            Counted[tuple[str, ...]](),
        )
        for role, lag in self.lags():
            place = lag.topic, role
            records[place] += lag.records
            seconds[place] = max(seconds.get(place, 0.0), lag.seconds or 0.0)
            committed[place] += max(lag.committed, 0)
        labels = ("topic", "role")
        yield _gauge("nearstream_group_lag_records", "Records that a role has not acknowledged", records, labels)
        yield _gauge("nearstream_group_lag_seconds", "Age of the oldest of these records, else 0", seconds, labels)
        yield _gauge("nearstream_group_committed_offsets", "Sum of acknowledged offsets", committed, labels)
        states = self.workers()
        known: dict[tuple[str, ...], float] = {}
        if states is not None:
            known = {**dict.fromkeys(product(_ROLES, get_args(WorkerStateName)), 0), **Counted(states)}
        yield _gauge("nearstream_workers", "Workers by role and state", known, ("role", "state"))


def _matching(counts: MatchCounts) -> Iterator[Metric]:
    yield _counter("nearstream_candidates", "Earlier documents compared with new ones", "stage", counts.candidates)
    yield _counter(
        "nearstream_events_suppressed", "Relations found, but not among those to send", "relation", counts.suppressed
    )
    yield CounterMetricFamily(
        "nearstream_bucket_overflows", "Buckets that were full when a document was admitted", value=counts.full_buckets
    )
    yield CounterMetricFamily(
        "nearstream_candidates_cut",
        "Documents for which the limit of candidates left earlier documents out",
        value=counts.cut,
    )
    yield CounterMetricFamily(
        "nearstream_documents_overtaken", "Documents that arrived after their removal", value=counts.overtaken
    )


def _count_dead_letters(outgoing: Sequence[ProducerRecord]) -> int:
    reasons = [reason for sent in outgoing if (reason := header(sent.headers, REASON_HEADER)) is not None]
    for reason in reasons:
        DEAD_LETTERS.labels(reason.decode()).inc()
    return len(reasons)


def _counter(name: str, meaning: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in list(counts.items()):
        family.add_metric([value], count)
    return family


def _gauge(name: str, meaning: str, values: Mapping[tuple[str, ...], float], labels: Sequence[str] = ()) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=list(labels))
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family
