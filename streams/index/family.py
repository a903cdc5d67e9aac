"""A family, and how it grows.

A family is a document and its copies. The founder is its first document. The representative, at first the founder,
represents the family in the buckets: copies of it join the family.
"""

from dataclasses import dataclass

from nearstream.schemas.signature import Signature


@dataclass(frozen=True)
class Family:
    """A family, as one of its members sees it.

    Attributes:
        number: Number of the state that founded it.
        family_id: 32 hex characters, from the founder's document key and version.
        ordinal: Place of the document in the order of joining. The founder has 1.
        founder: The founder as its record keeps it. None if it was removed or has expired.
        first_seen_ms: When the founder was observed, in milliseconds since 1970.
    """

    number: int
    family_id: str
    ordinal: int
    founder: Signature | None
    first_seen_ms: int


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
    """

    family_id: str
    number: int
    representative: int
    size: int
    first_seen_ms: int
    last_joined_ms: int
    joined: tuple[int, int, int]
    founder: str = ""
