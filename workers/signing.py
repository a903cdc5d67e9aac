"""Records of `documents` in, records of `signatures` out."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import tee

from schemas.codec import InvalidMessageError, encode_signature
from schemas.dead_letter import DeadLetter, Stage
from schemas.record import Headers, Outgoing, Record, traceparent
from schemas.signature import Origin, Signature
from streams.completion import Bounds
from streams.receive import Removal, receive
from streams.signer import Signer, Unsigned
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
        # Signing reads ahead as far as it signs together.
        received, ahead = tee(map(self._received, records))
        signed = self.signer.sign_many(each for each in ahead if isinstance(each, Unsigned))
        for record, each in zip(records, received, strict=True):
            result = self._signed(record, next(signed)) if isinstance(each, Unsigned) else each
            if result is not None:
                outgoing.append(result)
            await self._pause()
        return outgoing

    def _received(self, record: Record) -> Unsigned | Outgoing:
        try:
            received = receive(record, self.bounds)
        except InvalidMessageError as error:
            return self._refused(record, error)
        if isinstance(received, Removal):
            key = received.document_key.encode()
            return Outgoing(self.topic, key, None, _passed_on(record), record.timestamp_ms)
        return Unsigned(received.document, Origin(record.topic, record.partition, record.offset), received.degraded)

    def _signed(self, record: Record, signature: Signature | InvalidMessageError) -> Outgoing | None:
        if isinstance(signature, InvalidMessageError):
            return self._refused(record, signature)
        if not signature.n_bytes:
            log.debug("empty text: %s %d %d", record.topic, record.partition, record.offset)
            return None
        return Outgoing(
            self.topic,
            signature.document_key.encode(),
            encode_signature(signature),
            [("content-type", b"application/msgpack"), *_passed_on(record)],
            record.timestamp_ms,
        )

    def _refused(self, record: Record, error: InvalidMessageError) -> Outgoing:
        return self.letters.write(DeadLetter(record, Stage.DECODE, error.reason, error.detail))


def _passed_on(record: Record) -> Headers:
    trace = traceparent(record.headers)
    return [("traceparent", trace)] if trace else []
