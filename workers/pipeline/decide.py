"""Decide from the records of `verdicts` what a crawler should do with the pages of each lineage."""

from collections.abc import Sequence
from dataclasses import dataclass

from nearstream.schemas.codec import InvalidMessageError, decode_event, encode_decision
from nearstream.schemas.dead_letter import DeadLetter, Stage
from nearstream.schemas.decision import Decision
from nearstream.schemas.events import Retraction
from nearstream.schemas.record import ConsumerRecord, Headers, ProducerRecord, page_parts
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.deciding import decide_page, to_compare
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of
from nearstream.workers.crawl.sites import site_of
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter, decide_apart
from nearstream.workers.redis_index.decisions import DecisionStore


@dataclass(frozen=True)
class Deciding:
    """Turns records of `verdicts` into records of `decisions`.

    A decision is stored before it is sent. A batch that is tried again finds it, and sends it again as it is. What is
    known of a frame is stored before that, so a fetch whose worker ends between the two is learned from twice.

    Attributes:
        store: The newest decision of each lineage.
        topic: Where decisions are sent.
        dead_letters: Writes the refused records.
    """

    store: DecisionStore
    topic: str
    dead_letters: DeadLetterWriter

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the decision after each verdict, a null value for a removed lineage, or a dead letter.

        A page of another URL than its lineage has the decision under both, because a crawler asks about the URL. A
        verdict about a document without a lineage has no result.

        Raises:
            IndexUnavailableError: Redis does not answer. Wait, then decide again.
        """
        return await decide_apart(records, self._decide, self._failed)

    async def _failed(self, record: ConsumerRecord, error: BaseException) -> ProducerRecord:
        return self.dead_letters.unprocessable(record, Stage.DECIDE, error)

    async def _decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        outgoing = []
        for record in records:
            try:
                event = decode_event(record.value or b"")
            except InvalidMessageError as error:
                outgoing.append(self.dead_letters.write(DeadLetter(record, Stage.DECIDE, error.reason, error.detail)))
                continue
            if isinstance(event, DocumentVerdict):
                outgoing += await self._after_verdict(event, page_parts(record.headers))
            elif isinstance(event, Retraction):
                outgoing += await self._after_removal(event)
        return outgoing

    async def _after_verdict(self, verdict: DocumentVerdict, parts: bytes) -> list[ProducerRecord]:
        if verdict.lineage is None:
            return []
        former = await self.store.read_state(verdict.collection, verdict.lineage)
        host = host_of(verdict.url or verdict.lineage)
        alike = dict.fromkeys(to_compare(verdict, site_of), b"")
        if parts:
            alike = {lineage: await self._parts(verdict.collection, lineage) for lineage in alike}
        has_frame = parts and (any(alike.values()) or (former and former.parts))
        frame = await self.store.read_frame(verdict.collection, host) if has_frame else {}
        state, learned = decide_page(former, frame, verdict, parts, alike)
        if state is None:
            return []
        if learned != frame:
            await self.store.write_frame(verdict.collection, host, learned)
        if state != former:
            await self.store.write(state)
        decision = state.decision
        decided = [self._record(decision.collection, decision.lineage, decision)]
        alias = name_of_page(verdict.url) if verdict.url else verdict.lineage
        if alias != verdict.lineage:
            await self.store.write_alias(decision, alias)
            decided.append(self._record(decision.collection, alias, decision))
        return decided

    async def _parts(self, collection: str, lineage: str) -> bytes:
        """Return the hashes of the parts of a page, packed. They are empty if they are not known."""
        state = await self.store.read_state(collection, lineage)
        return b"" if state is None else state.parts

    async def _after_removal(self, retraction: Retraction) -> list[ProducerRecord]:
        """Forget the decision of a lineage whose name is the id of the removed document."""
        former = await self.store.read(retraction.collection, retraction.document_id)
        if former is None:
            return []
        if former.observed_at <= retraction.removed_at:
            await self.store.forget(retraction.collection, retraction.document_id)
            former = None
        return [self._record(retraction.collection, retraction.document_id, former)]

    def _record(self, collection: str, lineage: str, decision: Decision | None) -> ProducerRecord:
        value = None if decision is None else encode_decision(decision)
        headers: Headers = [] if value is None else [("content-type", b"application/json")]
        return ProducerRecord(self.topic, f"{collection}/{lineage}".encode("utf-8", "surrogatepass"), value, headers)
