"""Count verdicts by kind over the last hour, and how long they took."""

import math
from collections import Counter
from dataclasses import dataclass, field

from nearstream.schemas.verdicts.verdict import VERDICT_KINDS

SLOT_MS = 10_000
SLOTS = 360  # an hour
_MINUTE_SLOTS = 6
_STEPS = 8  # steps of the histogram for each doubling of a time, so that a quantile is off by less than a tenth


@dataclass
class _Slot:
    """What was counted in `SLOT_MS`."""

    verdicts: Counter[str] = field(default_factory=Counter)
    ages: Counter[int] = field(default_factory=Counter)
    characters: int = 0
    novel: int = 0


class Rates:
    """Counts of the last hour in slots, and totals since the start."""

    def __init__(self) -> None:
        """Start without counts."""
        self.totals: Counter[str] = Counter()
        self._slots: dict[int, _Slot] = {}
        self._newest = 0

    def add(self, verdict: str, at_ms: int, age_ms: int) -> None:
        """Count a verdict.

        Args:
            verdict: Its kind.
            at_ms: When it was sent, in milliseconds since 1970.
            age_ms: Time from the observation of its document until then.
        """
        number = at_ms // SLOT_MS
        slot = self._slots.get(number)
        if slot is None:
            self._newest = max(self._newest, number)
            if number <= self._newest - SLOTS:
                return
            slot = self._slots[number] = _Slot()
            for old in [each for each in self._slots if each <= self._newest - SLOTS]:
                del self._slots[old]
        slot.verdicts[verdict] += 1
        slot.ages[round(_STEPS * math.log2(max(age_ms, 0) + 1))] += 1

    def add_text(self, at_ms: int, characters: int, novel: int) -> None:
        """Count the characters of a document, and the new ones of them."""
        slot = self._slots.get(at_ms // SLOT_MS)
        if slot is not None:
            slot.characters += characters
            slot.novel += min(novel, characters)

    def new_text(self, now_ms: int) -> tuple[int, int]:
        """Return the characters of the last hour, and how many of them were new."""
        slots = [self._slots[number] for number in self._numbers(now_ms, SLOTS) if number in self._slots]
        return sum(slot.characters for slot in slots), sum(slot.novel for slot in slots)

    def series(self, now_ms: int) -> dict[str, tuple[int, ...]]:
        """Return the verdicts of the last hour by kind, the oldest slot first."""
        numbers = self._numbers(now_ms, SLOTS)
        empty = _Slot()
        slots = [self._slots.get(number, empty).verdicts for number in numbers]
        return {kind: tuple(slot[kind] for slot in slots) for kind in VERDICT_KINDS}

    def per_second(self, now_ms: int) -> float:
        """Return the verdicts a second over the whole slots of the last minute."""
        minute = self._numbers(now_ms - SLOT_MS, _MINUTE_SLOTS)
        counted = sum(self._slots[number].verdicts.total() for number in minute if number in self._slots)
        return counted * 1000 / (SLOT_MS * _MINUTE_SLOTS)

    def ages(self, now_ms: int, *shares: float) -> list[float | None]:
        """Return quantiles of the seconds to a verdict over the last minute, None without verdicts."""
        merged: Counter[int] = Counter()
        for number in self._numbers(now_ms, _MINUTE_SLOTS):
            if number in self._slots:
                merged.update(self._slots[number].ages)
        return [_quantile(merged, share) for share in shares]

    def _numbers(self, now_ms: int, count: int) -> range:
        last = now_ms // SLOT_MS
        return range(last - count + 1, last + 1)


def _quantile(counts: Counter[int], share: float) -> float | None:
    left = share * counts.total()
    for step, count in sorted(counts.items()):
        left -= count
        if left <= 0:
            return round((2 ** (step / _STEPS) - 1) / 1000, 4)
    return None
