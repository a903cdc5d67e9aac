"""The confidence of events is what the page about relations says was measured."""

from pathlib import Path

from nearstream.streams.relations.describe import CONFIDENCE

PAGE = Path(__file__).parents[4] / "docs/relations.md"


def test_the_confidence_of_events_is_the_measured_share_in_two_digits() -> None:
    section = PAGE.read_text("utf-8").partition("## When numbers are weak")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    measured = {name: (away, near) for name, *_, near, away in rows if name in CONFIDENCE}
    assert set(measured) == set(CONFIDENCE)
    for name, shares in measured.items():
        most = CONFIDENCE[name][0]  # no more is stated, since few events of a kind were drawn
        for stated, share in zip(CONFIDENCE[name], shares, strict=True):
            assert not share or abs(stated - min(float(share), most)) <= 0.0051
