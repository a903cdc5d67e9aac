"""A family, and how it grows.

A family is a document and its copies. The founder is its first document. The representative, at first the founder,
represents the family in the buckets: copies of it join the family.
"""

from dataclasses import dataclass

from nearstream.schemas.documents.event_id import family_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.ingest.sites import site_of
from nearstream.streams.store.families import Growth
from nearstream.streams.store.record import Recorded


@dataclass(frozen=True)
class Family:
    """A family, as one of its members sees it.

    Attributes:
        number: Number of the state that founded it.
        family_id: 32 hex characters, from the founder's document key and version.
        ordinal: Place of the document in the order of joining. The founder has 1.
        founder: The founder as its record keeps it. None if it was removed or has expired.
        first_seen_ms: When the founder was observed, in milliseconds since 1970.
        sites: Distinct sites of those who had joined when the document did.
    """

    number: int
    family_id: str
    ordinal: int
    founder: Signature | None
    first_seen_ms: int
    sites: int = 0


@dataclass(frozen=True)
class FamilyFacts:
    """Size and growth of a family with at least two members.

    Attributes:
        family_id: 32 hex characters.
        number: Number of the state that founded it.
        representative: Number of the state that represents it, 0 if none lives.
        size: Members that were not removed and did not change to another text.
        first_seen_ms: When the founder was observed, in milliseconds since 1970.
        last_joined_ms: When the last member joined, by the time of the index.
        joined: How many joined within the last hour, day and week.
        founder: `<collection>/<id>` of the founder. Empty if it was removed or has expired.
        sites: Distinct sites of all that have joined, at most 256.
    """

    family_id: str
    number: int
    representative: int
    size: int
    first_seen_ms: int
    last_joined_ms: int
    joined: tuple[int, int, int]
    founder: str = ""
    sites: int = 0


def family_of_growth(growth: Growth | None) -> FamilyFacts | None:
    """Return size and growth of a family, without its name. None: nobody has joined it."""
    return facts_of(growth) if growth is not None and growth.family_id else None


def family_of_one(founder: int, first: Recorded) -> FamilyFacts:
    """Return the family of a document without copies.

    Args:
        founder: Its number, or that of its founder, of which nothing is known any more.
        first: The document.
    """
    own_id, seen_ms = own_family_id(first, first.scheme), first.observed_at_ms
    return FamilyFacts(own_id, founder, founder, 1, seen_ms, seen_ms, (0, 0, 0), sites=own_sites(first))


def facts_of(growth: Growth) -> FamilyFacts:
    """Return size and growth of a family that has an id, without its name."""
    return FamilyFacts(
        growth.family_id.hex(),
        growth.founder,
        growth.representative,
        growth.size,
        growth.first_seen_ms,
        growth.last_ms if growth.joins else growth.first_seen_ms,
        growth.joined,
        sites=growth.sites,
    )


def own_sites(founder: Signature | Recorded) -> int:
    """Return how many sites a document without copies is on: one, if it has a URL with a host."""
    return int(bool(founder.url and site_of(founder.url)))


def own_family_id(founder: Signature | Recorded, scheme: str) -> str:
    """Return the id of the family that a document founds, 32 hex characters."""
    return family_id(f"{founder.collection}/{founder.id}", founder.version, scheme)
