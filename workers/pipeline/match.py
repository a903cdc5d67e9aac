"""Match the records of `signatures`."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from nearstream.schemas.codec import (
    InvalidMessageError,
    encode_event,
    encode_label_change,
    event_headers,
    origin_header,
)
from nearstream.schemas.dead_letter import DeadLetter, Stage
from nearstream.schemas.document import document_key, from_milliseconds
from nearstream.schemas.events import Event, kind_of, subject_of
from nearstream.schemas.label_change import LabelChange, label_change_id
from nearstream.schemas.record import (
    ConsumerRecord,
    Headers,
    ProducerRecord,
    page_facts,
    page_headers,
    traceparent,
)
from nearstream.schemas.topics import LABELS_CHANGED, topics_of
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.index.contract import Admitted, Position, Status
from nearstream.streams.index.family import FamilyFacts
from nearstream.streams.index.labels import Labelling
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.matcher import Arrival, Matched, Matcher
from nearstream.streams.settling import Pause
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.monitoring.metrics import GAP_RECORDS, count_verdict
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter, decide_apart
from nearstream.workers.pipeline.signature_records import arrival_of
from nearstream.workers.pipeline.step import Lost, cooperative_yield

log = logging.getLogger(__name__)

CATCH_UP_BATCH = 32
_NOT_ADMITTED = -1


@dataclass(frozen=True)
class SignatureTopic:
    """What matching needs from the topic that it reads.

    Attributes:
        committed: Returns the group's committed offset of each of these partitions, -1 where it never committed.
        read_range: Yields the records of a partition from one offset up to another, which is not included.
    """

    committed: Callable[[Iterable[int]], Awaitable[dict[int, int]]]
    read_range: Callable[[int, int, int], AsyncGenerator[ConsumerRecord]]


@dataclass
class Matching:
    """Turns records of `signatures` into verdicts and events, and implements `Recovery`.

    Attributes:
        matcher: Matches the signatures.
        scheme: The scheme that signatures must have.
        limits: Limits of a document.
        topic_prefix: Goes before the name of each event topic.
        dead_letters: Writes the refused records.
        topic: The topic of the signatures.
        checkpoints: Returns the last offset of each partition that the index knows.
        pass_over: Sets checkpoints past records that hold no document.
        verdicts: Kinds of verdicts that are sent.
        family_of: Returns the family of a document, None if the index does not have the document.
    """

    matcher: Matcher
    scheme: Scheme
    limits: DocumentLimits
    topic_prefix: str
    dead_letters: DeadLetterWriter
    topic: SignatureTopic
    checkpoints: Callable[[], Awaitable[dict[int, int]]]
    pass_over: Callable[[Sequence[Position]], Awaitable[None]]
    verdicts: frozenset[str]
    family_of: Callable[[str], Awaitable[FamilyFacts | None]]
    _pause: Pause = field(default_factory=cooperative_yield)
    _admitted: dict[int, int] = field(default_factory=dict)  # last admitted offset of each partition
    _has_unknown_removals: bool = False

    def forget_positions(self) -> None:
        """Forget the admitted offsets, because partitions were revoked.

        Another worker may admit records of these partitions before they return to this one.
        """
        # A batch in progress keeps using the old dict, so replace it instead of clearing it.
        self._admitted = {}

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the verdict and the events of each record, or its dead letter.

        Raises:
            IndexUnavailableError: Wait, then decide again.
            IndexBehindError: The index lost its newest writes: `catch_up`, then decide again.
            IndexLostError: The index was emptied.
        """
        admitted = await self._positions({record.partition for record in records})
        return await self._match(records, admitted)

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        """Return what was admitted but lies after the checkpoint of the index.

        After a start, what the group committed counts as admitted.

        Raises:
            IndexUnavailableError: Wait, then ask again.
            IndexLostError: The index was emptied.
        """
        admitted = await self._positions(set(partitions))
        known = await self.checkpoints()
        ranges = [Lost(part, known.get(part, _NOT_ADMITTED), admitted[part] + 1) for part in partitions]
        return [lost for lost in ranges if lost.checkpoint + 1 < lost.end]

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[ProducerRecord]]:
        """Admit the lost records again, batch by batch, and yield their events.

        Raises:
            IndexUnavailableError: Wait, then start again.
            IndexLostError: The index was emptied.
            IndexBehindError: The index lost more meanwhile.
        """
        admitted = self._admitted
        admitted[lost.partition] = lost.checkpoint
        batch: list[ConsumerRecord] = []
        async with aclosing(self.topic.read_range(lost.partition, lost.checkpoint + 1, lost.end)) as missing:
            async for record in missing:
                batch.append(record)
                if len(batch) == CATCH_UP_BATCH:
                    yield await self._match_again(batch, admitted)
                    batch = []
        if batch:
            yield await self._match_again(batch, admitted)

    async def _match_again(self, batch: Sequence[ConsumerRecord], admitted: dict[int, int]) -> list[ProducerRecord]:
        outgoing = await self._match(batch, admitted)
        GAP_RECORDS.inc(len(batch))
        return outgoing

    async def _positions(self, partitions: set[int]) -> dict[int, int]:
        """Return the last admitted offset of at least these partitions.

        Callers update the returned dict as they admit further records.
        """
        admitted = self._admitted
        unknown = partitions - admitted.keys()
        if unknown:
            committed = await self.topic.committed(unknown)
            admitted.update({part: max(committed.get(part, -1), 0) - 1 for part in unknown})
        return admitted

    async def _match(self, records: Sequence[ConsumerRecord], admitted: dict[int, int]) -> list[ProducerRecord]:
        """Match records, and update their last admitted offsets."""

        async def failed(record: ConsumerRecord, error: BaseException) -> ProducerRecord:
            await self._pass_over_dead_letters([record], admitted)
            return self.dead_letters.unprocessable(record, Stage.MATCH, error)

        return await decide_apart(records, partial(self._match_once, admitted=admitted), failed)

    async def _match_once(self, records: Sequence[ConsumerRecord], admitted: dict[int, int]) -> list[ProducerRecord]:
        outgoing: list[ProducerRecord] = []
        reached = {part: admitted[part] for part in {record.partition for record in records} & admitted.keys()}
        arrivals: list[tuple[ConsumerRecord, Arrival]] = []
        for record in records:
            try:
                arrival = arrival_of(record, reached.get(record.partition, _NOT_ADMITTED), self.scheme, self.limits)
            except InvalidMessageError as error:
                outgoing.append(self.dead_letters.write(DeadLetter(record, Stage.MATCH, error.reason, error.detail)))
                continue
            reached[record.partition] = record.offset
            arrivals.append((record, arrival))
        found = await self.matcher.match_all([arrival for _, arrival in arrivals], self._pause)
        admitted.update(reached)
        await self._pass_over_dead_letters(records, admitted)
        for (record, arrival), matched in zip(arrivals, found, strict=True):
            for event in self._sent(matched):
                outgoing += self._outgoing(event, record.headers)
            outgoing += self._after_removal(record, arrival, matched.admitted)
            if arrival.labelling is not None:
                outgoing += await self._label_change(arrival.document_key, arrival.labelling)
        return outgoing

    async def _label_change(self, key: str, said: Labelling) -> list[ProducerRecord]:
        """Return that a label has changed. A label of a document that is not there yet changes nothing."""
        family = await self.family_of(key)
        if family is None:
            return []
        collection, _, name = key.partition("/")
        change = LabelChange(
            event_id=label_change_id(key, family.family_id, said.label, said.given_ms, self.scheme.name),
            collection=collection,
            scheme=self.scheme.name,
            document_id=name,
            kind=said.label,
            weight=said.weight,
            since=from_milliseconds(said.given_ms),
            family=family.family_id,
            first_seen=from_milliseconds(family.first_seen_ms),
        )
        topic, record_key = self.topic_prefix + LABELS_CHANGED.name, f"{collection}/{family.family_id}".encode()
        headers = event_headers(change, datetime.now(UTC))
        return [ProducerRecord(topic, record_key, encode_label_change(change), headers)]

    def _sent(self, matched: Matched) -> Sequence[Event]:
        """Count a verdict, and return it if it is to be sent, then the other events."""
        verdict = matched.verdict
        if verdict is not None:
            count_verdict(verdict, matched.admitted.status)
        if verdict is None or verdict.verdict not in self.verdicts:
            return matched.events
        return (verdict, *matched.events)

    def _after_removal(self, record: ConsumerRecord, arrival: Arrival, admitted: Admitted) -> list[ProducerRecord]:
        """Return the removal again if a document arrived that was sent before it.

        Compaction keeps only the newest record of a key, so without this a rebuilt index would hold the document. If
        the document has a later state, that one is live, and nothing is sent.
        """
        if admitted.status is Status.REMOVED and not (admitted.found or admitted.repeated):
            self._log_unknown_removal(record)
        if admitted.status is not Status.OVERTAKEN or admitted.removed_by is None or admitted.found:
            return []
        headers: Headers = [origin_header(admitted.removed_by)]
        removed_ms = admitted.removed_by.sent_at_ms or record.timestamp_ms
        return [ProducerRecord(record.topic, arrival.document_key.encode(), None, headers, removed_ms)]

    def _log_unknown_removal(self, record: ConsumerRecord) -> None:
        """Log the first removal that matches no document, because the sender may use another record key."""
        if not self._has_unknown_removals:
            self._has_unknown_removals = True
            log.warning(
                "the removal at %s %d offset %d matched no document: a null value removes the document whose id, or"
                " else lineage, is its record key, or the one that the header nearstream-id names; further ones are"
                " only counted, as removed_unknown",
                *(record.topic, record.partition, record.offset),
            )

    async def _pass_over_dead_letters(self, records: Sequence[ConsumerRecord], admitted: dict[int, int]) -> None:
        """Set the checkpoints past dead letters at the end of a batch.

        These follow the last document of their partition. Their offsets are committed too, so without this the index
        would seem to have lost them.
        """
        ends = {record.partition: record.offset for record in records}
        positions = [
            Position(part, end, admitted.get(part, _NOT_ADMITTED))
            for part, end in ends.items()
            if admitted.get(part, _NOT_ADMITTED) < end
        ]
        if positions:
            await self.pass_over(positions)
            admitted.update({position.partition: position.offset for position in positions})

    def _outgoing(self, event: Event, passed_on: Headers) -> list[ProducerRecord]:
        """Return the records of an event, one for each of its topics."""
        key = document_key(event.collection, subject_of(event)).encode()
        headers = event_headers(event, datetime.now(UTC), traceparent(passed_on))
        if isinstance(event, DocumentVerdict):
            headers += page_headers(page_facts(passed_on))
        value = encode_event(event)
        return [
            ProducerRecord(self.topic_prefix + topic.name, key, value, headers) for topic in topics_of(kind_of(event))
        ]
