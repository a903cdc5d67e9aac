"""Crawl a made-up web as decisions say, beside a text hash with Nutch's waits, and beside fetching everything.

    python -m benchmarks.crawl.site [--starts N] [--every H] [--freshness F] [--batch] [--pages N] [--json]

What is to be seen when is known from the generator of the pages alone. A crawler comes 13 times in 144 hours, or each H
hours. It asks for one page after the other, or for all of a round at once. Starts are shifted by 3.1 hours each, and
figures are means. Prints a table, ratios at equal stale page hours and at equal fetches (between two waits of the
yardstick straight lines are taken), and the worst kinds.
"""

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from benchmarks.crawl.pages import Page
from benchmarks.crawl.web import Web
from benchmarks.speed.measure import positive
from nearstream.schemas.documents.document import to_milliseconds
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.ingest.sites import site_of
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.operations.backtest.grading import HOUR_MS, Fetch, Tally
from nearstream.workers.operations.backtest.playing import Player, named, page_record, ratios
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded

_ROUNDS = (0, 6, 12, 18, 23.97, 24.6, 30, 36, 48, 72, 96, 120, 144)
_ROUND_HOURS = 5 / 60
_SHIFT_HOURS = 3.1
_WAITS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 24, 30, 36, 48)  # first ones of the yardstick
_SHOWN = (6, 9, 12)
_START_MS = to_milliseconds(datetime(2026, 11, 1, tzinfo=UTC))
_WORST = 12
_OF_KINDS = ("fetches", "stale_hours", "called_same")
_COLUMNS = ("fetches", "wasted", "stale_page_hours", "fresh", "called_same")

Pages = Mapping[str, Page]
Figures = Mapping[str, float]


def crawls(web: Pages, picked: Sequence[Page], shift: float, every: float | None) -> list[list[Fetch]]:
    """Return what the pages show in each round, in which each page comes once, in another order each time."""
    begins = _ROUNDS if every is None else [every * number for number in range(int(_ROUNDS[-1] / every) + 1)]
    made = []
    for number, begin in enumerate(begins):
        order = random.Random(f"order {number}").sample(picked, len(picked))
        hours = (begin + shift + place * _ROUND_HOURS / len(order) for place in range(len(order)))
        made.append([_fetch(web, page, hour) for page, hour in zip(order, hours, strict=True)])
    return made


def _fetch(web: Pages, page: Page, hour: float) -> Fetch:
    """Return what a page answers at an hour. A redirect is followed."""
    at_ms, draw = _START_MS + round(hour * HOUR_MS), random.Random(f"{page.url} {hour}")
    status, body = page.serve(hour, draw)
    target = body if status == 301 else ""
    if target:
        status, body = web[target].serve(hour, draw)
    record = page_record(page.url, at_ms, body.encode(), target) if status == 200 else None
    return Fetch(page.url, at_ms, status, record, page.key(hour))


async def play(rounds: Sequence[Sequence[Fetch]], freshness: float, *, at_once: bool) -> Player:
    """Play the pages of each round, for which is asked one by one, or for all at the begin of the round."""
    job = embedded(Deployment.of(load({})))
    player = Player(job, Decider(MemoryDecisions(), site_of, freshness), _WAITS)
    for crawl in rounds:
        due = {each.url: await player.due(each.url, crawl[0].at_ms) for each in crawl} if at_once else {}
        for each in crawl:
            await player.play(each, due.get(each.url) or await player.due(each.url, each.at_ms))
    job.pages.close()
    return player


def _worst_kinds(web: Pages, tallies: Mapping[str, Sequence[Tally]]) -> Iterator[dict[str, str | float]]:
    """Yield by kind the means of fetches, stale hours and what was called the same, beside the yardstick."""
    sums = {name: _by_kind(web, tallies[name]) for name in ("nearstream", named(9))}
    pages = Counter(page.kind for page in web.values())
    for kind in sorted(pages, key=lambda kind: -sums["nearstream"]["stale_hours", kind]):
        row: dict[str, str | float] = {"kind": kind, "pages": pages[kind]}
        for name, counts in sums.items():
            for what in _OF_KINDS:
                row[f"{name.split(',')[0]} {what}"] = round(counts[what, kind] / len(tallies[name]), 1)
        yield row


def _by_kind(web: Pages, tallies: Sequence[Tally]) -> Counter[tuple[str, str]]:
    counts = Counter[tuple[str, str]]()
    for tally in tallies:
        for url, page in tally.pages.items():
            for what in _OF_KINDS:
                counts[what, web[url].kind] += getattr(page, what)
    return counts


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the means over the starts."""
    web, found = Web(options.seed).pages, dict[str, list[Tally]]()
    picked = random.Random(options.seed).sample(list(web.values()), min(options.pages, len(web)))
    for number in range(options.starts):
        rounds = crawls(web, picked, number * _SHIFT_HOURS, options.every)
        for name, tally in asyncio.run(play(rounds, options.freshness, at_once=options.batch)).tallies.items():
            found.setdefault(name, []).append(tally)
    means = {name: _mean([tally.figures() for tally in tallies]) for name, tallies in found.items()}
    shown = ["fetch all", *map(named, _SHOWN), "nearstream"]
    return {
        "pages": len(picked),
        "kinds": len({page.kind for page in picked}),
        "rounds": len(rounds),
        "policies": {name: means[name] for name in shown},
        "ratios": ratios(means["nearstream"], [means[named(hours)] for hours in _WAITS]),
        "worst_kinds": list(_worst_kinds(web, found))[:_WORST],
    }


def _mean(rows: Sequence[Figures]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 4) for name in rows[0]}


def _rows(found: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    """Yield the rows of the tables."""
    yield "policy", *_COLUMNS
    for name, figures in found["policies"].items():
        yield name, *(figures[column] for column in _COLUMNS)
    for name, ratio in found["ratios"].items():
        yield name, ratio
    yield tuple(found["worst_kinds"][0])
    yield from (tuple(kind.values()) for kind in found["worst_kinds"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=positive, default=1, metavar="N")
    parser.add_argument("--every", type=float, metavar="H")
    parser.add_argument("--freshness", type=float, default=Settings.crawl_freshness, metavar="F")
    parser.add_argument("--batch", action="store_true", help="ask for all pages of a round at once")
    parser.add_argument("--pages", type=positive, default=1_000, metavar="N", help="take only this many, by chance")
    parser.add_argument("--seed", type=int, default=7, metavar="N")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = measure(options)
    if options.json:
        print(json.dumps({**vars(options), **found}, indent=1))
        return 0
    print(f"{found['pages']} pages of {found['kinds']} kinds, {found['rounds']} rounds, {options.starts} starts")
    for row in _rows(found):
        print("|", " | ".join(map(str, row)), "|")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
