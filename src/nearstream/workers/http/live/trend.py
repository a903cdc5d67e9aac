"""Whether the lag of the workers grows or falls."""

from collections import deque
from collections.abc import Sequence

from nearstream.schemas.live.state import LiveLag
from nearstream.workers.kafka.lag import PartitionLag

_MINUTE_SECONDS = 60.0
_NOTABLE_SECONDS = 1.0  # age of the oldest waiting record below which the lag is that of a batch in work
_CHANGE = 0.1  # share by which the lag has to differ from that of a minute ago


class Trend:
    """The lag of the last minute."""

    def __init__(self) -> None:
        """Start without readings."""
        self._readings: deque[tuple[float, int]] = deque()

    def add(self, rows: Sequence[PartitionLag], now: float) -> LiveLag:
        """Take the lag of all partitions, and return it with its trend.

        Args:
            rows: The lag of each partition.
            now: The time in seconds, by a clock that never goes back.
        """
        records = sum(row.records for row in rows)
        seconds = max((row.seconds or 0.0 for row in rows), default=0.0)
        while self._readings and self._readings[0][0] < now - _MINUTE_SECONDS:
            self._readings.popleft()
        before = self._readings[0][1] if self._readings else records
        self._readings.append((now, records))
        if seconds <= _NOTABLE_SECONDS:
            return LiveLag(records=records, seconds=seconds, trend="none")
        if records > before * (1 + _CHANGE):
            return LiveLag(records=records, seconds=seconds, trend="growing")
        is_falling = records < before * (1 - _CHANGE)
        return LiveLag(records=records, seconds=seconds, trend="falling" if is_falling else "steady")
