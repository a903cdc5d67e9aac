"""Every fault, bad input and attack has a test with its id in the name, to which its line of the page leads."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = re.findall(
    r"^- (?:\[([FS]\d\d)\]\(\.\./(\S+)\)|([FS]\d\d) .*: (F\d\d)$)",
    (ROOT / "docs/reliability.md").read_text(),
    re.MULTILINE,
)


def ids_of(path: Path) -> set[str]:
    """Return the ids that the tests of a file carry in their names."""
    found = re.findall(r"^(?:async )?def test_((?:[fbs]\d\d_)+)", path.read_text(), re.MULTILINE)
    return {one for ids in found for one in ids.upper().split("_") if one}


def test_every_listed_id_has_a_test_or_names_the_fault_that_has_and_every_test_is_listed() -> None:
    linked = {one: path for one, path, _, _ in LINES if one}
    assert len(linked) > 60
    assert [one for one, path in linked.items() if one not in ids_of(ROOT / path)] == []
    assert [one for *_, one, other in LINES if one and other not in linked] == []
    held = set[str]().union(*map(ids_of, (ROOT / "tests").rglob("test_*.py")))
    assert held == linked.keys() | {f"B{number:02}" for number in range(1, 66)}
