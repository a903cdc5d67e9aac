"""The documents agree with the code."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest
from prometheus_client import REGISTRY

import nearstream
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.judge import MatchCounts
from nearstream.streams.matching.protocol.tally import COPY_PERCENT
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.workers.cli.main import main
from nearstream.workers.config.bounds import PATTERNS
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError, load, table
from nearstream.workers.files.content import DOCUMENT_MAX_BYTES
from nearstream.workers.kafka.batches import TAKE_BYTES
from nearstream.workers.kafka.client import SESSION_SECONDS
from nearstream.workers.monitoring.health import BEHIND_SECONDS, Health
from nearstream.workers.monitoring.metrics import WorkerMetrics, recall_metrics
from nearstream.workers.monitoring.status_server import AT_ONCE
from nearstream.workers.monitoring.watchdog import LOOP_SECONDS, PROGRESS_SECONDS, REBALANCE_SECONDS
from nearstream.workers.operations.audit.precision import STATES_MAX
from nearstream.workers.operations.audit.recall import FEATURES_MAX
from nearstream.workers.operations.replay import COMMIT_EVERY
from nearstream.workers.pipeline.dead_letters import MIN_WINDOW_RECORDS, WINDOW_RECORDS
from nearstream.workers.worker.topology import MATCH_LANES

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").glob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
    *(ROOT / "deploy").rglob("*.md"),
]
README_LINES = 110  # two screens


def test_the_list_of_settings_is_the_one_that_is_printed() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    rows = [
        f"- `{name}` ({f'`{default}`' if default else 'empty'}): {text}" for name, _, default, text in table(load({}))
    ]
    assert re.findall(r"^- `NEARSTREAM_[A-Z_]+` \(.*$", page, re.MULTILINE) == rows


def test_each_profile_does_what_its_row_says() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    section = " ".join(page.partition("A profile sets defaults")[2].partition("Each setting,")[0].split())
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


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert {int(code) for code in re.findall(r"^- \*\*(\d+)\*\*:", page, re.MULTILINE)} == {int(code) for code in Exit}


def test_every_reason_is_documented() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    section = page[page.index("- `empty_value`") : page.index("### Replay")]
    named = " ".join(re.findall(r"^- (`[a-z_`, ]+): ", section, re.MULTILINE))
    assert re.findall(r"`([a-z_]+)`", named) == [reason.value for reason in Reason]


def test_every_metric_is_documented_and_no_other() -> None:
    worker = WorkerMetrics(Health(), MatchCounts(), {})
    families = [*REGISTRY.collect(), *worker.collect(), *recall_metrics(1.0, (0.5, 1.0), 1, 2).collect()]
    declared = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith("nearstream_")
    }
    page = (ROOT / "docs/operations.md").read_text()
    named = set(re.findall(r"`(nearstream_[a-z_]+)`", page))
    assert named == declared


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            assert file.exists(), f"{page.name}: {target}"
            assert file.resolve() == Path(os.path.abspath(file)), f"{page.name}: {target} leads through a link"
            assert not anchor or anchor in _anchors(file), f"{page.name}: {target}"


def test_every_file_module_and_test_that_is_named_exists() -> None:
    known = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = r"`((?:benchmarks|deploy|docs|examples|schemas|src|streams|tests|workers)/[\w./-]*)`"
    for page in PAGES:
        text = page.read_text()
        for path in re.findall(named, text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
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


def test_the_index_links_to_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= set(re.findall(r"\]\(([\w.-]+)\)", index))


@pytest.mark.parametrize("floor", ["workers", "streams", "schemas"])
def test_the_design_shows_every_wing_and_no_other(floor: str) -> None:
    page = (ROOT / "docs/design.md").read_text()
    section = page.partition(f"### Wings of `{floor}/`")[2].partition("\n#")[0]
    named = " ".join(line.partition(": ")[0] for line in section.splitlines() if line.startswith("- `"))
    found = {path.stem for path in (ROOT / floor).iterdir() if path.suffix == ".py" or _is_wing(path)}
    wings = {name for name in found if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)`", named)) == wings
    picture = set(re.findall(r'class="name"[^>]*>(\w+)<', (ROOT / "docs/house.svg").read_text()))
    assert wings <= picture


def test_the_numbers_of_the_design_are_those_of_the_code() -> None:
    page = " ".join((ROOT / "docs/design.md").read_text().split())
    scheme = preset(DEFAULT_LABEL, HashKey.public())
    assert f"({scheme.bands.bands} *bands*, anchors, windows" in page
    assert f"of its {scheme.sketch.shingle_words}-word *shingles* ({scheme.sketch.slots} minima)" in page
    assert f"Up to {MATCH_LANES} batches of `match` are in work" in page
    assert f"shares {COPY_PERCENT} % of its anchors" in page


def test_the_numbers_of_the_operations_page_are_those_of_the_code() -> None:
    page = " ".join((ROOT / "docs/operations.md").read_text().split())
    for passage in (
        f"The group notices a killed worker after {SESSION_SECONDS:.0f} s",
        f"has waited for more than {BEHIND_SECONDS:.0f} s",
        f"a blocked event loop ({LOOP_SECONDS:.0f} s), an endless rebalance ({REBALANCE_SECONDS:.0f} s)",
        f"a batch that does not end ({PROGRESS_SECONDS:.0f} s)",
        f"holds about {TAKE_BYTES >> 20} MiB of its records at a time",
        f"at most {FEATURES_MAX // 10**6} million shingles",
        f"at most {STATES_MAX // 10**6} million states",
        f"A document of more than {DOCUMENT_MAX_BYTES >> 20} MiB",
        f"At most {COMMIT_EVERY} dead letters are sent twice",
        f"of the last {WINDOW_RECORDS:,}",
        f"judged from the {MIN_WINDOW_RECORDS}th on",
        f"At most {AT_ONCE} requests are served at once",
    ):
        assert passage in page


def test_the_readme_is_at_most_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_the_topology_fits_on_one_screen_and_no_room_is_large() -> None:
    for floor in ("schemas", "streams", "workers"):
        for room in (ROOT / floor).rglob("*.py"):
            assert len(room.read_text().splitlines()) <= 400, room
    app = (ROOT / "workers/worker/topology.py").read_text()
    topology = app[app.index("def create_app") :]
    assert len(topology.splitlines()) <= 40


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


def _is_wing(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith("__") and any(path.glob("*.*"))


def test_the_page_of_python_names_each_public_name_where_it_is_defined() -> None:
    named = re.findall(r"^::: (\S+)$", (ROOT / "docs/python.md").read_text(), re.MULTILINE)
    found = {name.rpartition(".")[2]: resolve_name(name) for name in named}
    assert {name: getattr(nearstream, name) for name in found} == found
