"""Dead letters on their way out."""

import logging
from dataclasses import dataclass

from schemas.dead_letter import DeadLetter, Payload, outgoing
from schemas.record import Outgoing
from schemas.topics import DEAD_LETTERS

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Letters:
    """Writes dead letters to `topic`; `worker` is `nearstream/<version> <role>`."""

    topic: str
    worker: str
    payload: Payload

    def write(self, letter: DeadLetter) -> Outgoing:
        """The record to be sent, with one line in the log."""
        record = letter.record
        log.warning(
            "dead letter: %s at %s %d offset %d: %s",
            letter.reason,
            record.topic,
            record.partition,
            record.offset,
            letter.detail,
        )
        return outgoing(letter, self.topic, self.worker, self.payload, DEAD_LETTERS.max_message_bytes)
