"""Play a log of fetches under decisions."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearstream.workers.cli.arguments import add_json, add_quiet, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import (
    PATH_CHARACTERS,
    Progress,
    escaped,
    in_bytes,
    print_message,
    print_report,
)
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.operations.backtest.playing import Player

_WORST = 10


def add_backtest(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream backtest`."""
    declare(parser, play_log, example="nearstream backtest fetches.jsonl.gz --svg fetches.svg")
    fields = "t (hours, or a time with zone), url, html (or body in base64), perhaps status, location, content"
    log = f"fetches in the order of time: JSON Lines with {fields}; or WARC files"
    parser.add_argument("paths", nargs="+", metavar="LOG", help=log)
    add_json(parser, "one JSON object")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw stale page hours by fetches")
    add_quiet(parser)


def play_log(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what decisions would have saved and missed, beside what others would."""
    from nearstream.streams.deciding.decider import Decider
    from nearstream.streams.deciding.memory import MemoryDecisions
    from nearstream.streams.ingest.sites import site_of
    from nearstream.workers.files.source import Refused, bytes_of, read
    from nearstream.workers.operations.backtest.playing import Player, chart
    from nearstream.workers.operations.backtest.reading import read_log
    from nearstream.workers.pipeline.in_process import embedded

    job, passed_over = embedded(Deployment.of(settings)), Counter[str]()
    player = Player(job, Decider(MemoryDecisions(), site_of, settings.crawl_freshness))
    progress = Progress("played", bytes_of(options.paths), options.quiet, place=0)

    async def run() -> int:
        refused = 0
        for fetch in read_log(progress.reach(read(options.paths, passed_over=passed_over))):
            if isinstance(fetch, Refused):
                refused += 1
                print_message(f"refused {escaped(fetch.source, PATH_CHARACTERS)}: {fetch.reason}")
            else:
                await player.play(fetch, await player.due(fetch.url, fetch.at_ms))
                progress.step()
        return refused

    refused = asyncio.run(run())
    job.pages.close()
    progress.end()
    if options.svg:
        options.svg.write_text("\n".join(chart(player.figures())), encoding="utf-8")
    report = _report(player) | {"refused": refused, "passed_over": passed_over, "no_page": player.no_page}
    print_report(report, _lines(report), is_json=options.json)
    return Exit.UNREADABLE if refused else Exit.OK


def _report(player: "Player") -> dict[str, Any]:
    from nearstream.workers.operations.backtest.playing import ALL, OURS, nearest, ratios

    figures, pages = player.figures(), player.tallies[OURS].pages
    hashes = [row for name, row in figures.items() if name not in (OURS, ALL)]
    bad = {url: page for url, page in pages.items() if page.stale_hours or page.called_same}
    worst = sorted(bad, key=lambda url: (-bad[url].stale_hours - 24 * bad[url].called_same, url))[:_WORST]
    names = ("stale_hours", "called_same", "fetches")
    told = [{"url": url, **{name: getattr(bad[url], name) for name in names}} for url in worst]
    ours = ratios(figures[OURS], hashes)
    return {"pages": len(pages), "policies": nearest(figures), "ratios": ours, "worst": told}


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield f"{'':34} fetches  wasted  stale page hours    fresh  called the same  saved"
    for name, row in report["policies"].items():
        start = f"{name:34} {row['fetches']:7}  {row['wasted']:6.1%}  {row['stale_page_hours']:16.1f}"
        yield f"{start}  {row['fresh']:7.2%}  {row['called_same']:15}  {in_bytes(row['saved_bytes'])}"
    for name, ratio in report["ratios"].items():
        if ratio is not None:
            yield f"nearstream has {ratio:.2f} of the {name.replace('_', ' ')} of a text hash"
    for page in report["worst"]:
        told = f"{page['stale_hours']:8.1f} h stale, {page['called_same']} called the same in {page['fetches']} fetches"
        yield f"{told}  {escaped(page['url'])}"
    for name in ("passed_over", "no_page"):
        if counts := report[name]:
            yield f"{name.replace('_', ' ')} {', '.join(f'{number} {reason}' for reason, number in counts.items())}"
