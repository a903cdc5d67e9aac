"""Complete the lists of docs/reliability.md, which say what each fault and attack is, with the files of their tests.

`python -m tests.support.reliability` writes the page. With build/faults.json as argument it also replaces the results
of the fault runs in that file.
"""

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"
ALWAYS = "each run"
RESULTS = "## Results of the last runs\n"
NO_FIGURES = "|  |  |  |"  # of a test that passed and compares no events

_LISTED = re.compile(r"- \[?([FS]\d\d)(?:\]\(\S*\))? (.*?)(?: \((?:each run, |long|soak)+\))?")


class Held(NamedTuple):
    """A test of one id. A parameter may put part of it into another set."""

    path: str
    name: str
    sets: frozenset[str]


@cache
def holding_tests() -> Mapping[str, list[Held]]:
    """Return the tests of each id, which they carry in their names."""
    found: dict[str, list[Held]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        code = path.read_text()
        for test in ast.walk(ast.parse(code)) if re.search(r"def test_[fbs]\d\d_", code) else ():
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                ids = re.match(r"test_((?:[fbs]\d\d_)*)", test.name)
                for one in (ids[1] if ids else "").upper().split("_")[:-1]:
                    sets = frozenset(_sets([ast.unparse(mark) for mark in test.decorator_list]))
                    found[one].append(Held(path.relative_to(ROOT).as_posix(), test.name, sets))
    return found


def _sets(marks: Sequence[str]) -> Iterator[str]:
    whole = [name for name in ("soak", "long") if f"pytest.mark.{name}" in marks]
    yield from whole or [ALWAYS]
    if any("marks=pytest.mark.long" in mark for mark in marks):
        yield "long"


def listed() -> dict[str, str]:
    """Return what each fault and each attack is, by its id, as the page says."""
    found = map(_LISTED.fullmatch, PAGE.read_text().splitlines())
    return {one[1]: one[2] for one in found if one}


def page(results: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the whole page, with these results of fault runs added to those on the page."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    head, title, rest = PAGE.read_text().partition(RESULTS)
    figures, *lists = rest.rstrip("\n").partition("\n## ")
    held = holding_tests()
    known = [row for row in figures.splitlines() if row.startswith("| F")]
    rows = {row.split(" | ")[0].partition(" (")[0]: row for row in [*known, *(_row(each, held) for each in results)]}
    yield head + title.rstrip("\n")
    yield from ("", "| id | documents | restated | recovery s |", "|---|---|---|---|")
    yield from sorted(row for row in rows.values() if "(" in row or not row.endswith(NO_FIGURES))
    yield from (_with_tests(line, held) for line in "".join(lists).splitlines())


def _with_tests(line: str, held: Mapping[str, Sequence[Held]]) -> str:
    """Return a line of a list with a link to the tests of its id, and with the sets that they are in."""
    found = _LISTED.fullmatch(line)
    if found is None:
        return line
    tests = held.get(found[1], [])
    sets = ", ".join(sorted(frozenset[str]().union(*(test.sets for test in tests))))
    link = f"[{found[1]}](../{tests[0].path})" if tests else found[1]
    return f"- {link} {found[2]}{f' ({sets})' if sets not in ('', ALWAYS) else ''}"


def _row(result: Mapping[str, Any], held: Mapping[str, Sequence[Held]]) -> str:
    """Return the row of one fault run.

    The outcome says what was lost or extra. A test that compares no events has only an outcome. The case of a fault is
    the parameter of its test, and the name of the test where several make this fault.
    """
    one, _, name = result["test"].removeprefix("test_").partition("_")
    is_alone = sum(test.path.startswith("tests/fault/") for test in held.get(one.upper(), ())) <= 1
    parameter = name.rstrip("]").partition("[")[2]
    case = parameter if is_alone or parameter else name.replace("_", " ")
    run = result["report"]
    outcome = "" if result["outcome"] == "passed" else result["outcome"]
    if run is None:
        figures = [""] * 3
    else:
        recovery = run["recovery_seconds"]
        seconds = "" if recovery is None else f"{recovery:.1f}"
        figures = [f"{run['documents']:,}", f"{run['restated_share']:.1%}", seconds]
        found = [outcome, "" if run["verdict"] == "ok" else run["verdict"]]
        for measured, unit in (("throughput_share", "of the throughput"), ("memory_mb_per_minute", "MB a minute")):
            found.append("" if run[measured] is None else f"{run[measured]:.2f} {unit}")
        outcome = ", ".join(filter(None, found))
    name = f"{one.upper()} {case}".rstrip()
    return f"| {name}{outcome and f' ({outcome})'} | {' | '.join(figures)} |"


if __name__ == "__main__":
    PAGE.write_text(page([each for path in sys.argv[1:] for each in json.loads(Path(path).read_text())]))
