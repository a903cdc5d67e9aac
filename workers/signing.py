"""Records of `documents` in, records of `signatures` out."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from schemas.codec import InvalidMessageError, encode_signature
from schemas.dead_letter import DeadLetter, Stage
from schemas.record import Headers, Outgoing, Record, traceparent
from schemas.signature import Origin
from streams.completion import Bounds
from streams.receive import Removal, receive
from streams.signer import Signer
from workers.letters import Letters
from workers.turns import giving_turns

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Signing:
    """Signs documents; `topic` is where signatures go."""

    signer: Signer
    bounds: Bounds
    topic: str
    letters: Letters
    _pause: Callable[[], Awaitable[None]] = field(default_factory=giving_turns, compare=False)

    async def decide(self, records: Sequence[Record]) -> list[Outgoing]:
        """A signature, a removal or a dead letter for each record; nothing for an empty text."""
        outgoing = []
        for record in records:
            try:
                result = self._signed(record)
            except InvalidMessageError as error:
                result = self.letters.write(DeadLetter(record, Stage.DECODE, error.reason, error.detail))
            if result is not None:
                outgoing.append(result)
            await self._pause()
        return outgoing

    def _signed(self, record: Record) -> Outgoing | None:
        received = receive(record, self.bounds)
        trace = traceparent(record.headers)
        passed_on: Headers = [("traceparent", trace)] if trace else []
        if isinstance(received, Removal):
            return Outgoing(self.topic, received.document_key.encode(), None, passed_on, record.timestamp_ms)
        origin = Origin(record.topic, record.partition, record.offset)
        signature = self.signer.sign(received.document, origin, received.degraded)
        if not signature.n_bytes:
            log.debug("empty text: %s %d %d", record.topic, record.partition, record.offset)
            return None
        return Outgoing(
            self.topic,
            signature.document_key.encode(),
            encode_signature(signature),
            [("content-type", b"application/msgpack"), *passed_on],
            record.timestamp_ms,
        )
