"""The charts of the measurements equal those that the script draws from their data."""

import json
import re

from benchmarks.charts import FOLDER, sources, svg


def test_every_committed_chart_is_drawn_from_its_data_and_shown() -> None:
    for source in sources():
        chart = json.loads(source.read_text())
        assert all(chart[name] for name in ("command", "commit", "date", "machine")), source
        assert source.with_suffix(".svg").read_text() == svg(chart), "run `python -m benchmarks.charts`"
    page = (FOLDER.parent / "measurements.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\(measurements/([\w-]+)\.svg\)", page)
    assert sorted(shown) == sorted(path.stem for path in FOLDER.glob("*.svg")) == sorted(s.stem for s in sources())
