"""Known relations are compared with events and families."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.demo import KnownRelation, Row, check_relations, read_known_relations, table

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"
SENT = frozenset(RELATIONS)


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


def test_an_event_shows_the_relation_of_a_pair() -> None:
    known = [
        KnownRelation("b", "a", "version"),
        KnownRelation("c", "a", "containment", "newer"),
        KnownRelation("d", "a", "containment", "older"),
        KnownRelation("e", "a", "near_duplicate"),
        KnownRelation("f", "a", "unrelated"),
    ]
    events = [event("version", "b", "a"), event("containment", "c", "a"), event("containment", "d", "a")]
    agreement = check_relations(known, events, SENT)
    assert agreement.rows == (
        Row("containment", 2, 1, 0, 1, 0),
        Row("near_duplicate", 1, 0, 0, 0, 1),
        Row("unrelated", 1, 1, 0, 0, 0),
        Row("version", 1, 1, 0, 0, 0),
    )
    assert (agreement.share, agreement.unknown_pairs) == (0.6, 0)
    assert not agreement.is_sufficient


@pytest.mark.parametrize(
    ("relation", "version", "lineage"),
    [
        ("exact_duplicate", "same", None),
        ("exact_duplicate", "same", "url"),
        ("near_duplicate", "", None),
        ("version", "", "url"),
    ],
)
def test_one_family_shows_what_two_copies_are_to_each_other(relation: str, version: str, lineage: str | None) -> None:
    copies = [verdict(name, "one", version, lineage) for name in "ab"]
    for known in RELATIONS:
        (row,) = check_relations([KnownRelation("b", "a", known)], copies, SENT).rows
        assert row == Row(known, 1, 1, 1, 0, 0) if known == relation else Row(known, 1, 0, 0, 1, 0)
    unrelated = check_relations([KnownRelation("b", "a", "unrelated")], copies, SENT)
    assert unrelated.rows == (Row("unrelated", 1, 0, 0, 1, 0),)
    named = check_relations([KnownRelation("b", "a", "overlap")], [*copies, event("overlap", "b", "a")], SENT)
    assert named.rows == (Row("overlap", 1, 1, 0, 0, 0),)  # an event counts more than a family


def test_an_event_about_a_copy_shows_the_relation_to_the_other_copy() -> None:
    copies = [verdict("a", "one"), verdict("copy", "one"), verdict("part", "two"), verdict("far", "three")]
    events = [*copies, event("containment", "part", "copy")]
    known = [KnownRelation("part", "a", "containment", "newer"), KnownRelation("far", "a", "unrelated")]
    assert check_relations(known, events, SENT).rows == (
        Row("containment", 1, 1, 1, 0, 0),
        Row("unrelated", 1, 1, 0, 0, 0),
    )
    turned = [KnownRelation("a", "part", "containment", "newer")]
    assert check_relations(turned, events, SENT).rows == (Row("containment", 1, 0, 0, 1, 0),)


def test_a_family_of_a_family_shows_nothing() -> None:
    """Two documents are not related because copies of both are."""
    copies = [verdict("a", "one"), verdict("copy", "one"), verdict("b", "two"), verdict("other", "two")]
    events = [*copies, event("version", "copy", "other")]
    assert check_relations([KnownRelation("a", "b", "version")], events, SENT).rows == (Row("version", 1, 0, 0, 0, 1),)


def test_pairs_beyond_the_known_ones_are_counted_once() -> None:
    """Of three copies one pair is known. Events name it, another pair of them, and a pair of two families."""
    members = [verdict(name, "one") for name in "abc"]
    events = [*members, verdict("d", "two"), *(event("near_duplicate", *pair) for pair in ("ba", "ca", "da"))]
    assert check_relations([KnownRelation("a", "b", "near_duplicate")], events, SENT).unknown_pairs == 3


def test_a_relation_that_is_not_sent_is_right_if_nothing_shows_it() -> None:
    known = [KnownRelation("b", "a", "overlap")]
    assert check_relations(known, [], SENT - {"overlap"}).share == 1
    assert check_relations(known, [event("overlap", "b", "a")], SENT - {"overlap"}).share == 0


def test_the_table_is_aligned() -> None:
    lines = table(check_relations([KnownRelation("b", "a", "version")], [event("version", "b", "a")], SENT))
    assert lines == [
        "relation  known  seen as such  by family  seen otherwise  missed",
        "version       1             1          0               0       0",
        "agreement 100.0%; pairs seen beyond the known ones: 0",
    ]


def test_known_relations_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_text(json.dumps({"newer": "b", "older": "a", "relation": "version"}) + "\n\n")
    assert read_known_relations(tmp_path) == [KnownRelation("b", "a", "version")]
    with pytest.raises(FileNotFoundError, match=r"documents\.jsonl and relations\.jsonl"):
        read_known_relations(tmp_path / "none")
