"""The charts of the measurements equal those that the script draws from their data."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.charts import FOLDER, sources, svg

SOURCES = sources()
PAGE = FOLDER.parent / "measurements.md"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_committed_chart_is_drawn_from_its_data(source: Path) -> None:
    drawn = svg(json.loads(source.read_text()))
    assert source.with_suffix(".svg").read_text() == drawn, "run `python -m benchmarks.charts`"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_chart_names_its_origin_and_shows_every_value(source: Path) -> None:
    chart = json.loads(source.read_text())
    root = ET.fromstring(source.with_suffix(".svg").read_text())  # noqa: S314 - our own file
    texts = [element.text or "" for element in root.iter() if element.tag.endswith(("}text", "}desc"))]
    origin = [chart[name] for name in ("command", "commit", "date", "machine")]
    assert all(origin)
    assert all(any(part in text for text in texts) for part in origin)
    bars = [element for element in root.iter() if element.get("class") in {"ours", "other", "second"}]
    values = [value for row in chart["rows"] for value in row["values"]]
    assert len(bars) == len(values) + len(chart.get("series", []))
    assert all(row["label"] in texts for row in chart["rows"])
    width = float(root.attrib["width"])
    assert all(0 < float(bar.attrib["width"]) <= width - float(bar.attrib["x"]) for bar in bars)


def test_a_range_of_runs_is_shown_with_both_ends() -> None:
    origin = {"command": "c", "commit": "0", "date": "2026-01-01", "machine": "m"}
    chart = {**origin, "title": "T", "unit": "u", "digits": 1, "rows": [{"label": "a<b", "values": [[1000, 2000.25]]}]}
    drawn = svg(chart)
    assert ">1,000.0-2,000.2<" in drawn
    assert "a&lt;b" in drawn


def test_the_page_shows_every_chart_and_every_chart_has_data() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(measurements/([\w-]+)\.svg\)", PAGE.read_text())
    drawn = {path.stem for path in FOLDER.glob("*.svg")}
    assert sorted(shown) == sorted(drawn) == sorted(source.stem for source in SOURCES)
