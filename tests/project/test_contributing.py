"""The recipes of CONTRIBUTING.md list exactly the files of the code that their example touches."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".js", ".css", ".lua", ".c", ".h"}
RECIPES = {
    title: text
    for title, _, text in (
        section.partition("\n") for section in (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")[1:]
    )
}
WORDS = {
    "Add a relation": "rearranged",
    "Add an index key": "ANCHOR",
    "Add a command": "add_novel",
    "Add a field to verdicts": "novel_spans",
    "Change the Kafka client": "aiokafka",
}


@pytest.mark.parametrize("title", WORDS)
def test_a_recipe_names_all_files_that_its_example_touches(title: str) -> None:
    word, text = WORDS[title], RECIPES[title]
    assert f"`{word}`" in text
    listed = "\n".join(re.findall(r"^(?:- |  )(.*)$", text, re.MULTILINE))
    named = set(re.findall(r"`((?:schemas|streams|workers)/[\w./]+)`", listed))
    touched = {
        str(path.relative_to(ROOT))
        for folder in ("schemas", "streams", "workers")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and re.search(rf"\b{word}\b", path.read_text())
    }
    assert {name for name in touched if not name.startswith("workers/kafka/")} == named


def test_there_is_a_recipe_for_each_of_the_five() -> None:
    assert RECIPES.keys() == WORDS.keys()
