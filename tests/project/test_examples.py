"""The example documents are complete, shuffled, and agree with their list of relations."""

import json
from collections import Counter
from datetime import datetime
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
RELATIONS = {
    "exact_duplicate": 6,
    "near_duplicate": 12,
    "containment": 12,
    "version": 12,
    "rearranged": 3,
    "overlap": 0,
    "unrelated": 30,
}


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


@cache
def documents() -> list[dict[str, Any]]:
    """Return the documents in the order of arrival."""
    return _lines("documents.jsonl")


@cache
def by_id() -> dict[str, dict[str, Any]]:
    """Return the documents by their ids."""
    return {document["id"]: document for document in documents()}


@cache
def relations() -> list[dict[str, Any]]:
    """Return the known relations."""
    return _lines("relations.jsonl")


def observed_at(document: dict[str, Any]) -> datetime:
    """Return the time of a document."""
    return datetime.fromisoformat(document["observed_at"])


def test_every_document_has_an_id_a_text_and_a_time_with_a_zone() -> None:
    assert len(by_id()) == len(documents()) >= 150
    for document in documents():
        assert document["text"].strip(), document["id"]
        assert observed_at(document).tzinfo is not None, document["id"]
        assert observed_at(document).timestamp() >= 0, document["id"]


def test_the_order_of_arrival_is_not_the_order_of_time() -> None:
    times = [observed_at(document) for document in documents()]
    assert sum(later < earlier for earlier, later in pairwise(times)) > len(times) / 4


def test_every_revision_of_a_pep_says_that_it_is_in_the_public_domain() -> None:
    peps = [each for each in documents() if each["source"] == "peps" and each["labels"]["kind"] == "revision"]
    assert peps
    for document in peps:
        assert "the public domain" in " ".join(document["text"].lower().split()), document["id"]


def test_every_relation_says_why_of_two_documents_the_newer_first_and_no_pair_occurs_twice() -> None:
    assert len({frozenset((each["newer"], each["older"])) for each in relations()}) == len(relations())
    for relation in relations():
        newer, older = by_id()[relation["newer"]], by_id()[relation["older"]]
        assert (observed_at(newer), newer["id"]) > (observed_at(older), older["id"]), relation
        assert relation["same_lineage"] == ("url" in newer and newer["url"] == older.get("url")), relation
        assert relation["relation"] in RELATIONS, relation
        assert relation["why"].strip(), relation
    found = Counter(each["relation"] for each in relations())
    assert all(found[relation] >= at_least for relation, at_least in RELATIONS.items())


def test_documents_of_one_url_are_all_related_also_where_nothing_changed() -> None:
    listed = {
        frozenset((each["newer"], each["older"])): each["relation"] for each in relations() if each["same_lineage"]
    }
    pairs = [(one, other) for one, other in combinations(documents(), 2) if "url" in one]
    expected = {
        frozenset((one["id"], other["id"])): "exact_duplicate" if one["text"] == other["text"] else "version"
        for one, other in pairs
        if one["url"] == other.get("url")
    }
    assert listed.keys() == expected.keys()
    assert {name for pair, name in listed.items() if expected[pair] == "exact_duplicate"} == {"exact_duplicate"}
    assert set(listed.values()) == {"exact_duplicate", "version"}


def test_containment_alone_says_which_one_lies_inside_and_that_one_is_shorter() -> None:
    for relation in relations():
        assert ("inner" in relation) == (relation["relation"] == "containment"), relation
        if "inner" in relation:
            outer = {"newer": "older", "older": "newer"}[relation["inner"]]
            inner_text, outer_text = (by_id()[relation[role]]["text"] for role in (relation["inner"], outer))
            assert len(inner_text) < len(outer_text), relation
