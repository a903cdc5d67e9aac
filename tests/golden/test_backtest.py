"""What `nearstream backtest` prints about a small log."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.forking import finished
from tests.support.warc import Crawl

TOLD = """\
                                   fetches  wasted  stale page hours    fresh  called the same  saved
nearstream                              42   64.7%              30.0   94.05%                0  30.9 KiB
fetch all                               96   86.4%               0.0  100.00%                0  0 B
text hash, first wait 7.23 h            46   71.0%              12.0   97.62%                0  27.0 KiB
text hash, first wait 10.1 h            37   69.0%              36.0   92.86%                0  31.5 KiB
nearstream has 1.21 of the fetches at equal stale page hours of a text hash
nearstream has 1.32 of the stale page hours at equal fetches of a text hash
    30.0 h stale, 0 called the same in 4 fetches  https://a.example/p/1
no page 5 status 404, 1 status 301
"""
REFUSED = """\
refused LOG:1: Object missing required field `t`
refused LOG:98: expected html, or body in base64, for the status 200
refused LOG:99: earlier than the fetch of its URL before it: sort the log by time
refused LOG:100: Input data was truncated
"""


def page(number: int, state: int) -> str:
    text = " ".join(f"word{number}of{place}" for place in range(60))
    return f"<title>{number}</title><main><h1>Page {number}</h1><p>{text}</p><p>Price: {state} EUR</p></main>"


def fetches() -> list[dict[str, object]]:
    """Return a log of eight pages, which are fetched each six hours.

    One changes at each fetch, one halfway, one is gone then, and one redirects to another.
    """
    made: list[dict[str, object]] = []
    for hour in range(0, 72, 6):
        late = hour >= 36
        for number in range(8):
            fetch: dict[str, object] = {"t": hour, "url": f"https://a.example/p/{number}"}
            state = hour if number == 0 else number == 1 and late
            answers = {2: {"status": 404}, 3: {"status": 301, "location": "https://a.example/p/4"}}
            made.append(fetch | (answers[number] if late and number in answers else {"html": page(number, int(state))}))
    return made


def run(*arguments: str) -> tuple[int, str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    done = finished([sys.executable, "-m", "nearstream", "backtest", *arguments], inherited, b"")
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_log_is_told_as_a_table_and_drawn_and_its_bad_lines_are_named(tmp_path: Path) -> None:
    log, chart = tmp_path / "log.jsonl", tmp_path / "chart.svg"
    bad = [{"t": 80, "url": "https://a.example/"}, {"t": 1, "url": "https://a.example/p/7", "html": "late"}]
    lines = [{"url": "https://a.example/"}, *fetches(), *bad]
    log.write_text("\n".join(map(json.dumps, lines)) + '\n{"t": 80')
    code, told, refused = run(str(log), "--quiet", "--svg", str(chart))
    assert (code, told, refused) == (65, TOLD, REFUSED.replace("LOG", str(log)))
    assert "<title>nearstream: " in chart.read_text()


def test_warc_files_and_lines_with_equal_pages_give_equal_figures(tmp_path: Path) -> None:
    crawls, lines = [], []
    for day in (1, 2, 4):
        crawl, date = Crawl(packed=True), f"2026-03-0{day}T08:15:00Z"
        for number in range(4):
            html, url = page(number, day if number == 1 else 0), f"https://a.example/p/{number}"
            crawl.response(url, html.encode(), date=date)
            lines.append({"t": date, "url": url, "html": html})
        crawls.append(tmp_path / f"{day}.warc.gz")
        crawls[-1].write_bytes(crawl.content())
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))
    reports = [json.loads(run("--json", "--quiet", *map(str, paths))[1]) for paths in (crawls, [log])]
    assert [report.pop("passed_over") for report in reports] == [{"no_response": 3}, {}]
    assert reports[0] == reports[1]
    assert (reports[0]["pages"], reports[0]["policies"]["fetch all"]["fetches"]) == (4, 12)


@pytest.mark.parametrize("time", [-1, 1e9, "2026-03-02T08:15:00", "soon"])
def test_a_line_whose_time_is_none_is_refused(tmp_path: Path, time: object) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"t": time, "url": "https://a.example/", "html": "text"}))
    code, _, refused = run(str(log), "--quiet")
    assert code == 65
    assert refused.startswith(f"refused {log}:1: ")
