"""The recipes of CONTRIBUTING.md name each file of the code that their example touches, so that none is forgotten.

What a file touches is read from its code: names, attributes, fields, imports and strings in Python, without docstrings
and comments, and the words of the other languages without their comments.
"""

import ast
import re
from collections.abc import Callable, Iterator
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
    """Return what the code of a file names, and the words of its strings."""
    code = path.read_text()
    if path.suffix == ".py":
        return frozenset(_named(ast.parse(code)))
    return frozenset(re.findall(r"\w+", COMMENTS[path.suffix].sub("", code)))


def _named(tree: ast.Module) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and _says(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ImportFrom(module=str(module)):
                yield from (module.partition(".")[0], *(alias.name for alias in node.names))
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from re.findall(r"\w+", text)


def _says(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def names(*words: str) -> Callable[[Path], bool]:
    """Return whether a file names one of these words."""
    return lambda path: not words_of(path).isdisjoint(words)


def enumerates_kinds(path: Path) -> bool:
    """Return whether a file treats the kinds of buckets apart.

    Python does so by their names, by the row of all kinds, or by the fields of the keys of a signature. Lua does so by
    the constants that the function library gives it. C does so by their letters, or by how many there are.
    """
    kinds = {kind.name for kind in BUCKET_KINDS}
    match path.suffix:
        case ".py":
            keys = {"lineage", "bands", "anchors"}
            has_fields = any(
                isinstance(node, ast.ClassDef)
                and keys <= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}  # type: ignore[union-attr]
                for node in ast.walk(ast.parse(path.read_text()))
            )
            return has_fields or not words_of(path).isdisjoint({*kinds, "BUCKET_KINDS"})
        case ".lua":
            return not words_of(path).isdisjoint({f"{kind}_KEY" for kind in kinds})
        case ".c" | ".h":
            letters = "".join(kind.decode() for kind in BUCKET_KINDS)
            code = COMMENTS[path.suffix].sub("", path.read_text())
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


def test_code_that_treats_a_kind_apart_is_found(tmp_path: Path) -> None:
    file = tmp_path / "new.h"
    for code, is_found in (("/* kind == 'a' */", False), ("int is_anchor = kind == 'a';", True)):
        file.write_text(code)
        assert enumerates_kinds(file) == is_found
