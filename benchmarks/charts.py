"""Draw the charts of docs/measurements.md as SVG: `python -m benchmarks.charts`.

An SVG is written beside each JSON file. A JSON file holds one chart: what was measured, by which command, at which
commit, on which machine. A value is a number, or the smallest and the largest of several runs. The bars are plain SVG
that a light and a dark page can show.
"""

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "measurements"
WIDTH, LEFT, RIGHT = 720, 250, 110
TOP, BAR, GAP, FOOT = 50, 16, 10, 14

Chart = dict[str, Any]  # Any: JSON

# A page may be dark while the system is light, so the first colours are those that both can show.
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #656d76 }
.title { font-weight: 600; font-size: 15px }
.axis { stroke: #8c959f; stroke-width: 1 }
.ours { fill: #2f81f7 }
.second { fill: #d29922 }
.other { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9 } .other { fill: #6e7681 } }
@media (prefers-color-scheme: light) { text { fill: #24292f } }
"""


def main() -> int:
    """Write every chart."""
    for source in sources():
        source.with_suffix(".svg").write_text(svg(json.loads(source.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


def sources() -> list[Path]:
    """Return the JSON files of all charts."""
    return sorted(FOLDER.glob("*.json"))


def svg(chart: Chart) -> str:
    """Draw the bars of a chart as SVG."""
    series = chart.get("series", [])
    thick = BAR * max(len(series), 1) + GAP
    height = TOP + thick * len(chart["rows"]) + FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' role="img">',
        f"<title>{escape(chart['title'])}</title>",
        f"<desc>{escape(_description(chart))}</desc>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="0" y="16">{escape(chart["title"])}</text>',
        f'<text x="0" y="36">{escape(chart["unit"])}</text>',
        *_legend(series),
        *_bars(chart, thick),
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{height - FOOT}"/>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _description(chart: Chart) -> str:
    return f"{chart['command']} at commit {chart['commit']}, {chart['date']}, on {chart['machine']}"


def _legend(series: list[str]) -> Iterator[str]:
    x = LEFT + 170
    for number, name in enumerate(series):
        yield f'<rect class="{_colour(number, ours=True)}" x="{x}" y="26" width="11" height="11"/>'
        yield f'<text x="{x + 16}" y="36">{escape(name)}</text>'
        x += 30 + 8 * len(name)


def _bars(chart: Chart, thick: int) -> Iterator[str]:
    most = chart.get("most") or max(_high(value) for row in chart["rows"] for value in row["values"])
    for at, row in enumerate(chart["rows"]):
        y = TOP + GAP // 2 + at * thick
        middle = y + (thick - GAP) / 2 + 4.5
        yield f'<text x="{LEFT - 10}" y="{middle:g}" text-anchor="end">{escape(row["label"])}</text>'
        for number, value in enumerate(row["values"]):
            width = max(_high(value) / most * (WIDTH - LEFT - RIGHT), 1)
            top, colour = y + number * BAR, _colour(number, ours=row.get("ours", True))
            yield f'<rect class="{colour}" x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR - 2}"/>'
            shown = escape(_shown(value, chart["digits"]))
            yield f'<text x="{LEFT + width + 6:.1f}" y="{top + 11.5:g}">{shown}</text>'


def _colour(number: int, *, ours: bool) -> str:
    return ("ours" if ours else "other") if number == 0 else "second"


def _high(value: float | list[float]) -> float:
    return max(value) if isinstance(value, list) else value


def _shown(value: float | list[float], digits: int) -> str:
    """Return the number, or both ends of its range."""
    ends = sorted(set(value)) if isinstance(value, list) else [value]
    return "-".join(f"{end:,.{digits}f}" for end in ends)


if __name__ == "__main__":
    sys.exit(main())
