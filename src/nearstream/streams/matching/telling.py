"""Builds the verdict about a decided document, and its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.evidence import ReferenceMatch
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import PairEvent, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.counterpart import (
    Compared,
    covers_of,
    degraded,
    document_verdict,
    is_mail,
    novelty_of,
    with_novelty,
)
from nearstream.streams.matching.family import Family, own_family_id, own_sites
from nearstream.streams.matching.judge import Documents
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.decision import Decision
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.relations.describe import describe, document_ref
from nearstream.streams.relations.novelty import Source
from nearstream.streams.relations.verdict import SURROUNDINGS_DIFFER, surroundings_differ
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.registration import Registered


@dataclass(frozen=True)
class Matched:
    """What the matcher did with one arrival."""

    # What the document is to those before it. None for a removal, and for a document that its removal has overtaken.
    verdict: DocumentVerdict | None
    events: tuple[PairEvent | Retraction, ...]  # its relation events, or the retraction of a removal
    registered: Registered  # what the store said about it


def with_references(matched: Matched, found: tuple[ReferenceMatch, ...]) -> Matched:
    """Return a result whose verdict says what its document is to reference collections."""
    verdict = matched.verdict
    return matched if verdict is None else replace(matched, verdict=with_fields(verdict, references=found))


class Teller:
    """Builds verdicts and events from decided documents."""

    def __init__(self, documents: Documents, scheme: Scheme, relations: frozenset[str]) -> None:
        """Take what knows the documents, the scheme, and the relations to be sent."""
        self._documents = documents
        self._scheme = scheme
        self._relations = relations

    async def told(self, case: Case, known: Known, pause: Pause) -> Matched:
        """Return the verdict and the events of a decided document."""
        decision = case.decision
        if decision is None:
            return Matched(None, (), case.registered)  # it was removed or has expired meanwhile
        own: Signature = case.document.signature
        compared = {each.number: each for each in case.compared.values() if isinstance(each, Compared)}
        sent = sent_numbers(case, decision)
        events = []
        family = self._family(case, decision, known, compared)
        for number in [*sent, *self._late(case, decision, known)]:
            if number in compared:
                events.append(describe(compared[number].pair, family.family_id))
                await pause()
        kind = decision.pairs[0].relation if decision.pairs else "unique"
        best = compared.get(decision.pairs[0].number) if decision.pairs else None
        lacks = (decision.full_buckets, decision.cut)
        lacking = best.pair.degraded if best else degraded(own, own, lacks)
        verdict = document_verdict(own, kind, best.pair if best else None, family, lacking)
        # A later delivery knows these again, and not the others.
        named = {each.number: each for each in (best, *map(compared.get, sent)) if each is not None}
        if named or kind == "unique":
            others, sources = list(named.values()), list[Source]()
            for each in others:
                sources += covers_of(own, [each])
                await pause()
            verdict = with_novelty(verdict, novelty_of(own, others, sources))
            await pause()
        return Matched(with_fields(verdict, events=len(sent)), tuple(events), case.registered)

    def _late(self, case: Case, decision: Decision, known: Known) -> list[int]:
        """Return the related documents that were met only after the decision, of other families."""
        late = [each for each in case.late if isinstance(each, Compared)]
        return [
            each.number
            for each in late
            if each.relation in self._relations
            and not each.is_common_text
            and known.family_of(each.number) != decision.founder
        ]

    def _family(self, case: Case, decision: Decision, known: Known, compared: Mapping[int, Compared]) -> Family:
        own: Signature = case.document.signature
        if decision.founder == case.number:
            own_id = own_family_id(own, self._scheme.name)
            return Family(case.number, own_id, 1, own, own.observed_at_ms, own_sites(own))
        joined = case.joined
        if joined is None:
            raise AssertionError(f"number {case.number}: a member has joined its family before it is told")
        founder = None
        if known.has_text(decision.founder):
            own_founder = compared.get(decision.founder)
            record = self._documents.record_of(decision.founder, known)
            founder = record.signature if own_founder is None else own_founder.earlier
        family_id, seen_ms = joined.family_id.hex(), joined.first_seen_ms
        return Family(decision.founder, family_id, joined.ordinal, founder, seen_ms, joined.sites)

    def unchanged(self, own: Signature, same: Signature, family: Family, registered: Registered) -> Matched:
        """Return the verdict about a document that repeats a stored state."""
        verdict = document_verdict(own, "unchanged", None, family)
        differs = surroundings_differ(own, same)
        reasons = (SURROUNDINGS_DIFFER,) if differs else ()
        redundant = not (differs or self._scheme.text.masks or is_mail(own))
        told = with_fields(verdict, of=document_ref(same), redundant=redundant, low_confidence=reasons)
        return Matched(told, (), registered)


def sent_numbers(case: Case, decision: Decision) -> Sequence[int]:
    """Return the related documents whose events are sent with a verdict.

    Those of the founder all are, also when it has changed.
    """
    joined = case.joined
    of_links = joined.new_links if joined is not None and joined.ordinal > 1 else ()
    new = dict(zip((pair.number for pair in decision.links), of_links, strict=False))
    return [pair.number for pair in decision.pairs if pair.is_sent and new.get(pair.number, True)]
