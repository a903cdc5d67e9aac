"""Builds the verdict about a decided document, and its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec import UNSET, UnsetType

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import DocumentState, ReferenceMatch, event_id
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import PairEvent, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict, FamilyRef, VerdictKind
from nearstream.streams.matching.counterpart import Compared, covers_of, degraded, novelty_of
from nearstream.streams.matching.family import Family, own_family_id, own_sites
from nearstream.streams.matching.judge import Documents
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.decision import Decision
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.relations.describe import (
    describe,
    distance,
    document_ref,
    document_state,
    naming,
    resemblance,
)
from nearstream.streams.relations.novelty import Source
from nearstream.streams.relations.verdict import SURROUNDINGS_DIFFER, surroundings_differ
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.registration import Registered

References = tuple[ReferenceMatch, ...] | UnsetType
"""What a document is to the collections that it names. UNSET: it names none."""

_OF_NONE: dict[str, Any] = {"of": None} | dict.fromkeys(("resemblance", "distance", "inner", "added"), UNSET)


@dataclass(frozen=True)
class Matched:
    """What the matcher did with one arrival."""

    # What the document is to those before it. None for a removal, and for a document that its removal has overtaken.
    verdict: DocumentVerdict | None
    events: tuple[PairEvent | Retraction, ...]  # its relation events, or the retraction of a removal
    registered: Registered  # what the store said about it


class Teller:
    """Builds verdicts and events from decided documents."""

    def __init__(self, documents: Documents, scheme: Scheme, relations: frozenset[str]) -> None:
        self._documents = documents
        self._scheme = scheme
        self._relations = relations

    async def told(self, case: Case, known: Known, references: References, pause: Pause) -> Matched:
        """Return the verdict and the events of a decided document."""
        decision = case.decision
        if decision is None:
            return Matched(None, (), case.registered)  # it was removed or has expired meanwhile
        own: Signature = case.document.signature
        compared = {each.number: each for each in case.compared.values() if isinstance(each, Compared)}
        sent = sent_numbers(case, decision)
        family = self._family(case, decision, known, compared)
        events = []
        for number in [*sent, *self._late(case, decision, known)]:
            if number in compared:
                events.append(describe(compared[number].pair, family.family_id))
                await pause()
        kind = decision.pairs[0].relation if decision.pairs else "unique"
        best = compared.get(decision.pairs[0].number) if decision.pairs else None
        said = self._of_best(own, best, decision)
        # A later delivery knows these again, and not the others.
        named = {each.number: each for each in (best, *map(compared.get, sent)) if each is not None}
        if named or kind == "unique":
            others, sources = list(named.values()), list[Source]()
            for each in others:
                sources += covers_of(own, [each])
                await pause()
            new = novelty_of(own, others, sources)
            said |= vars(new) | {"added": UNSET if new.added is None else new.added}
            await pause()
        if best is not None and not best.comes_before:
            said |= _OF_NONE  # else a chain of `of` might be a circle
        said |= {"redundant": decision.is_redundant, "events": len(sent), "references": references}
        return Matched(verdict_of(own, kind, family, said), tuple(events), case.registered)

    @staticmethod
    def _of_best(own: Signature, best: Compared | None, decision: Decision) -> dict[str, Any]:
        """Return what a verdict says of the best relation. The other document may be gone."""
        if best is None:
            return {"degraded": degraded(own, own, (decision.full_buckets, decision.cut))}
        pair = best.pair
        return {
            "of": document_ref(best.earlier),
            "resemblance": resemblance(pair.estimate),
            "distance": distance(pair.estimate),
            "inner": pair.verdict.inner or UNSET,
            "removed_spans": best.removed_spans if best.comes_before else UNSET,
            "low_confidence": pair.verdict.low_confidence,
            "degraded": pair.degraded,
        }

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

    def unchanged(
        self, own: Signature, same: Signature, family: Family, registered: Registered, references: References
    ) -> Matched:
        """Return the verdict about a document that repeats a stored state."""
        differs = surroundings_differ(own, same)
        said = {
            "of": document_ref(same),
            "events": 0,
            "redundant": False,  # a consumer may keep the last verdict of a document only
            "references": references,
            "low_confidence": (SURROUNDINGS_DIFFER,) if differs else (),
            "degraded": (),
        }
        return Matched(verdict_of(own, "unchanged", family, said), (), registered)


def verdict_of(own: Signature, kind: str, family: Family, said: Mapping[str, Any]) -> DocumentVerdict:
    """Return the verdict about a document: what names the document, its family, and what else is said of it."""
    named = FamilyRef(
        id=family.family_id,
        ordinal=family.ordinal,
        first_seen=from_milliseconds(family.first_seen_ms),
        founder=None if family.founder is None else document_ref(family.founder),
        sites=family.sites,
    )
    return DocumentVerdict(
        event_id=event_id("verdict", DocumentState(), document_state(own), own.scheme),
        collection=own.collection,
        scheme=own.scheme,
        verdict=cast(VerdictKind, kind),
        family=named,
        **{"of": None, **naming(own), **said},
    )


def sent_numbers(case: Case, decision: Decision) -> Sequence[int]:
    """Return the related documents whose events are sent with a verdict.

    Those of the founder all are, also when it has changed.
    """
    joined = case.joined
    of_links = joined.new_links if joined is not None and joined.ordinal > 1 else ()
    new = dict(zip((pair.number for pair in decision.links), of_links, strict=False))
    return [pair.number for pair in decision.pairs if pair.is_sent and new.get(pair.number, True)]
