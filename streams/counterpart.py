"""Which of the earlier documents counts: for the family of a document, and for its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from nearstream.schemas.document import from_milliseconds
from nearstream.schemas.event_id import DocumentState, event_id, family_id
from nearstream.schemas.evidence import Distance, Interval
from nearstream.schemas.signature import Signature
from nearstream.schemas.verdict import DocumentVerdict, FamilyRef, VerdictKind
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import Family
from nearstream.streams.relations.describe import Related, document_ref, document_state, evidence

# The relations of verdicts, the best first. A version of the same lineage comes before a containment.
_RANKS = ("exact_duplicate", "near_duplicate", "", "containment", "rearranged", "version", "overlap")
_BY_LINEAGE = _RANKS.index("")


@dataclass(frozen=True)
class Compared:
    """An earlier document after the comparison with the arriving one.

    Attributes:
        candidate: The earlier document.
        pair: Both documents, with their relation.
        is_copy: Their texts are equal or near-duplicates, whatever their lineage.
        is_former: It is the former state of the same document.
        is_followed: The representative of its family is no copy, so only the equal text counts.
    """

    candidate: Candidate
    pair: Related
    is_copy: bool
    is_former: bool = False
    is_followed: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether both texts are equal."""
        return self.pair.newer.digest == self.pair.older.digest

    @property
    def rank(self) -> tuple[int, float, tuple[int, str, str]]:
        """The sort key of counterparts, the best first."""
        verdict, earlier = self.pair.verdict, self.candidate.signature
        by_lineage = verdict.same_lineage and verdict.relation == "version"
        place = _BY_LINEAGE if by_lineage else _RANKS.index(verdict.relation)
        return place, -self.pair.estimate.resemblance.value, (earlier.observed_at_ms, earlier.id, earlier.version)


def joined(compared: Sequence[Compared], presumed: int) -> Compared | None:
    """Return the document whose family is joined, or None.

    This is the former state of the document, else one with an equal text, else the presumed one, else the best
    representative, provided that its text is a copy.
    """
    copies = [each for each in compared if each.is_copy]

    def preference(each: Compared) -> tuple[bool, bool, bool, bool, tuple[int, float, tuple[int, str, str]]]:
        is_presumed = each.candidate.number == presumed
        return not each.is_former, not each.is_exact, not is_presumed, not each.candidate.represents, each.rank

    eligible = [each for each in copies if each.is_former or each.is_exact or each.candidate.represents]
    return min(eligible, key=preference, default=None)


def own_family(number: int, arriving: Signature) -> Family:
    """Return the family that a document founds."""
    own_id = family_id(arriving.document_key, arriving.version, arriving.scheme)
    return Family(number, own_id, 1, arriving, arriving.observed_at_ms)


def document_verdict(
    arriving: Signature, kind: str, best: Related | None, family: Family, degraded: tuple[str, ...] = ()
) -> DocumentVerdict:
    """Build the verdict about a document.

    Args:
        arriving: The document.
        kind: The best relation.
        best: The pair of that relation. None: there is none, or the other document is gone.
        family: Its family.
        degraded: What was incomplete.
    """
    founder = None if family.founder is None else document_ref(family.founder)
    resemblance: Interval | UnsetType = UNSET
    distance: Distance | UnsetType = UNSET
    if best is not None:
        numbers = evidence(best)
        resemblance, distance = numbers.resemblance, numbers.distance
    return DocumentVerdict(
        **asdict(document_ref(arriving)),
        event_id=event_id("verdict", DocumentState(), document_state(arriving), arriving.scheme),
        collection=arriving.collection,
        scheme=arriving.scheme,
        verdict=cast(VerdictKind, kind),
        of=None if best is None else document_ref(best.older if best.newer == arriving else best.newer),
        family=FamilyRef(
            id=family.family_id,
            ordinal=family.ordinal,
            first_seen=from_milliseconds(family.first_seen_ms),
            founder=founder,
        ),
        events=0,
        resemblance=resemblance,
        distance=distance,
        inner=best.verdict.inner if best is not None and best.verdict.inner else UNSET,
        degraded=degraded,
    )
