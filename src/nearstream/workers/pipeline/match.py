"""Match the records of `signatures`."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nearstream.schemas.documents.document import document_key, from_milliseconds
from nearstream.schemas.documents.record import (
    ConsumerRecord,
    Headers,
    ProducerRecord,
    page_facts,
    page_headers,
    traceparent,
)
from nearstream.schemas.documents.signature import Origin
from nearstream.schemas.labels.label import LabelChange, label_change_id
from nearstream.schemas.topics.codec import (
    InvalidMessageError,
    encode_json,
    event_headers,
    origin_header,
)
from nearstream.schemas.topics.dead_letter import DeadLetter
from nearstream.schemas.topics.table import DOCUMENTS, LABELS_CHANGED, topics_of
from nearstream.schemas.verdicts.events import Event, kind_of, subject_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.labels import Labelling
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.matching.telling import Matched
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.limits import IndexBehindError
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Position
from nearstream.workers.monitoring.metrics import GAP_RECORDS, count_verdict
from nearstream.workers.pipeline.dead_letters import DATA_ERRORS, DeadLetterWriter
from nearstream.workers.pipeline.signature_records import arrival_of, at_home
from nearstream.workers.pipeline.step import Lost, cooperative_yield

log = logging.getLogger(__name__)

CATCH_UP_BATCH = 32
_NONE = -1


@dataclass(frozen=True)
class SignatureTopic:
    """What matching needs from the topic that it reads."""

    # Returns the group's committed offset of each of these partitions, -1 where it never committed.
    committed: Callable[[Iterable[int]], Awaitable[dict[int, int]]]
    # Yields the records of a partition from one offset up to another, which is not included.
    read_range: Callable[[int, int, int], AsyncGenerator[ConsumerRecord]]


@dataclass
class Matching:
    """Turns records of `signatures` into verdicts and events, and implements `Recovery`."""

    matcher: Matcher  # matches the signatures
    scheme: Scheme  # the scheme that signatures must have
    limits: DocumentLimits  # limits of a document
    topic_prefix: str  # goes before the name of each event topic
    dead_letters: DeadLetterWriter  # writes the refused records
    topic: SignatureTopic  # the topic of the signatures
    # Returns the offset of each partition up to which the index knows that everything is done.
    checkpoints: Callable[[], Awaitable[dict[int, int]]]
    # Tells the index that everything up to these positions is done.
    cover: Callable[[Sequence[Position]], Awaitable[None]]
    verdicts: frozenset[str]  # kinds of verdicts that are sent
    # Returns the family of a document, None if the index does not have the document.
    family_of: Callable[[str], Awaitable[FamilyFacts | None]]
    _pause: Pause = field(default_factory=cooperative_yield)
    _covered: dict[int, int] = field(default_factory=dict)  # last offset of each partition that is done
    _trusted: set[int] = field(default_factory=set)  # partitions of which the index has all that is done
    _unsure: set[int] = field(default_factory=set)  # partitions whose last batch may be known to the index in part
    _has_unknown_removals: bool = False

    def forget_positions(self) -> None:
        """Forget what is done, because partitions were revoked.

        Another worker may match records of these partitions before they return to this one.
        """
        # A batch in progress keeps using the old dict, so replace it instead of clearing it.
        self._covered, self._trusted = {}, set()

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the verdict and the events of each record, or its dead letter."""
        partitions = {record.partition for record in records}
        covered = await self._positions(partitions)
        if not partitions <= self._trusted:
            await self._require(partitions - self._trusted, covered)
        return await self._match(records, covered)

    async def _require(self, partitions: set[int], covered: dict[int, int]) -> None:
        """Refuse an index that has lost what was done before these partitions came to this worker.

        What it loses later, the slots notice themselves.
        """
        trusted, known = self._trusted, await self.checkpoints()
        for partition in sorted(partitions):
            if known.get(partition, _NONE) < covered[partition]:
                raise IndexBehindError(partition, known.get(partition, _NONE))
        trusted |= partitions

    async def lost(self, partitions: Collection[int]) -> list[Lost]:
        """Return what was done but lies after the checkpoint of the index.

        After a start, what the group committed counts as done.
        """
        covered = await self._positions(set(partitions))
        known = await self.checkpoints()
        ranges = [Lost(part, known.get(part, _NONE), covered[part] + 1) for part in partitions]
        return [lost for lost in ranges if lost.checkpoint + 1 < lost.end]

    async def catch_up(self, lost: Lost) -> AsyncIterator[list[ProducerRecord]]:
        """Match the lost records again, batch by batch, and yield their events."""
        covered = self._covered
        covered[lost.partition] = lost.checkpoint
        batch: list[ConsumerRecord] = []
        async with aclosing(self.topic.read_range(lost.partition, lost.checkpoint + 1, lost.end)) as missing:
            async for record in missing:
                batch.append(record)
                if len(batch) == CATCH_UP_BATCH:
                    yield await self._match_again(batch, covered)
                    batch = []
        if batch:
            yield await self._match_again(batch, covered)

    async def _match_again(self, batch: Sequence[ConsumerRecord], covered: dict[int, int]) -> list[ProducerRecord]:
        self._unsure |= {record.partition for record in batch}
        outgoing = await self._match(batch, covered)
        GAP_RECORDS.inc(len(batch))
        return outgoing

    async def _positions(self, partitions: set[int]) -> dict[int, int]:
        """Return the last offset that is done of at least these partitions.

        Callers update the returned dict as they go on.
        """
        covered = self._covered
        unknown = partitions - covered.keys()
        if unknown:
            committed = await self.topic.committed(unknown)
            covered.update({part: max(committed.get(part, -1), 0) - 1 for part in unknown})
            self._unsure |= unknown  # a worker before this one may have gone further
        return covered

    async def _match(self, records: Sequence[ConsumerRecord], covered: dict[int, int]) -> list[ProducerRecord]:
        outgoing = await self._match_apart(records, covered)
        self._unsure -= {record.partition for record in records}
        return outgoing

    async def _match_apart(self, records: Sequence[ConsumerRecord], covered: dict[int, int]) -> list[ProducerRecord]:
        try:
            return await self._match_once(records, covered)
        except DATA_ERRORS as error:
            if len(records) == 1:
                await self._cover(records, covered)
                return [self.dead_letters.unprocessable(records[0], "match", error)]
        return [sent for record in records for sent in await self._match_apart([record], covered)]

    async def _match_once(self, records: Sequence[ConsumerRecord], covered: dict[int, int]) -> list[ProducerRecord]:
        outgoing: list[ProducerRecord] = []
        arrivals: list[tuple[ConsumerRecord, Arrival]] = []
        for record in records:
            try:
                arrival = arrival_of(record, self.scheme, self.limits)
                arrivals.append((record, at_home(arrival, self.matcher.partitions)))
            except InvalidMessageError as error:
                outgoing.append(self.dead_letters.write(DeadLetter(record, "match", error.reason, error.detail)))
        partitions = {record.partition for record in records}
        is_again = bool(partitions & self._unsure)
        self._unsure |= partitions  # until the whole batch is done, also if its records are matched one by one
        found = await self.matcher.match_all([arrival for _, arrival in arrivals], self._pause, is_again=is_again)
        await self._cover(records, covered)
        for (record, arrival), matched in zip(arrivals, found, strict=True):
            for event in self._sent(matched):
                outgoing += self._outgoing(event, record.headers)
            outgoing += self._after_removal(record, arrival, matched.registered)
            if arrival.labelling is not None:
                outgoing += await self._label_change(arrival.document_key, arrival.labelling)
        return outgoing

    async def _cover(self, records: Sequence[ConsumerRecord], covered: dict[int, int]) -> None:
        """Let every slot know that these records are done, so that their offsets may be committed."""
        ends = {record.partition: record.offset for record in records}
        await self.cover([Position(partition, offset) for partition, offset in ends.items()])
        covered.update(ends)

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
        return [ProducerRecord(topic, record_key, encode_json(change), headers)]

    def _sent(self, matched: Matched) -> Sequence[Event]:
        """Count a verdict, and return it if it is to be sent, then the other events."""
        verdict = matched.verdict
        if verdict is not None:
            count_verdict(verdict, matched.registered.status)
        if verdict is None or verdict.verdict not in self.verdicts:
            return matched.events
        return (verdict, *matched.events)

    def _after_removal(self, record: ConsumerRecord, arrival: Arrival, found: Registered) -> list[ProducerRecord]:
        """Return the removal again if a document arrived that was sent before it.

        Compaction keeps only the newest record of a key, so without this a rebuilt index would hold the document. If
        the document has a later state, that one is live, and nothing is sent.
        """
        if found.status is Status.REMOVED and not (found.was_known or found.is_repeated):
            self._log_unknown_removal(record)
        if found.status is not Status.OVERTAKEN or found.was_known or found.removed_by.partition < 0:
            return []
        headers: Headers = [origin_header(Origin(self.topic_prefix + DOCUMENTS.name, *found.removed_by))]
        removed_ms = found.removed_by.ms or record.timestamp_ms
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

    def _outgoing(self, event: Event, passed_on: Headers) -> list[ProducerRecord]:
        key = document_key(event.collection, subject_of(event)).encode()
        headers = event_headers(event, datetime.now(UTC), traceparent(passed_on))
        if isinstance(event, DocumentVerdict):
            headers += page_headers(page_facts(passed_on))
        value = encode_json(event)
        return [
            ProducerRecord(self.topic_prefix + topic.name, key, value, headers) for topic in topics_of(kind_of(event))
        ]
