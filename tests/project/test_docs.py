"""The documents agree with the code."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.matching.judge import MatchCounts
from nearstream.workers.cli.main import main
from nearstream.workers.config.bounds import PATTERNS
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError, load, table
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import GroupMetrics, WorkerMetrics

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").glob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
    *(ROOT / "deploy").rglob("*.md"),
]


def test_the_file_of_settings_lists_what_is_printed() -> None:
    told = (ROOT / "deploy/nearstream.env").read_text().partition("\n\n")[2]
    assert told == "\n".join(f"# {text}\n#{name}={default}\n" for name, _, default, text in table(load({})))


def test_each_profile_does_what_its_row_says() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    section = " ".join(page.partition("A profile sets defaults")[2].split())
    rows = re.findall(r"- `(development|production|mail)`: (.*?)a start requires (\S+)", section)
    assert {name for name, _, _ in rows} == set(PATTERNS["profile"][0].split("|"))
    usual = {row[0]: row[1] for row in table(load({}))}
    for name, defaults, required in rows:
        needed = dict.fromkeys(re.findall(r"`(NEARSTREAM_[A-Z_]+)`", required), "k" * 32)
        given = {"NEARSTREAM_PROFILE": name, **needed}
        changed = {
            f"{row[0]}={row[1]}" for row in table(load(given)) if row[1] != usual[row[0]] and row[0] not in given
        }
        assert changed == set(re.findall(r"`(NEARSTREAM_[A-Z_]+=[^`]+)`", defaults)), name
        for variable in needed:
            with pytest.raises(SettingsError, match=variable):
                load({key: value for key, value in given.items() if key != variable})


def test_every_exit_code_and_reason_is_documented() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert {int(code) for code in re.findall(r"^- \*\*(\d+)\*\*:", page, re.MULTILINE)} == {int(code) for code in Exit}
    section = page[page.index("- `empty_value`") : page.index("### Replay")]
    named = " ".join(re.findall(r"^- (`[a-z_`, ]+): ", section, re.MULTILINE))
    assert re.findall(r"`([a-z_]+)`", named) == [reason.value for reason in Reason]


def test_every_metric_is_documented_and_no_other() -> None:
    worker = WorkerMetrics(Health(), MatchCounts(), {})
    group = GroupMetrics(list, list)
    families = [*REGISTRY.collect(), *worker.collect(), *group.collect()]
    declared = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith("nearstream_")
    }
    page = (ROOT / "docs/operations.md").read_text()
    named = set(re.findall(r"`(nearstream_[a-z_]+)`", page))
    assert named == declared


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    assert len(re.findall(r"\]\(([^):]+)\)", "".join(page.read_text() for page in PAGES))) > 300
    for page in PAGES:
        for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            assert file.exists(), f"{page.name}: {target}"
            assert file.resolve() == Path(os.path.abspath(file)), f"{page.name}: {target} leads through a link"
            assert not anchor or anchor in _anchors(file), f"{page.name}: {target}"


def test_every_file_module_and_test_that_is_named_exists() -> None:
    known = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    files = {path.name for top in ("src", "tests", "benchmarks", "examples") for path in (ROOT / top).rglob("*.py")}
    named = r"`((?:benchmarks|deploy|docs|examples|schemas|src|streams|tests|workers)/[\w./-]*)`"
    for page in PAGES:
        text = page.read_text()
        for path in re.findall(named, text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
        for file in re.findall(r"`(\w+\.py)`", text):
            assert file in files, f"{page.name}: {file}"
        for module in re.findall(r"python -m ((?:benchmarks|nearstream|tests)[\w.]*)", text):
            assert find_spec(module), f"{page.name}: python -m {module}"
        for test in set(re.findall(r"`(test_\w+)`", text)):
            assert f"def {test}(" in known or list((ROOT / "tests").rglob(f"{test}.py")), f"{page.name}: {test}"


def test_every_command_exists_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {(page.name, command, *options) for page in PAGES for command, options in _commands(page.read_text())}
    for page, command, *options in commands:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert (command, ended.value.code) == (command, 0), page
        assert set(options) <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out)), f"{page}: {command}"


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    linked = re.findall(r"\]\(([\w.-]+)\)", (docs / "index.md").read_text())
    assert {page.name for page in docs.glob("*.md")} <= {*linked, "index.md"}


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each command of nearstream in a block or span of code, with its options."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    for line in [*"\n".join(blocks).splitlines(), *spans]:
        command = re.match(
            r"(?:docker compose exec .*?worker )?nearstream ([a-z]+(?:-[a-z]+)*(?: [a-z]+(?=\s|$))*)", line
        )
        if command:
            yield command[1], set(re.findall(r"--[a-z-]+", line[command.end() :].partition("#")[0]))
