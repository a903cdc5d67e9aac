"""Look up the neighbours of a document in its collection and in references."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

from msgspec import UNSET
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import ReferenceMatch, Relation
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import ITEM_WORDS, WINDOW_RULES
from nearstream.streams.matching.arriving import Arriving, case_of
from nearstream.streams.matching.counterpart import Candidate, compare_with, joined, novelty_of
from nearstream.streams.matching.counterpart import Compared as Counterpart
from nearstream.streams.matching.family import FamilyFacts, family_facts
from nearstream.streams.matching.judge import Documents
from nearstream.streams.matching.labels import FamilyDetails, labelled_details
from nearstream.streams.matching.protocol.case import Case, Compared
from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.meeting import Meeting, Pause
from nearstream.streams.matching.protocol.tally import held_by
from nearstream.streams.relations.describe import distance, resemblance
from nearstream.streams.relations.novelty import Novelty
from nearstream.streams.relations.rules import COVERED, VERBATIM
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import ANCHOR, Entry, Leave, Measure, Query, View
from nearstream.streams.store.record import unpack_record
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Store

_ASKED = Registered(Status.NEW)
_FIRST = 8  # states that are compared because they are the oldest with a passage
_ATTACHED = 16  # first mails with equal attachments of which labels are read, and as many last ones
_COVERING = 16  # related documents of which is asked what they have


@dataclass(frozen=True)
class Neighbours:
    """What a look-up finds."""

    candidates: Sequence[Candidate]  # the neighbours, the best first
    families: Mapping[int, FamilyFacts]  # the family of each of them, by the number of the neighbour
    windows: Mapping[int, int] = field(default_factory=dict)  # count of windows that both have, by this number


class _Reading:
    """A store of which a look-up only reads.

    What is asked about a state comes with its record. Most of those that are asked about are compared, and to ask for
    their records afterwards takes longer than to read a few in vain.
    """

    def __init__(self, store: Store) -> None:
        self.limits = store.limits
        self._store = store
        self._views: dict[int, View | None] = {}

    async def fetch(self, batch: Sequence[Query]) -> list[View | None]:
        """Return what is known of each state."""
        wanted = [query.number for query in batch if query.number not in self._views]
        if wanted:
            answers = await self._store.fetch([Query(number, record=True) for number in wanted])
            self._views.update(zip(wanted, answers, strict=True))
        return [self._views[query.number] for query in batch]

    async def enter(self, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        """Return what buckets hold."""
        return await self._store.peek(batch)

    peek = enter

    async def leave(self, batch: Sequence[Leave]) -> list[int]:
        """Tell nobody that a representative is dead. The next copy that arrives does."""
        return [0] * len(batch)


class _Listing:
    """Lists the earlier documents that are worth a comparison, and compares with none."""

    def __init__(self, documents: Documents) -> None:
        self.found: dict[Case, list[Candidate]] = {}
        self._documents = documents

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> Sequence[Compared]:
        """List some states."""
        self.found.setdefault(case, []).extend(self._documents.candidates(case, numbers, known))
        return ()


async def _no_pause() -> None:
    """Continue at once."""


async def look_up_all(
    store: Store, asked: Sequence[Arriving], now_ms: int = 0, pause: Pause = _no_pause
) -> list[Neighbours]:
    """Return the neighbours of each document, with their families.

    The store is only read. At 0 `now_ms` is the time of the store. `pause` is awaited after each comparison.
    """
    documents = Documents(asked[0].scheme, asked[0].thresholds, frozenset())
    listing, known = _Listing(documents), Known()
    meeting = Meeting(_Reading(store), listing, pause)
    cases = [case_of(each, _ASKED) for each in asked]
    await meeting.look(cases, lambda case: case.named + case.words)
    await meeting.meet(cases, known)
    # Those that were labelled are among the first copies, and no longer among the best where many have come since.
    met = {case: {each.number for each in listing.found.get(case, ())} for case in cases}
    await meeting.refresh({case: _first_sharing(case) - met[case] for case in cases}, known)
    listed = [_once_each(listing.found.get(case, ()), met[case], known) for case in cases]
    numbers = {each.number for found in listed for each in found}
    founders = sorted({known.family_of(number) for number in numbers} & known.families.keys())
    grown = await store.growth([Measure(founder, now_ms) for founder in founders]) if founders else []
    growths = dict(zip(founders, grown, strict=True))
    return [
        Neighbours(found, {each.number: _facts(each, known, growths, documents) for each in found}, _windows(case))
        for case, found in zip(cases, listed, strict=True)
    ]


async def with_attachments(store: Store, asked: Arriving, delay_ms: int) -> tuple[int, FamilyDetails]:
    """Return how many mails have the attachments of one, and labels of these.

    The first and the last ones are read, and labels count from the age `delay_ms` on.
    """
    if asked.keys.attachments is None:
        return 0, FamilyDetails()
    (found,) = await store.peek([Entry(0, 0, ANCHOR + asked.keys.attachments)])
    numbers = [number for _, held in held_by(found) for number in held]
    some = list(dict.fromkeys((*numbers[:_ATTACHED], *numbers[-_ATTACHED:])))
    views = await store.fetch([Query(number, record=True) for number in some]) if some else ()
    living = {n: view for n, view in zip(some, views, strict=True) if view and view.record and not view.is_dead}
    founders = sorted({founder_of(view.decision) for view in living.values() if view.decision is not None})
    grown = [each for each in await store.growth([Measure(each, 0) for each in founders]) if each] if founders else []
    marks = {number: packed for growth in grown for _, number, packed in growth.marks}
    given = [
        (unpack_record(view.record or b"", asked.scheme.name, view.order.version, view.order.observed_ms), marks.get(n))
        for n, view in living.items()
    ]
    until_ms = max((growth.now_ms for growth in grown), default=0) - delay_ms
    return len(numbers), labelled_details([(document, packed or b"") for document, packed in given], until_ms)


def _windows(case: Case) -> Counter[int]:
    """Return how many windows of a document each state has, for one that is compared with a reference."""
    asked: Arriving = case.document
    wanted = {ANCHOR + key for key in asked.keys.windows}
    held = held_by(case.found) if wanted else ()
    return Counter(number for key, numbers in held if key in wanted for number in numbers)


def _first_sharing(case: Case) -> set[int]:
    """Return the oldest states that share a passage with a document: a quarter of its anchors."""
    shared = Counter(number for _, held in held_by(case.found, _FIRST + 1) for number in held[:_FIRST])
    return set(sorted(number for number, count in shared.items() if 4 * count >= max(case.anchors, 4))[:_FIRST])


def _once_each(found: Sequence[Candidate], met: Set[int], known: Known) -> list[Candidate]:
    """Return candidates without repetition, and of those that were not met only the living ones."""
    kept = (each for each in found if each.number in met or not known.views[each.number].is_dead)
    return list({each.number: each for each in kept}.values())


def _facts(
    candidate: Candidate, known: Known, growths: Mapping[int, Growth | None], documents: Documents
) -> FamilyFacts:
    founder = known.family_of(candidate.number)
    first = founder if known.has_text(founder) else candidate.number
    return family_facts(growths.get(founder), founder, documents.record_of(first, known))


def newcomer(signature: Signature, scheme: Scheme, key: HashKey, thresholds: Thresholds) -> Arriving:
    """Return a document with the keys under which the index knows others like it."""
    return Arriving(scheme.kept(signature), scheme.keys(signature, key), scheme, thresholds)


@dataclass(frozen=True)
class Found:
    """What a document is to the candidates that an index gave for its keys."""

    newcomer: Arriving  # the document
    best: Counterpart | None  # The most closely related candidate. None: there is no related one.
    novelty: Novelty  # what is new in it
    joins: Counterpart | None  # The candidate whose family the document would join. None: it is no copy.
    holds: tuple[Counterpart, ...] = ()  # the candidates whose texts lie in the document, which is no copy of them
    related: tuple[Counterpart, ...] = ()  # the related candidates, the best first
    families: Mapping[int, FamilyFacts] = field(default_factory=dict)  # the family of each candidate, by its number

    @property
    def family(self) -> FamilyFacts | None:
        """The family that the document would join. None: it is no copy."""
        return None if self.joins is None else self.families[self.joins.number]


def find(asked: Arriving, near: Neighbours) -> Found:
    """Compare a document with its neighbours.

    Those of other collections are left out, because a store may shorten keys. A stored state of the document itself
    counts like any other document.
    """
    own = asked.signature.collection
    compared = compare_with(asked, [each for each in near.candidates if each.earlier.collection == own])
    compared = [_verbatim(each) if _is_item_of(each, near) else each for each in compared]
    related = [each for each in compared if each.relation != "unrelated" and not each.is_boilerplate]
    related.sort(key=lambda each: (not each.has_all, each.rank))
    new = novelty_of(asked.signature, related[:_COVERING])
    holds = tuple(each for each in compared if not each.is_copy and share_of(each) >= asked.thresholds.containment_min)
    return Found(asked, related[0] if related else None, new, joined(related), holds, tuple(related), near.families)


def _is_item_of(compared: Counterpart, near: Neighbours) -> bool:
    """Return whether a document has all windows of a short one, so that this lies in it as it is.

    Of a document with very many windows, one in some is known.
    """
    shared, words, asked = near.windows.get(compared.number, 0), compared.earlier.words, compared.newcomer
    if not shared or words > ITEM_WORDS:
        return False
    return shared * round(asked.signature.words / len(asked.keys.windows)) > words - WINDOW_RULES.words


def _verbatim(item: Counterpart) -> Counterpart:
    """Return an item that lies in a document as it is, whatever its few symbols say."""
    return item if item.is_copy else replace(item, rule=VERBATIM, is_common_text=False)


def share_of(compared: Counterpart) -> float:
    """Return how much of the earlier text lies in the document."""
    estimate = compared.estimate
    if estimate.is_short:
        return 0.0
    is_shorter = estimate.shorter_digest == compared.candidate.earlier.digest
    return estimate.shared_shorter if is_shorter else estimate.containment_longer.value


def newcomers(
    signature: Signature,
    scheme: Scheme,
    key: HashKey,
    thresholds: Thresholds,
    against: frozenset[str] = frozenset(),
) -> list[Arriving]:
    """Return a newcomer to the own collection, then one to each reference.

    Of these its text alone is asked about, not its id and lineage.
    """
    # No document has an empty id, so this one is a state of none.
    of_text = with_fields(signature, id="", lineage=None, against=())
    others = dict.fromkeys((*signature.against, *sorted(against)))
    asked = [signature, *(with_fields(of_text, collection=name) for name in others if name != signature.collection)]
    return [newcomer(each, scheme, key, thresholds) for each in asked]


def reference_match(found: Found) -> ReferenceMatch | None:
    """Return the most closely related document of a reference collection, None if none is related."""
    best, own = found.best, found.newcomer.signature
    if best is None:
        return None
    earlier, symbols = best.candidate.earlier, distance(best.estimate)
    is_inside = best.estimate.shorter_digest == own.digest
    known = own.characters - found.novelty.novel.value
    is_whole = best.rule in (COVERED, VERBATIM)
    return ReferenceMatch(
        collection=own.collection,
        id=earlier.id,
        version=earlier.version,
        observed_at=from_milliseconds(earlier.observed_at_ms),
        relation=cast(Relation, best.relation),
        resemblance=resemblance(best.estimate),
        distance=symbols,
        inner=("document" if is_inside else "reference") if is_whole else UNSET,
        characters=max(known, best.earlier.characters) if best.rule is VERBATIM else known,
        family=found.families[best.number].family_id,
    )


async def look_up_references(
    store: Store, asked: Sequence[Sequence[Arriving]], pause: Pause
) -> list[tuple[ReferenceMatch, ...]]:
    """Return the references of documents, each with its newcomers to them."""
    flat = [each for some in asked for each in some]
    near = iter(await look_up_all(store, flat, pause=pause) if flat else [])
    matches: list[tuple[ReferenceMatch, ...]] = []
    for some in asked:
        found = [reference_match(find(each, next(near))) for each in some]
        matches.append(tuple(each for each in found if each is not None))
        await pause()
    return matches
