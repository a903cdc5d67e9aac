"""The example documents are complete, shuffled, and agree with their list of relations."""

import json
from collections import Counter
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

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
    """Read a file of the examples.

    Args:
        name: The name of a file of JSON Lines.

    Returns:
        One dictionary per line, in the order of the file.
    """
    with (EXAMPLES / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


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


def test_there_are_at_least_150_documents_and_no_id_occurs_twice() -> None:
    assert len(documents()) >= 150
    assert len(by_id()) == len(documents())


def test_no_text_is_empty() -> None:
    assert [document["id"] for document in documents() if not document["text"].strip()] == []


def test_every_time_has_a_zone_and_is_one_that_intake_accepts() -> None:
    for document in documents():
        assert observed_at(document).tzinfo is not None, document["id"]
        assert observed_at(document).timestamp() >= 0, document["id"]


def test_the_order_of_arrival_is_not_the_order_of_time() -> None:
    times = [observed_at(document) for document in documents()]
    backwards = sum(later < earlier for earlier, later in pairwise(times))
    assert backwards > len(times) / 4


def test_every_revision_of_a_pep_says_that_it_is_in_the_public_domain() -> None:
    revisions = [
        document
        for document in documents()
        if document["source"] == "peps" and document["labels"]["kind"] == "revision"
    ]
    assert revisions
    for document in revisions:
        assert "the public domain" in " ".join(document["text"].lower().split()), document["id"]


def test_every_relation_joins_two_documents_that_exist_and_no_pair_occurs_twice() -> None:
    pairs = [(relation["newer"], relation["older"]) for relation in relations()]
    assert {document_id for pair in pairs for document_id in pair} <= by_id().keys()
    assert all(newer != older for newer, older in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)


def test_the_newer_one_has_the_larger_time_and_id() -> None:
    for relation in relations():
        newer, older = by_id()[relation["newer"]], by_id()[relation["older"]]
        assert (observed_at(newer), newer["id"]) > (observed_at(older), older["id"]), relation


def test_same_lineage_means_the_same_url() -> None:
    for relation in relations():
        newer, older = by_id()[relation["newer"]], by_id()[relation["older"]]
        assert relation["same_lineage"] == ("url" in newer and newer["url"] == older.get("url")), relation


def test_documents_of_one_url_are_all_related() -> None:
    listed = {frozenset((relation["newer"], relation["older"])) for relation in relations() if relation["same_lineage"]}
    with_url = [document for document in documents() if "url" in document]
    expected = {
        frozenset((one["id"], other["id"]))
        for one in with_url
        for other in with_url
        if one["id"] < other["id"] and one["url"] == other["url"]
    }
    assert listed == expected
    names = {relation["relation"] for relation in relations() if relation["same_lineage"]}
    assert names == {
        "exact_duplicate",
        "version",
    }


def test_a_url_that_was_fetched_again_unchanged_is_among_them() -> None:
    unchanged = [
        relation
        for relation in relations()
        if relation["same_lineage"] and by_id()[relation["newer"]]["text"] == by_id()[relation["older"]]["text"]
    ]
    assert unchanged
    assert {relation["relation"] for relation in unchanged} == {"exact_duplicate"}


@pytest.mark.parametrize(("relation", "at_least"), RELATIONS.items())
def test_every_relation_has_enough_pairs(relation: str, at_least: int) -> None:
    assert Counter(entry["relation"] for entry in relations())[relation] >= at_least


def test_every_relation_has_a_known_name_and_says_why() -> None:
    for relation in relations():
        assert relation["relation"] in RELATIONS, relation
        assert relation["why"].strip(), relation


def test_containment_alone_says_which_one_lies_inside_and_that_one_is_shorter() -> None:
    for relation in relations():
        if relation["relation"] != "containment":
            assert "inner" not in relation, relation
            continue
        assert relation["inner"] in {"newer", "older"}, relation
        outer = "older" if relation["inner"] == "newer" else "newer"
        inner_text, outer_text = (by_id()[relation[role]]["text"] for role in (relation["inner"], outer))
        assert len(inner_text) < len(outer_text), relation
