"""Dead letters on their way out."""

import asyncio
import logging
from dataclasses import dataclass, field

from schemas.dead_letter import DeadLetter, Payload, Reason, outgoing
from schemas.record import Outgoing
from schemas.topics import DEAD_LETTERS

TOLD_EVERY_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass
class LetterLog:
    """Tells the first letter of a reason at once, then every minute how many more there were, until there are none."""

    _more: dict[Reason, int] = field(default_factory=dict)
    _newest: dict[tuple[str, int], int] = field(default_factory=dict)  # offset of the last letter about a partition

    def note(self, letter: DeadLetter) -> None:
        """Tells this letter, or counts it; one that was decided before, in a batch that is tried again, neither."""
        record, reason = letter.record, letter.reason
        place = (record.topic, record.partition)
        if record.offset <= self._newest.get(place, -1):
            return
        self._newest[place] = record.offset
        if reason in self._more:
            self._more[reason] += 1
            return
        log.warning("dead letter: %s at %s %d offset %d: %s", reason, *place, record.offset, letter.detail)
        self._count(reason)

    def _count(self, reason: Reason) -> None:
        self._more[reason] = 0
        asyncio.get_running_loop().call_later(TOLD_EVERY_SECONDS, self._sum_up, reason)

    def _sum_up(self, reason: Reason) -> None:
        more = self._more.pop(reason)
        if more:
            log.warning("dead letters: %d more %s within %g s", more, reason, TOLD_EVERY_SECONDS)
            self._count(reason)


@dataclass(frozen=True)
class Letters:
    """Writes dead letters to `topic`; `worker` is `nearstream/<version> <role>`."""

    topic: str
    worker: str
    payload: Payload
    log: LetterLog = field(default_factory=LetterLog, compare=False)

    def write(self, letter: DeadLetter) -> Outgoing:
        """The record to be sent; the log hears of it."""
        self.log.note(letter)
        return outgoing(letter, self.topic, self.worker, self.payload, DEAD_LETTERS.max_message_bytes)
