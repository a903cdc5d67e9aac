"""The recipes of CONTRIBUTING.md name each file of the code that their example touches, so that none is forgotten.

What a file touches is read from its code without docstrings and comments.
"""

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from nearstream.workers.redis.server.layout import BUCKET_KINDS

ROOT = Path(__file__).parents[2]
COMMENTS = {
    **dict.fromkeys((".c", ".h", ".js", ".css"), re.compile(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", re.DOTALL)),
    ".lua": re.compile(r"--[^\n]*"),
}
RECIPES = {
    title: text
    for title, _, text in (
        section.partition("\n") for section in (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")[1:]
    )
}


@cache
def words_of(path: Path) -> frozenset[str]:
    """Return the words of a file's code and of its strings."""
    code = path.read_text()
    if path.suffix in COMMENTS:
        return frozenset(re.findall(r"\w+", COMMENTS[path.suffix].sub("", code)))
    tree = ast.parse(code)
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[ast.Expr(ast.Constant()), *rest])
                | ast.ClassDef(body=[ast.Expr(ast.Constant()), *rest])
            ):
                node.body = rest
            case ast.FunctionDef() | ast.AsyncFunctionDef() if ast.get_docstring(node):
                node.body = node.body[1:]
    return frozenset(re.findall(r"\w+", ast.unparse(tree)))


def names(*words: str) -> Callable[[Path], bool]:
    """Return whether a file names one of these words. Few files have to be parsed for that."""

    def is_named(path: Path) -> bool:
        return any(word in path.read_text() for word in words) and not words_of(path).isdisjoint(words)

    return is_named


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
            code = COMMENTS[path.suffix].sub("", code)
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
        if path.suffix in {".py", *COMMENTS} and TOUCHES[title](path)
    }
    assert {path for path in touched if not any(path.startswith(room) for room in named if room.endswith("/"))} <= named
    assert all((ROOT / path).exists() for path in named)
