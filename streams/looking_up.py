"""Look for the documents that resemble another one, without adding it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nearstream.streams.arriving import pack_keys
from nearstream.streams.counterpart import Newcomer, own_family
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import FamilyFacts
from nearstream.streams.judge import Arriving, Documents, Rules
from nearstream.streams.matching.case import Case, Compared
from nearstream.streams.matching.meeting import Known, Meeting
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import Entry, Leave, Measure
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Store

_ASKED = Registered(Status.NEW)


@dataclass(frozen=True)
class Neighbours:
    """What a look-up finds.

    Attributes:
        candidates: The neighbours, the best first.
        families: The family of each of them, by the number of the neighbour.
        growths: How the families grow, by the number of the founder. One without a second member has none.
    """

    candidates: Sequence[Candidate]
    families: Mapping[int, FamilyFacts]
    growths: Mapping[int, Growth]


class _Reading:
    """A store of which a look-up only reads."""

    def __init__(self, store: Store) -> None:
        self.limits = store.limits
        self.fetch = store.fetch
        self._store = store

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


async def look_up(store: Store, rules: Rules, asked: Newcomer, now_ms: int = 0) -> Neighbours:
    """Return the neighbours of a document, with their families.

    Args:
        store: The store, of which this only reads.
        rules: The scheme of all signatures and the bounds of the index.
        asked: The document.
        now_ms: The time at which the growth of families is asked for, in milliseconds since 1970. 0: that of the store.

    Raises:
        IndexUnavailableError: The index cannot answer now.
        IndexLostError: The index was emptied.
    """
    documents = Documents(rules)
    listing, known = _Listing(documents), Known()
    meeting = Meeting(_Reading(store), listing, _no_pause)
    named, words = pack_keys(asked.keys)
    case = Case(Arriving(asked.signature, asked.keys), 0, _ASKED, named, words, len(asked.keys.anchors))
    await meeting.look([case], lambda case: case.named + case.words)
    await meeting.meet([case], known)
    founders = sorted({known.family_of(each.number) for each in listing.found})
    grown = await store.growth([Measure(founder, now_ms) for founder in founders]) if founders else []
    growths = {founder: growth for founder, growth in zip(founders, grown, strict=True) if growth is not None}
    families = {each.number: _facts(each, known, growths, documents) for each in listing.found}
    return Neighbours(listing.found, families, growths)


def _facts(candidate: Candidate, known: Known, growths: Mapping[int, Growth], documents: Documents) -> FamilyFacts:
    """Return the family of a candidate. A document without copies is a family of one."""
    founder = known.family_of(candidate.number)
    growth = growths.get(founder)
    if growth is not None:
        return facts_of(growth)
    first = documents.record_of(founder, known).signature if known.has_text(founder) else candidate.signature
    own = own_family(founder, first)
    return FamilyFacts(own.family_id, founder, founder, 1, own.first_seen_ms, own.first_seen_ms, (0, 0, 0))


def facts_of(growth: Growth) -> FamilyFacts:
    """Return size and growth of a family, without its name."""
    return FamilyFacts(
        growth.family_id.hex(),
        growth.founder,
        growth.representative,
        growth.size,
        growth.first_seen_ms,
        growth.last_ms,
        growth.joined,
    )
