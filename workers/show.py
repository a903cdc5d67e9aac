"""Events and progress as a person reads them."""

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from msgspec import UnsetType

from schemas.events import ChangeEvent, Containment, Event, Retraction, Version, kind_of

ID_CHARACTERS = 128
_TERMINAL_SECONDS = 0.2
_PIPE_SECONDS = 10.0
_BAR = 20
_MEMORY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def escaped(text: str) -> str:
    """An id or url fit for a terminal and a log: one line, no control or bidirectional characters, cut at 128."""
    safe = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:ID_CHARACTERS])
    return safe + ("…" if len(text) > ID_CHARACTERS else "")


def in_bytes(count: float) -> str:
    """So many bytes, in the unit that fits."""
    unit = 0
    while count >= 1024 and unit < len(_MEMORY_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {_MEMORY_UNITS[unit]}" if not unit else f"{count:.1f} {_MEMORY_UNITS[unit]}"


def line(event: Event) -> str:
    """One line for one event: relation, ids, resemblance, containment, distance, where."""
    if isinstance(event, Retraction):
        return f"{'removed':<16} {escaped(event.document_id)}: events that name it are void"
    newer, older = escaped(event.newer.id), escaped(event.older.id)
    return f"{kind_of(event):<16} {_sentence(event, newer, older)}  [{', '.join(_numbers(event))}]"


def _sentence(event: Event, newer: str, older: str) -> str:
    match event:
        case Containment(inner="newer", place=(start, end)):
            return f"{newer} lies inside {older} at {start}-{end}"
        case Containment(place=(start, end)):
            return f"{newer} holds {older} at {start}-{end}"
        case Version(same_lineage=True):
            return f"{newer} is a new version of {older}, same lineage"
        case Version():
            return f"{newer} is a new version of {older}"
        case _ if kind_of(event) == "exact_duplicate":
            lineage = ", same lineage: unchanged" if not isinstance(event, Retraction) and event.same_lineage else ""
            return f"{newer} equals {older}{lineage}"
        case _:
            return f"{newer} ~ {older}"


def _numbers(event: Event) -> list[str]:
    if isinstance(event, Retraction):
        return []
    evidence = event.evidence
    resemblance = evidence.resemblance
    told = [f"resemblance {resemblance.value:.2f} ({resemblance.low:.2f}-{resemblance.high:.2f})"]
    if not isinstance(evidence.containment, UnsetType):
        shares = evidence.containment
        told.append(f"newer in older {shares.newer_in_older:.2f}, older in newer {shares.older_in_newer:.2f}")
    if not isinstance(evidence.distance, UnsetType):
        told.append(f"distance {evidence.distance.value} characters")
    if isinstance(event, ChangeEvent) and not isinstance(event.added, UnsetType):
        told.append(f"+{event.added} -{event.removed}")
    keys = evidence.keys
    told.append(f"{keys.bands} bands, {keys.anchors} anchors shared")
    told += [f"weak: {escaped(reason)}" for reason in event.low_confidence]
    return told


@dataclass
class Progress:
    """One line on stderr about long work: rewritten on a terminal, every 10 s elsewhere.

    `total` 0: unknown. At most 5 updates a second.
    """

    what: str
    total: int = 0
    quiet: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    done: int = 0
    _began: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)

    def step(self, count: int = 1) -> None:
        """Counts `count` more as done."""
        self.done += count
        now = time.monotonic()
        pause = _TERMINAL_SECONDS if self.stream.isatty() else _PIPE_SECONDS
        if not self.quiet and now - self._told >= pause:
            self._told = now
            self._tell("\r" if self.stream.isatty() else "", "" if self.stream.isatty() else "\n")

    def end(self) -> None:
        """Says the last count; on a terminal the line stays."""
        if not self.quiet:
            self._tell("\r" if self.stream.isatty() else "", "\n")

    def _tell(self, before: str, after: str) -> None:
        seconds = max(time.monotonic() - self._began, 1e-9)
        rate = self.done / seconds
        text = f"{self.what}: {self.done}"
        if self.total:
            left = (self.total - self.done) / rate if rate else 0
            share = min(self.done / self.total, 1.0)
            bar = "#" * round(_BAR * share)
            text = f"{self.what} [{bar:.<{_BAR}}] {self.done} of {self.total} ({100 * share:.0f} %), {left:.0f} s left"
        self.stream.write(f"{before}{text}, {rate:.0f}/s{after}")
        self.stream.flush()
