"""What the documents say is what the code does."""

import re
from pathlib import Path

from prometheus_client import REGISTRY

from schemas.dead_letter import Reason
from streams.matcher import MatchCounts
from workers.exits import Exit
from workers.health import Health
from workers.metrics import WorkerMetrics
from workers.settings import load, table

ROOT = Path(__file__).parent.parent.parent


def test_the_settings_table_is_the_one_that_is_printed() -> None:
    told = (ROOT / "docs/operations.md").read_text()
    rows = [
        f"| `{name}` | {f'`{default}`' if default else 'empty'} | {text} |"
        for name, _, default, text in table(load({}))
    ]
    assert [line for line in told.splitlines() if line.startswith("| `NEARSTREAM_")] == rows


def test_every_exit_code_is_documented() -> None:
    told = (ROOT / "docs/operations.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", told, re.MULTILINE)} == {int(code) for code in Exit}


def test_every_reason_is_documented() -> None:
    told = (ROOT / "docs/operations.md").read_text()
    table = told[told.index("| reason |") : told.index("| command | does |")]
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert re.findall(r"`([a-z_]+)`", first_cells) == [reason.value for reason in Reason]


def test_every_metric_is_documented_and_no_other() -> None:
    worker = WorkerMetrics(Health(), MatchCounts(), {})
    families = [*REGISTRY.collect(), *worker.collect()]
    declared = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith("nearstream_")
    }
    told = (ROOT / "docs/operations.md").read_text()
    named = set(re.findall(r"`(nearstream_[a-z_]+)`", told))
    assert named == declared


def test_every_link_between_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_topology_fits_on_one_screen_and_no_room_is_large() -> None:
    for floor in ("schemas", "streams", "workers"):
        for room in (ROOT / floor).glob("*.py"):
            assert len(room.read_text().splitlines()) <= 250, room
    app = (ROOT / "workers/app.py").read_text()
    topology = app[app.index("def create_app") : app.index("def serve")]
    assert len(topology.splitlines()) <= 40
