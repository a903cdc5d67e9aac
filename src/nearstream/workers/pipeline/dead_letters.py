"""Write and log dead letters, and halt when there are too many."""

import asyncio
import logging
import struct
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.dead_letter import (
    FROM_HEADER,
    ID_HEADER,
    OF_CONTENT,
    REASON_HEADER,
    DeadLetter,
    Reason,
    Stage,
    dead_id,
    outgoing,
    text_of,
)
from nearstream.schemas.topics.table import DEAD_LETTERS
from nearstream.streams.ingest.parse import STRANGERS, came_from

LOG_INTERVAL_SECONDS = 60.0
WINDOW_RECORDS = 1000
MIN_WINDOW_RECORDS = 200  # no ratio is judged before
MAX_CONSECUTIVE = 100  # at this many in a row the deployment is at fault, before a ratio is judged
WHOEVER = 10  # Ten times as many in a row halt a worker even if one site sent all of them.
# What a step raises about data that no bound has refused. Other errors say that a server or the program is at fault.
DATA_ERRORS = (ValueError, ArithmeticError, LookupError, struct.error, RecursionError, msgspec.MsgspecError)

log = logging.getLogger(__name__)


@dataclass
class DeadLetterLog:
    """A log of the first dead letter of a reason, and then of a count per minute."""

    _further: dict[Reason, int] = field(default_factory=dict)
    _newest: dict[tuple[str, int], int] = field(default_factory=dict)  # last offset for each topic and partition

    def add(self, dead_letter: DeadLetter) -> None:
        """Log a dead letter or count it, unless it was added before, because its batch is tried again."""
        record, reason = dead_letter.record, dead_letter.reason
        partition = (record.topic, record.partition)
        if record.offset <= self._newest.get(partition, -1):
            return
        self._newest[partition] = record.offset
        if reason in self._further:
            self._further[reason] += 1
            return
        log.warning("dead letter: %s at %s %d offset %d: %s", reason, *partition, record.offset, dead_letter.detail)
        self._start_counting(reason)

    def _start_counting(self, reason: Reason) -> None:
        self._further[reason] = 0
        asyncio.get_running_loop().call_later(LOG_INTERVAL_SECONDS, self._log_count, reason)

    def _log_count(self, reason: Reason) -> None:
        count = self._further.pop(reason)
        if count:
            log.warning("dead letters: %d more %s within %g s", count, reason, LOG_INTERVAL_SECONDS)
            self._start_counting(reason)


@dataclass(frozen=True)
class DeadLetterWriter:
    """Makes and logs dead letters."""

    topic: str  # where they are sent
    worker: str  # Who refused the record: `nearstream/<version> <role>`.
    payload: str  # how much of the refused record they keep
    log: DeadLetterLog = field(default_factory=DeadLetterLog, compare=False)

    def write(self, dead_letter: DeadLetter) -> ProducerRecord:
        """Log a dead letter and return the record to send."""
        self.log.add(dead_letter)
        dead_letter = replace(dead_letter, came_from=came_from(dead_letter.record))
        return outgoing(dead_letter, self.topic, self.worker, self.payload, DEAD_LETTERS.max_message_bytes)

    def unprocessable(self, record: ConsumerRecord, stage: Stage, error: BaseException) -> ProducerRecord:
        """Return the dead letter of a record on which a step failed.

        It says where, but not the text of the error, which may quote the record.
        """
        (*_, place) = traceback.extract_tb(error.__traceback__)
        detail = f"the step failed with {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        return self.write(DeadLetter(record, stage, Reason.UNPROCESSABLE, detail))


@dataclass(frozen=True)
class DeadLetterLimit:
    """Limits on dead letters, beyond which the deployment must be at fault, not the records."""

    max_consecutive: int  # Dead letters in a row. 0: no limit.
    max_ratio: float  # Ratio among the last 1000 records, checked from the 200th record on. 0: no limit.
    drained_ms: int = 0  # Records from before this time do not count, because an operator lets them pass.


def dead_letter_limit(max_ratio: float, drained_ms: int = 0) -> DeadLetterLimit:
    """Return the limits of a worker for a ratio in [0, 1]. 0 sets no limit."""
    return DeadLetterLimit(MAX_CONSECUTIVE if max_ratio else 0, max_ratio, drained_ms)


@dataclass
class DeadLetterWindow:
    """The last records of one topic that count, and where those that were refused came from.

    What was refused for its content does not count: that is what strangers send, and says nothing of the deployment.
    """

    limit: DeadLetterLimit  # the limits that it checks
    # Held while a batch is judged, and without end by a worker that halts.
    judging: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)
    _places: deque[str] = field(default_factory=lambda: deque(maxlen=WINDOW_RECORDS))  # Empty: not refused.
    _row: Counter[str] = field(default_factory=Counter)  # how many in a row were refused, from each place

    def exceeded_limit(self, records: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> str:
        """Add a batch, and return the limit that it exceeds with the reasons of the batch, empty if it exceeds none."""
        letters = {name: sent.headers for sent in outgoing if (name := header(sent.headers, ID_HEADER))}
        in_a_row, most = 0.0, self.limit.max_consecutive
        for record in records:
            letter = letters.get(dead_id(record.topic, record.partition, record.offset).encode()) if letters else None
            if letter and self._is_passed(record, letter):
                continue
            place = text_of(letter, FROM_HEADER) if letter else ""
            self._places.append(place)
            self._row = self._row + Counter([place]) if place and most else Counter()
            in_a_row = max(in_a_row, _counted(self._row, most), self._row.total() / WHOEVER)
        exceeded = self._exceeded(in_a_row)
        return f"{exceeded}; this batch: {_reasons(outgoing)}" if exceeded else ""

    def _is_passed(self, record: ConsumerRecord, letter: Headers) -> bool:
        return max(record.timestamp_ms, 0) < self.limit.drained_ms or text_of(letter, REASON_HEADER) in OF_CONTENT

    def _exceeded(self, in_a_row: float) -> str:
        if 0 < self.limit.max_consecutive <= in_a_row:
            return f"{in_a_row:.0f} dead letters in a row (limit {self.limit.max_consecutive})"
        count, most = len(self._places), self.limit.max_ratio
        ratio = _counted(Counter(filter(None, self._places)), most * count) / max(count, 1)
        if count >= MIN_WINDOW_RECORDS and 0 < most < ratio:
            return f"{ratio:.1%} of the last {count} records are dead letters (limit {most:.0%})"
        return ""


def _counted(places: Counter[str], limit: float) -> float:
    """Count dead letters towards a limit. One site or sender reaches a fifth of it."""
    return sum(min(n, limit / 5) if place.startswith(STRANGERS) else n for place, n in places.items())


def _reasons(outgoing: Sequence[ProducerRecord]) -> str:
    reasons = Counter(text_of(sent.headers, REASON_HEADER) for sent in outgoing)
    del reasons[""]
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
