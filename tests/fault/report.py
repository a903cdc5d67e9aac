"""The report on one fault run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fault import verify
from tests.fault.observer import Offsets, Sample
from tests.fault.oracle import Expected
from tests.fault.reading import Read


@dataclass
class Report:
    """Counts and times of one run."""

    fault: str  # its id
    documents: int = 0  # number of documents, without repeats
    events: int = 0  # number of relation events, without repeats
    lost: int = 0  # documents without an outcome, missing verdicts, retractions and events
    extra: int = 0  # verdicts and retractions that the single process does not send, and untrue events
    restated: int = 0  # signatures, verdicts and events that were sent again
    restated_share: float = 0.0  # their share of all distinct ones
    steady_per_second: float = 0.0  # documents per second without a fault
    throughput_share: float | None = None  # throughput with the fault, divided by that without it, where it is measured
    recovery_seconds: float | None = None  # time from the end of the fault until each lagging partition has moved
    drain_seconds: float = 0.0  # time from the end of the load until everything was acknowledged
    peak_memory_mb: int = 0  # peak memory of one worker
    memory_mb_per_minute: float | None = None  # steepest growth of a worker's memory in a soak test
    exits: list[int] = field(default_factory=list)  # exit codes of the workers
    wrong: dict[str, int] = field(default_factory=dict)  # counts that have to be 0, by name
    verdict: str = "not finished"

    def count(self, found: Read, told: Expected, samples: Sequence[Sample], logs: Sequence[str]) -> None:
        """Fill in the differences between the actual and the expected outcome."""
        self.wrong = {
            **verify.disagreements(found, told),
            "wrong letters": verify.wrong_letters(found, told),
            "fallen commits": verify.fallen_commits(samples),
            "hasty commits": verify.hasty_commits(samples, found, told),
            "named after removal": verify.named_after_removal(found),
            "unbounded": verify.unbounded(samples),
            "stalls": verify.stalls(logs),
            "unclean lines": verify.unclean_lines(logs),
            "full buckets": told.overflows,
        }
        self.documents, self.events = len(found.documents), len(verify.last_values(found.events))
        self.lost = sum(self.wrong[name] for name in ("unanswered", "missing", "unsent events"))
        self.extra = self.wrong["surplus"] + self.wrong["untrue events"]
        self.restated = verify.restated(found)
        sent = len(found.signed) + len(found.verdicts) + len(found.events)
        self.restated_share = self.restated / max(1, sent - self.restated)
        self.peak_memory_mb = max((size for each in samples for size in each.memory.values()), default=0) >> 20
        counts = ", ".join(f"{count} {name}" for name, count in self.wrong.items() if count)
        self.verdict = counts or "ok"

    @property
    def line(self) -> str:
        """Return this report as a row of the table."""
        recovery = "-" if self.recovery_seconds is None else f"{self.recovery_seconds:.1f}"
        return (
            f"{self.fault:5} {self.lost:5} {self.extra:5} {self.restated_share:9.2%} {recovery:>10} "
            f"{self.drain_seconds:8.1f} {self.peak_memory_mb:9}  {self.verdict}"
        )


HEADER = "fault  lost extra  restated recovery s  drain s memory MB  verdict"


def keep(folder: Path, found: Read, samples: Sequence[Sample], marks: Sequence[tuple[float, str]]) -> None:
    """Write files that help to find the cause of a failure.

    They contain the offsets around each injection, the memory of the workers, and all signatures and events.
    """
    offsets = [
        {"at": each.at, "committed": _plain(each.committed), "ends": _plain(each.ends), "memory": each.memory}
        for each in samples
    ]
    (folder / "offsets.json").write_text(json.dumps({"marks": marks, "samples": offsets}))
    told = [
        (key, record.topic, record.partition, record.offset, record.timestamp_ms, (record.value or b"").decode())
        for key, record in (*found.verdicts, *found.events, *found.retractions)
    ]
    signed = [(place, record.partition, record.offset) for place, record in found.signed]
    (folder / "topics.json").write_text(json.dumps({"told": told, "signed": signed}))


def _plain(offsets: Offsets) -> dict[str, int]:
    return {f"{topic} {partition}": offset for (topic, partition), offset in offsets.items()}
