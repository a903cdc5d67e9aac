"""Decide from the records of `verdicts` what a crawler should do with the pages of each lineage."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nearstream.schemas.documents.record import ConsumerRecord, Headers, PageFacts, ProducerRecord, page_facts
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event, encode_json
from nearstream.schemas.topics.dead_letter import DeadLetter
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.decider import Decider, Said, needs
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.workers.monitoring.metrics import ERROR_TEXTS
from nearstream.workers.pipeline.dead_letters import DATA_ERRORS, DeadLetterWriter
from nearstream.workers.redis.kept.decisions import DecisionStore

log = logging.getLogger(__name__)


def notice_error_text(host: str, family: str) -> None:
    """Count a text to which pages of a host have turned, and log it."""
    ERROR_TEXTS.inc()
    log.warning("three pages of %s have turned to one text, and are tried again: family %s", host, family)


@dataclass(frozen=True)
class Deciding:
    """Turns records of `verdicts` into records of `decisions`.

    What a batch needs is read at once, and what it changes is stored at once, before decisions are sent. A batch that
    is tried again finds these, and sends them again as they are. What is known of a host is stored first, so a fetch
    whose worker ends between the two is learned from twice.
    """

    store: DecisionStore  # what is known
    decider: Callable[[MemoryDecisions], Decider]  # returns what makes decisions from what is known
    topic: str  # where decisions are sent
    dead_letters: DeadLetterWriter  # writes the refused records

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the decisions after each verdict, a null value for a removed lineage, or a dead letter.

        A page of another URL than its lineage has the decision under both, because a crawler asks about the URL. A page
        that has become a copy, or shows what is now known as an error text, has a new decision too.
        """
        try:
            return await self._decide(records)
        except DATA_ERRORS as error:
            if len(records) == 1:
                return [self.dead_letters.unprocessable(records[0], "decide", error)]
        return [sent for record in records for sent in await self.decide([record])]

    async def _decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        outgoing, events = list[ProducerRecord](), list[tuple[Event, PageFacts]]()
        for record in records:
            try:
                events.append((decode_event(record.value or b""), page_facts(record.headers)))
            except InvalidMessageError as error:
                outgoing.append(self.dead_letters.write(DeadLetter(record, "decide", error.reason, error.detail)))
        before = await self.store.load(needs(event for event, _ in events))
        after = before.copy()
        decider = self.decider(after)
        for event, page in events:
            if isinstance(event, DocumentVerdict):
                outgoing += map(self._record, await decider.after_verdict(event, page))
            elif isinstance(event, Retraction):
                outgoing += map(self._record, await decider.after_removal(event))
        await self.store.save(before, after)
        return outgoing

    def _record(self, said: Said) -> ProducerRecord:
        value = None if said.decision is None else encode_json(said.decision)
        headers: Headers = [] if value is None else [("content-type", b"application/json")]
        key = f"{said.collection}/{said.name}".encode("utf-8", "surrogatepass")
        return ProducerRecord(self.topic, key, value, headers)
