"""A loop that is measured: `python -m benchmarks.stream.loops NAME`.

| name | what runs |
|---|---|
| `worker` | a worker as in production |
| `worker-by-stage` | a worker with a clock around its stages, which costs 5 to 12 % of its CPU |
| `loop` | our loop without work |
| `bare` | aiokafka without work |
| `by-hand`, `by-hand-batched` | the stream that is written by hand |
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.stream import by_hand, carrying
from benchmarks.stream.reporting import Reporter
from benchmarks.stream.stages import StageClock
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.matching import telling
from nearstream.streams.matching.judge import Documents, MatchCounts
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol.lane import Lane
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.cli.main import main
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.monitoring import metrics
from nearstream.workers.pipeline import match, sign
from nearstream.workers.pipeline.dead_letters import DeadLetterWindow
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.faust_consumer import BatchConsumer
from nearstream.workers.pipeline.step import Step
from nearstream.workers.redis.store.transport import RedisTransport

STAGES: tuple[tuple[object, str, str], ...] = (
    (BatchConsumer, "_take", "take batches"),
    (Delivery, "_process", "deliver: the rest"),
    (Delivery, "_send_all", "deliver: send"),
    (metrics, "count_signed", "deliver: count for metrics"),
    (metrics, "count_matched", "deliver: count for metrics"),
    (sign, "parse_document", "sign: parse documents"),
    (sign.Signing, "decide", "sign: sign and encode"),
    (match, "arrival_of", "match: read signatures"),
    (Matcher, "_arriving", "match: keys of the index"),
    (RedisTransport, "all", "match: index client"),
    (Documents, "compare", "match: compare"),
    (Lane, "match", "match: choose and decide"),
    (telling, "describe", "match: build events"),
    (telling.Teller, "told", "match: build verdicts"),
    (Matcher, "match_all", "match: the rest of the matcher"),
    (match.Matching, "_outgoing", "match: encode verdicts and events"),
    (match.Matching, "decide", "match: the rest"),
)


def worker(settings: Settings) -> int:
    """Run a worker."""
    return _worker(settings, StageClock())


def worker_by_stage(settings: Settings) -> int:
    """Run a worker with a clock around its stages."""
    clock = StageClock()
    for owner, name, stage in STAGES:
        clock.measure(owner, name, stage)
    return _worker(settings, clock)


def loop(settings: Settings) -> int:
    """Run our loop without work."""
    _report_acknowledged(Reporter(StageClock(), settings.topic_prefix + DOCUMENTS.name))
    carrying.safe(settings)
    return 0


def bare(settings: Settings) -> int:
    """Run aiokafka without work."""
    reporter = Reporter(StageClock(), settings.topic_prefix + DOCUMENTS.name)
    reporter.start()
    asyncio.run(carrying.bare(settings, reporter.acknowledged))
    return 0


def _by_hand(look: by_hand.Look) -> Callable[[Settings], int]:
    def run(settings: Settings) -> int:
        reporter = Reporter(StageClock(), settings.topic_prefix + DOCUMENTS.name)
        reporter.start()
        work = by_hand.opened(settings, look, reporter.clock)
        asyncio.run(by_hand.by_hand(settings, work, reporter.acknowledged))
        return 0

    return run


LOOPS: dict[str, Callable[[Settings], int]] = {
    "bare": bare,
    "loop": loop,
    "by-hand": _by_hand(by_hand.one_by_one),
    "by-hand-batched": _by_hand(by_hand.batched),
    "worker": worker,
    "worker-by-stage": worker_by_stage,
}


def _worker(settings: Settings, clock: StageClock) -> int:
    reporter = Reporter(clock, settings.topic_prefix + SIGNATURES.name, _count_comparisons())
    _report_hops(reporter)
    _report_acknowledged(reporter)
    return main(["worker", "all"])


def _report_acknowledged(reporter: Reporter) -> None:
    """Report what our consumer acknowledges."""
    acknowledge = BatchConsumer.acknowledge

    def reported(self: BatchConsumer, records: Sequence[ConsumerRecord]) -> None:
        acknowledge(self, records)
        reporter.acknowledged(records)

    BatchConsumer.acknowledge = reported  # type: ignore[method-assign] # the product has no hook for this
    reporter.start()


def _report_hops(reporter: Reporter) -> None:
    """Report when each batch is taken, decided and delivered."""
    deliver = Delivery._deliver

    async def reported(
        self: Delivery, step: Step, window: DeadLetterWindow, records: Sequence[ConsumerRecord]
    ) -> Sequence[ProducerRecord]:
        taken = decided = time.time_ns()

        async def decide(batch: Sequence[ConsumerRecord]) -> Sequence[ProducerRecord]:
            nonlocal decided
            outgoing = await step.decide(batch)
            decided = time.time_ns()
            return outgoing

        outgoing = await deliver(self, replace(step, decide=decide), window, records)
        reporter.traced(step.name, records, (taken, decided, time.time_ns()))
        return outgoing

    Delivery._deliver = reported  # type: ignore[method-assign] # the product has no hook for this


def _count_comparisons() -> Callable[[], float]:
    """Return what counts the comparisons of all matchers from now on.

    To ask the registry of the metrics for each report took 11 us of CPU a document of `unique`.
    """
    counts: list[MatchCounts] = []
    prepare = Documents.__init__

    def prepared(self: Documents, scheme: Scheme, thresholds: Thresholds, relations: frozenset[str]) -> None:
        prepare(self, scheme, thresholds, relations)
        counts.append(self.counts)

    Documents.__init__ = prepared  # type: ignore[method-assign] # the product has no hook for this
    return lambda: float(sum(each.candidates["looked_up"] for each in counts))


if __name__ == "__main__":
    sys.exit(LOOPS[sys.argv[1]](load()))
