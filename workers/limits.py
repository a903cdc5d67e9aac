"""When so many records are dead letters that not they but the deployment must be wrong."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.dead_letter import ID_HEADER, REASON_HEADER, dead_id
from schemas.record import Outgoing, Record, header

WINDOW = 1000
JUDGED_FROM = 200


@dataclass(frozen=True)
class Limits:
    """How many dead letters are borne.

    Attributes:
        max_consecutive: Dead letters in a row; 0: no limit.
        max_ratio: Share of the last 1000 records, judged from the 200th on; 0: no limit.
    """

    max_consecutive: int
    max_ratio: float


@dataclass
class Refusals:
    """What became of the last records of one topic: refused, or not."""

    limits: Limits
    _last: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _in_a_row: int = 0

    def beyond_limit(self, records: Sequence[Record], outgoing: Sequence[Outgoing]) -> str:
        """Which limit a decided batch breaks, with its counts for each reason; empty: none."""
        dead = {header(sent.headers, ID_HEADER) for sent in outgoing} - {None}
        most = 0
        for record in records:
            refused = bool(dead) and dead_id(record.topic, record.partition, record.offset).encode() in dead
            self._in_a_row = self._in_a_row + 1 if refused else 0
            most = max(most, self._in_a_row)
            self._last.append(refused)
        broken = self._broken(most)
        return f"{broken}; this batch: {_reasons(outgoing)}" if broken else ""

    def _broken(self, in_a_row: int) -> str:
        if 0 < self.limits.max_consecutive <= in_a_row:
            return f"{in_a_row} dead letters in a row (limit {self.limits.max_consecutive})"
        count, share = len(self._last), sum(self._last) / max(len(self._last), 1)
        if count >= JUDGED_FROM and 0 < self.limits.max_ratio < share:
            return f"{share:.1%} of the last {count} records are dead letters (limit {self.limits.max_ratio:.0%})"
        return ""


def _reasons(outgoing: Sequence[Outgoing]) -> str:
    reasons = Counter((header(sent.headers, REASON_HEADER) or b"").decode() for sent in outgoing)
    del reasons[""]
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
