"""Records of `signatures` in, relation events out."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from schemas.codec import InvalidMessageError, decode_signature, encode_event, event_headers
from schemas.dead_letter import DeadLetter, Reason, Stage
from schemas.document import document_key
from schemas.events import Event, Retraction, kind_of
from schemas.record import Outgoing, Record, traceparent
from schemas.signature import YEAR_9999_MS, Signature
from schemas.topics import EVENT_TOPICS, topic_of
from streams.completion import Bounds
from streams.index import Position
from streams.matcher import Arrival, Matcher, Pause
from streams.scheme import Scheme
from workers.letters import Letters
from workers.metrics import GAP_RECORDS
from workers.recovery import Lost
from workers.turns import giving_turns

CATCH_UP_BATCH = 32
_NOT_ADMITTED = -1


@dataclass(frozen=True)
class SignatureTopic:
    """What matching asks of the topic that it reads.

    Attributes:
        committed: Partitions to the group's committed offsets, -1 where there is none.
        read_range: Records of a partition from one offset up to, but without, another.
    """

    committed: Callable[[Iterable[int]], Awaitable[dict[int, int]]]
    read_range: Callable[[int, int, int], AsyncGenerator[Record]]


@dataclass
class Matching:
    """Matches signatures, and is a `Recovery`.

    `prefix` goes before each event topic's name; `checkpoints` tells the last offset of each partition that the index
    knows; `pass_over` lets it know further ones, where no document stands.
    """

    matcher: Matcher
    scheme: Scheme
    bounds: Bounds
    prefix: str
    letters: Letters
    topic: SignatureTopic
    checkpoints: Callable[[], Awaitable[dict[int, int]]]
    pass_over: Callable[[Sequence[Position]], Awaitable[None]]
    _pause: Pause = field(default_factory=giving_turns)
    _admitted: dict[int, int] = field(default_factory=dict)  # partition to the last offset admitted

    def forget_positions(self) -> None:
        """Called when partitions are revoked: another worker may admit from them meanwhile."""
        self._admitted = {}  # who is amid something ends it with the old ones

    async def decide(self, records: Sequence[Record]) -> list[Outgoing]:
        """The events of each record, or its dead letter.

        Raises:
            IndexUnavailableError: Wait, then decide again.
            IndexBehindError: The index lost its newest writes: `catch_up`, then decide again.
            IndexLostError: The index was emptied.
        """
        admitted = await self._positions({record.partition for record in records})
        return await self._match(records, admitted)

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        """As `Recovery.lost`: what was admitted, or else acknowledged, and is behind the index's checkpoint."""
        admitted = await self._positions(set(partitions))
        known = await self.checkpoints()
        found = [Lost(part, known.get(part, _NOT_ADMITTED), admitted[part] + 1) for part in partitions]
        return [lost for lost in found if lost.checkpoint + 1 < lost.end]

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[Outgoing]]:
        """As `Recovery.catch_up`."""
        admitted = self._admitted
        admitted[lost.partition] = lost.checkpoint
        batch: list[Record] = []
        async with aclosing(self.topic.read_range(lost.partition, lost.checkpoint + 1, lost.end)) as missing:
            async for record in missing:
                batch.append(record)
                if len(batch) == CATCH_UP_BATCH:
                    yield await self._caught_up(batch, admitted)
                    batch = []
        if batch:
            yield await self._caught_up(batch, admitted)

    async def _caught_up(self, batch: Sequence[Record], admitted: dict[int, int]) -> list[Outgoing]:
        outgoing = await self._match(batch, admitted)
        GAP_RECORDS.inc(len(batch))
        return outgoing

    async def _positions(self, partitions: set[int]) -> dict[int, int]:
        """Last offset admitted, of these partitions at least; who admits notes it there."""
        admitted = self._admitted
        unknown = partitions - admitted.keys()
        if unknown:
            committed = await self.topic.committed(unknown)
            admitted.update({part: max(committed.get(part, -1), 0) - 1 for part in unknown})
        return admitted

    async def _match(self, records: Sequence[Record], admitted: dict[int, int]) -> list[Outgoing]:
        outgoing: list[Outgoing] = []
        reached = dict(admitted)
        arrivals: list[tuple[Record, Arrival]] = []
        for record in records:
            try:
                arrival = self._arrival(record, reached.get(record.partition, _NOT_ADMITTED))
            except InvalidMessageError as error:
                outgoing.append(self.letters.write(DeadLetter(record, Stage.MATCH, error.reason, error.detail)))
                continue
            reached[record.partition] = record.offset
            arrivals.append((record, arrival))
        told = await self.matcher.match_all([arrival for _, arrival in arrivals], self._pause)
        admitted.update(reached)
        await self._pass_letters(records, admitted)
        for (record, _), events in zip(arrivals, told, strict=True):
            for event in events:
                outgoing += self._outgoing(event, traceparent(record.headers))
        return outgoing

    async def _pass_letters(self, records: Sequence[Record], admitted: dict[int, int]) -> None:
        """Letters behind the last document are acknowledged with it: else the index would seem to have lost them."""
        ends = {record.partition: record.offset for record in records}
        letters = [
            Position(part, end, admitted.get(part, _NOT_ADMITTED))
            for part, end in ends.items()
            if admitted.get(part, _NOT_ADMITTED) < end
        ]
        if letters:
            await self.pass_over(letters)
            admitted.update({letter.partition: letter.offset for letter in letters})

    def _arrival(self, record: Record, previous: int) -> Arrival:
        key, signature = signed(record, self.scheme, self.bounds)
        position = Position(record.partition, record.offset, previous)
        return Arrival(key, signature, position, record.timestamp_ms if signature is None else None)

    def _outgoing(self, event: Event, trace: bytes | None) -> list[Outgoing]:
        """The event for its topic; a retraction for every event topic."""
        if isinstance(event, Retraction):
            key, topics = document_key(event.collection, event.document_id), list(EVENT_TOPICS)
        else:
            key, topics = document_key(event.collection, event.newer.id), [topic_of(kind_of(event))]
        headers = event_headers(event, datetime.now(UTC), trace)
        value = encode_event(event)
        return [Outgoing(self.prefix + topic.name, key.encode(), value, headers) for topic in topics]


def signed(record: Record, scheme: Scheme, bounds: Bounds) -> tuple[str, Signature | None]:
    """Document key and signature of a record of `signatures`; None: a removal.

    Raises:
        InvalidMessageError: No `sign` worker of this deployment has written it.
    """
    key = _key(record)
    if record.value is None:
        if not 0 <= record.timestamp_ms <= YEAR_9999_MS:
            raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a removal with a time from 1970 to 9999 expected")
        return key, None
    signature = decode_signature(record.value)
    scheme.check(signature)
    if signature.document_key != key:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "the document key as record key expected")
    if not signature.n_bytes:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a signature of a text that is not empty expected")
    _check_time(signature, record, bounds)
    return key, signature


def _key(record: Record) -> str:
    try:
        return (record.key or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, "a record key in UTF-8 expected") from None


def _check_time(signature: Signature, record: Record, bounds: Bounds) -> None:
    latest_ms = record.timestamp_ms + 1000 * bounds.clock_skew_seconds
    if not 0 <= signature.observed_at_ms <= latest_ms:
        raise InvalidMessageError(
            Reason.INVALID_SIGNATURE,
            f"observed_at from 1970 to {bounds.clock_skew_seconds} s after the record's time expected",
        )
