"""A family, and how it grows.

A family is a document and its copies. The founder is its first document. The representative, at first the founder,
represents the family in the buckets: copies of it join the family.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nearstream.schemas.documents.evidence import family_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.ingest.sites import site_of
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import Measure, Query
from nearstream.streams.store.record import Recorded, unpack_document_key
from nearstream.streams.store.store import Store


@dataclass(frozen=True)
class Family:
    """A family, as one of its members sees it."""

    number: int  # number of the state that founded it
    family_id: str  # 32 hex characters, from the founder's document key and version
    ordinal: int  # Place of the document in the order of joining. The founder has 1.
    founder: Signature | None  # The founder as its record keeps it. None if it was removed or has expired.
    first_seen_ms: int  # when the founder was observed, in milliseconds since 1970
    sites: int = 0  # distinct sites of those who had joined when the document did


@dataclass(frozen=True)
class FamilyFacts:
    """Size and growth of a family."""

    family_id: str  # 32 hex characters
    number: int  # number of the state that founded it
    representative: int  # number of the state that represents it, 0 if none lives
    size: int  # members that were not removed and did not change to another text
    first_seen_ms: int  # when the founder was observed, in milliseconds since 1970
    last_joined_ms: int  # when the last member joined, by the time of the index
    joined: tuple[int, int, int]  # how many joined within the last hour, day and week
    founder: str = ""  # `<collection>/<id>` of the founder. Empty if it was removed or has expired.
    sites: int = 0  # distinct sites of all that have joined, at most 256
    # What its home knows of it. None: nobody else has joined it, and its document has no label.
    growth: Growth | None = field(default=None, compare=False, repr=False)


def family_facts(growth: Growth | None, founder: int, own: Recorded) -> FamilyFacts:
    """Return size and growth of the family of a document, without its name.

    Without further members `founder` is the number of the document.
    """
    if growth is not None and growth.family_id:
        return facts_of(growth)
    own_id, seen_ms = own_family_id(own, own.scheme), own.observed_at_ms
    return FamilyFacts(own_id, founder, founder, 1, seen_ms, seen_ms, (0, 0, 0), sites=own_sites(own), growth=growth)


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
        growth=growth,
    )


def own_sites(founder: Signature | Recorded) -> int:
    """Return how many sites a document without copies is on: one, if it has a URL with a host."""
    return int(bool(founder.url and site_of(founder.url)))


def own_family_id(founder: Signature | Recorded, scheme: str) -> str:
    """Return the id of the family that a document founds, 32 hex characters."""
    return family_id(f"{founder.collection}/{founder.id}", founder.version, scheme)


async def families_of(store: Store, founders: Sequence[int], now_ms: int = 0) -> list[FamilyFacts]:
    """Return those families of these founders that have a second member.

    At 0 `now_ms` is the time of the store.
    """
    grown = await store.growth([Measure(founder, now_ms) for founder in founders])
    families = [facts_of(growth) for growth in grown if growth is not None and growth.family_id]
    views = await store.fetch([Query(each.number, record=True) for each in families])
    records = [view.record if view else None for view in views]
    names = [unpack_document_key(record) if record else "" for record in records]
    return [replace(each, founder=name) for each, name in zip(families, names, strict=True)]
