"""The recipes of CONTRIBUTING.md name each file of the code that their example touches, so that none is forgotten."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nearstream.workers.redis.server.layout import BUCKET_KINDS

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".lua", ".c", ".h", ".js", ".css"}
RECIPES = {
    title: text
    for title, _, text in (
        section.partition("\n") for section in (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")[1:]
    )
}


def names(*words: str) -> Callable[[Path], bool]:
    """Return whether a file names one of these words."""
    named = re.compile(rf"\b(?:{'|'.join(words)})\b")
    return lambda path: bool(named.search(path.read_text()))


def enumerates_kinds(path: Path) -> bool:
    """Return whether a file treats the kinds of buckets apart.

    Python does so by their names, by the row of all kinds, or by the fields of the keys of a signature. Lua does so by
    the constants that the function library gives it. C does so by their letters, or by how many there are.
    """
    kinds, code = [kind.name for kind in BUCKET_KINDS], path.read_text()
    match path.suffix:
        case ".py":
            fields = r"^    lineage: .*\n(?: {4}.*\n)*? {4}bands: .*\n(?: {4}.*\n)*? {4}anchors: "
            return bool(re.search(fields, code, re.MULTILINE)) or names(*kinds, "BUCKET_KINDS")(path)
        case ".lua":
            return names(*(f"{kind}_KEY" for kind in kinds))(path)
        case ".c" | ".h":
            letters = "".join(kind.decode() for kind in BUCKET_KINDS)
            return bool(re.search(rf"\bkind [!=]= '[{letters}]'|\bBUCKET_KINDS\b", code))
    return False


TOUCHES: dict[str, Callable[[Path], bool]] = {
    "Add a relation": names("rearranged"),
    "Add an index key": enumerates_kinds,
    "Add a command": names("add_check"),
    "Add a field to verdicts": names("novel_spans"),
    "Change the Kafka client": names("aiokafka", "faust"),
}


@pytest.mark.parametrize("title", sorted(RECIPES.keys() | TOUCHES.keys()))
def test_a_recipe_names_all_files_that_its_example_touches(title: str) -> None:
    named = set(re.findall(r"`((?:schemas|streams|workers)/[\w./]+)`", RECIPES[title]))
    touched = {
        str(path.relative_to(ROOT))
        for folder in ("schemas", "streams", "workers")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and TOUCHES[title](path)
    }
    assert {path for path in touched if not any(path.startswith(room) for room in named if room.endswith("/"))} <= named
    assert all((ROOT / path).exists() for path in named)
