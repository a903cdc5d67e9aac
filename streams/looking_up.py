"""Look for the documents that resemble another one, without adding it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearstream.streams.arriving import Arriving, pack_keys
from nearstream.streams.counterpart import Newcomer
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import FamilyFacts, family_of_growth, family_of_one
from nearstream.streams.judge import Documents, Rules
from nearstream.streams.matching.case import Case, Compared
from nearstream.streams.matching.known import Known
from nearstream.streams.matching.meeting import Meeting
from nearstream.streams.records.record import unpack_document_key
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import Entry, Leave, Measure, Query, View
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Store

_ASKED = Registered(Status.NEW)


@dataclass(frozen=True)
class Neighbours:
    """What a look-up finds.

    Attributes:
        candidates: The neighbours, the best first.
        families: The family of each of them, by the number of the neighbour.
        growths: How the families grow, by the number of the founder. One that nobody has joined has none, unless its
            document is labelled.
    """

    candidates: Sequence[Candidate]
    families: Mapping[int, FamilyFacts]
    growths: Mapping[int, Growth]


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
        self.found: list[Candidate] = []
        self._documents = documents

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> Sequence[Compared]:
        """List some states."""
        self.found += self._documents.candidates(case, numbers, known)
        return ()


async def _no_pause() -> None:
    """Continue at once."""


async def look_up(store: Store, asked: Newcomer, now_ms: int = 0) -> Neighbours:
    """Return the neighbours of a document, with their families.

    Args:
        store: The store, of which this only reads.
        asked: The document.
        now_ms: The time at which the growth of families is asked for, in milliseconds since 1970. 0: that of the store.

    Raises:
        IndexUnavailableError: The index cannot answer now.
        IndexLostError: The index was emptied.
    """
    documents = Documents(Rules(asked.scheme, asked.thresholds, frozenset(), store.limits))
    listing, known = _Listing(documents), Known()
    meeting = Meeting(_Reading(store), listing, _no_pause)
    named, words = pack_keys(asked.keys)
    case = Case(Arriving(asked.signature, asked.keys), 0, _ASKED, named, words, len(asked.keys.anchors))
    await meeting.look([case], lambda case: case.named + case.words)
    await meeting.meet([case], known)
    founders = sorted({known.family_of(each.number) for each in listing.found} & known.families.keys())
    grown = await store.growth([Measure(founder, now_ms) for founder in founders]) if founders else []
    growths = {founder: growth for founder, growth in zip(founders, grown, strict=True) if growth is not None}
    families = {each.number: _facts(each, known, growths, documents) for each in listing.found}
    return Neighbours(listing.found, families, growths)


def _facts(candidate: Candidate, known: Known, growths: Mapping[int, Growth], documents: Documents) -> FamilyFacts:
    founder = known.family_of(candidate.number)
    first = founder if known.has_text(founder) else candidate.number
    return family_of_growth(growths.get(founder)) or family_of_one(founder, documents.record_of(first, known))


async def families_of(store: Store, founders: Sequence[int], now_ms: int = 0) -> list[FamilyFacts]:
    """Return those families of these founders that have a second member.

    Args:
        store: The store.
        founders: The numbers of states, which may have founded families.
        now_ms: The time, in milliseconds since 1970. 0: that of the store.

    Raises:
        IndexUnavailableError: The index cannot answer now.
        IndexLostError: The index was emptied.
    """
    grown = map(family_of_growth, await store.growth([Measure(founder, now_ms) for founder in founders]))
    families = [each for each in grown if each is not None]
    views = await store.fetch([Query(each.number, record=True) for each in families])
    records = [view.record if view else None for view in views]
    names = [unpack_document_key(record) if record else "" for record in records]
    return [replace(each, founder=name) for each, name in zip(families, names, strict=True)]
