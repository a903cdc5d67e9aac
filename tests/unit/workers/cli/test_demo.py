"""Known relations are compared with events and families."""

from pathlib import Path

from msgspec.structs import replace

from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.demo import KnownRelation, check_relations

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"


def verdict(document_id: str, family: str, version: str = "", lineage: str | None = None) -> DocumentVerdict:
    """Return the verdict of a document in a family. Its text is its own unless `version` is given."""
    event = decode_event((EXAMPLES / "verdict.json").read_bytes())
    assert isinstance(event, DocumentVerdict)
    member = replace(event.family, id=family)
    return replace(event, id=document_id, family=member, version=version or f"text of {document_id}", lineage=lineage)


def event(kind: str, newer: str, older: str) -> Event:
    """Return the event of a pair. In a containment the newer one lies in the older one."""
    found = decode_event((EXAMPLES / f"{kind}.json").read_bytes())
    assert not isinstance(found, DocumentVerdict | Retraction)
    return replace(found, newer=replace(found.newer, id=newer), older=replace(found.older, id=older))


COPIES = [verdict("a", "one"), verdict("copy", "one"), verdict("part", "two"), verdict("far", "three")]
PART_OF_COPY = [*COPIES, event("containment", "part", "copy")]
# Two documents are not related because copies of both are.
FAR_COPIES = [verdict("a", "one"), verdict("copy", "one"), verdict("b", "two"), verdict("other", "two")]
CONTAINED = event("containment", "b", "a")
OVERLAP = event("overlap", "b", "a")
# What is known of a pair, what was sent, and whether it is seen as such, otherwise, or missed.
SEEN: tuple[tuple[KnownRelation, list[Event], tuple[int, int, int]], ...] = (
    (KnownRelation("b", "a", "version"), [event("version", "b", "a")], (1, 0, 0)),
    (KnownRelation("b", "a", "containment", "newer"), [CONTAINED], (1, 0, 0)),
    (KnownRelation("b", "a", "containment", "older"), [CONTAINED], (0, 1, 0)),
    (KnownRelation("b", "a", "near_duplicate"), [], (0, 0, 1)),
    (KnownRelation("b", "a", "unrelated"), [], (1, 0, 0)),
    (KnownRelation("part", "a", "containment", "newer"), PART_OF_COPY, (1, 0, 0)),
    (KnownRelation("a", "part", "containment", "newer"), PART_OF_COPY, (0, 1, 0)),
    (KnownRelation("far", "a", "unrelated"), PART_OF_COPY, (1, 0, 0)),
    (KnownRelation("a", "b", "version"), [*FAR_COPIES, event("version", "copy", "other")], (0, 0, 1)),
)


def test_events_and_families_show_the_relation_of_a_pair() -> None:
    for pair, events, counts in SEEN:
        assert check_relations([pair], events).rows == {pair.relation: (1, *counts)}, pair
    agreement = check_relations([pair for pair, _, _ in SEEN[:4]], SEEN[0][1])
    assert (agreement.share, agreement.is_sufficient) == (0.25, False)


def test_one_family_shows_what_two_copies_are_to_each_other() -> None:
    for relation, version, lineage in (
        ("exact_duplicate", "same", None),
        ("exact_duplicate", "same", "url"),
        ("near_duplicate", "", None),
        ("version", "", "url"),
    ):
        copies = [verdict(name, "one", version, lineage) for name in "ab"]
        for each in (*RELATIONS, "unrelated"):
            rows = check_relations([KnownRelation("b", "a", each)], copies).rows
            assert rows == {each: (1, 1, 0, 0) if each == relation else (1, 0, 1, 0)}
        rows = check_relations([KnownRelation("b", "a", "overlap")], [*copies, OVERLAP]).rows
        assert rows == {"overlap": (1, 1, 0, 0)}  # an event counts more than a family
