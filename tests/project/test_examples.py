"""The example documents agree with their list of relations, and the example programs keep only new passages."""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import combinations
from pathlib import Path
from random import Random
from runpy import run_path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.made_up import words

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMENSIONS = 64


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


DOCUMENTS = {each["id"]: each for each in lines("documents.jsonl")}
RELATIONS = lines("relations.jsonl")


def observed_at(document: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(document["observed_at"])


def test_every_relation_says_why_of_two_documents_the_newer_first_and_which_one_lies_inside() -> None:
    assert len({frozenset((each["newer"], each["older"])) for each in RELATIONS}) == len(RELATIONS)
    for relation in RELATIONS:
        newer, older = DOCUMENTS[relation["newer"]], DOCUMENTS[relation["older"]]
        assert (observed_at(newer), newer["id"]) > (observed_at(older), older["id"]), relation
        assert relation["same_lineage"] == ("url" in newer and newer["url"] == older.get("url")), relation
        assert relation["why"].strip(), relation
        assert ("inner" in relation) == (relation["relation"] == "containment"), relation
        inner = {"newer": (newer, older), "older": (older, newer)}.get(relation.get("inner", ""))
        assert inner is None or len(inner[0]["text"]) < len(inner[1]["text"]), relation


def test_documents_of_one_url_are_all_related_also_where_nothing_changed() -> None:
    listed = {frozenset((each["newer"], each["older"])): each["relation"] for each in RELATIONS if each["same_lineage"]}
    expected = {
        frozenset((one["id"], other["id"])): "exact_duplicate" if one["text"] == other["text"] else "version"
        for one, other in combinations(DOCUMENTS.values(), 2)
        if "url" in one and one["url"] == other.get("url")
    }
    assert listed.keys() == expected.keys()
    assert {name for pair, name in listed.items() if expected[pair] == "exact_duplicate"} == {"exact_duplicate"}
    assert set(listed.values()) == {"exact_duplicate", "version"}


def paragraph(seed: int) -> str:
    return " ".join(words(seed, 60))


def text(*seeds: int) -> str:
    return "\n\n".join(map(paragraph, seeds))


def embed(passages: Sequence[str]) -> NDArray[np.float32]:
    """Count the words of passages by their hashes."""
    vectors = np.zeros((len(passages), DIMENSIONS), np.float32)
    for row, passage in enumerate(passages):
        for word in passage.split():
            vectors[row, crc32(word.encode()) % DIMENSIONS] += 1
    return vectors


def vector_store() -> Any:  # noqa: ANN401 - a class of a module that is no part of a package
    pytest.importorskip("usearch", reason="needs usearch")
    return run_path(str(EXAMPLES / "before_embeddings.py"))["Passages"](embed, DIMENSIONS)


async def test_only_new_passages_are_embedded() -> None:
    one = vector_store()
    assert len(await one.put("a", text(1, 2, 3))) == 3
    assert await one.put("copy", text(1, 2, 3).upper()) == []
    assert await one.put("b", text(1, 4, 3)) == [paragraph(4)]
    (found,) = one.vectors.search(embed([paragraph(4)])[0], 1).keys
    assert one.passages[int(found)] == paragraph(4)


async def test_prints_of_one_report_are_one_source() -> None:
    report, other = text(1, 2, 3, 4, 5, 6), text(7, 8, 9, 10)
    articles = [
        ("agency", report),
        ("copy", report.upper()),
        ("other", other),
        ("shortened", text(1, 2, 3, 4)),
        ("introduced", text(20, 21, 1, 2, 3, 4, 5, 6)),
        ("own", text(22, 23, 24, 25, 26, 1)),
        ("copy of own", text(22, 23, 24, 25, 26, 1)),
        ("empty", ""),
    ]
    found = await run_path(str(EXAMPLES / "one_story.py"))["sources"](articles)
    assert found == {
        "agency": ["agency", "copy", "shortened", "introduced"],
        "other": ["other"],
        "own": ["own", "copy of own"],
        "empty": ["empty"],
    }


@pytest.mark.parametrize("seed", range(2))
async def test_each_text_is_in_the_store_as_long_as_any_document_has_it(seed: int) -> None:
    draw, one, living = Random(seed), vector_store(), dict[str, str]()
    for _ in range(40):
        name = f"d{draw.randrange(8)}"
        if draw.random() < 0.25:
            living.pop(name, None)
            await one.remove(name)
        else:
            living[name] = text(*draw.choices(range(12), k=draw.randint(1, 6)))
            await one.put(name, living[name])
        held, needed = set(one.passages.values()), {each for text in living.values() for each in text.split("\n\n")}
        assert held == needed
        assert len(one.vectors) == len(one.passages)
    for name in ("never seen", *living):
        await one.remove(name)
    assert (len(one.vectors), one.passages) == (0, {})
