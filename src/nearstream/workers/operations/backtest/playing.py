"""Play the fetches of a log under decisions and other policies."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.verdicts.events import Retraction
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.workers.files.source import Item
from nearstream.workers.operations.backtest.grading import GONE, Fetch, Tally, TextHash
from nearstream.workers.pipeline.in_process import Embedded

OURS, ALL = "nearstream", "fetch all"
WAITS = [0.25 * 1.4**number for number in range(24)]  # first waits of the text hash in hours: to 24 days
_NOTHING_NEW = frozenset({"copy", "unchanged", "error_page"})
_RATIOS = (("fetches", "stale_page_hours"), ("stale_page_hours", "fetches"))

Figures = Mapping[str, float]


@dataclass
class Player:
    """Plays fetches under decisions, text hashes and fetching all."""

    embedded: Embedded  # what pages go through
    decider: Decider
    waits: Iterable[float] = tuple(WAITS)
    no_page: Counter[str] = field(default_factory=Counter)  # by reason how many fetches brought nothing to decide about

    def __post_init__(self) -> None:
        self._hashes = {named(hours): TextHash(hours) for hours in self.waits}
        self.tallies = {name: Tally() for name in (OURS, ALL, *self._hashes)}

    async def due(self, url: str, at_ms: int) -> dict[str, bool]:
        """Return under which policies a page is fetched at a time."""
        state = await self.decider.asked(DEFAULT_COLLECTION, name_of_page(url))
        hashes = {name: each.is_due(url, at_ms) for name, each in self._hashes.items()}
        return {OURS: state is None or not may_skip(state.decision, at_ms), ALL: True, **hashes}

    async def play(self, fetch: Fetch, due: Mapping[str, bool]) -> None:
        """Make a fetch under the policies under which it is due."""
        said_same = {OURS: due[OURS] and await self._decide(fetch), ALL: False}
        said_same |= {name: due[name] and each.take(fetch) for name, each in self._hashes.items()}
        for name, tally in self.tallies.items():
            tally.ask(fetch, is_due=due[name], said_same=said_same[name])

    def figures(self) -> dict[str, Figures]:
        """Return the counts of each policy."""
        return {name: tally.figures() for name, tally in self.tallies.items()}

    async def _decide(self, fetch: Fetch) -> bool:
        record = fetch.record
        if record is None:
            self.no_page[f"status {fetch.status}"] += 1
            if fetch.status not in GONE:
                return False
            record = ConsumerRecord("documents", 0, 0, fetch.at_ms, name_of_page(fetch.url).encode(), None, [])
        async for outcome in self.embedded.outcomes([Item(fetch.url, record)]):
            for event in outcome.events:
                if isinstance(event, Retraction):
                    await self.decider.after_removal(event)
            if outcome.verdict is not None:
                said = await self.decider.after_verdict(outcome.verdict, outcome.page)
                return any(each.decision and each.decision.because in _NOTHING_NEW for each in said[:1])
            if record.value is not None:
                self.no_page[outcome.refusal or "empty"] += 1
        return False


def named(hours: float) -> str:
    """Return the name of a text hash with a first wait."""
    return f"text hash, first wait {hours:.3g} h"


def page_record(url: str, at_ms: int, page: bytes, lineage: str = "") -> ConsumerRecord:
    """Return the record of an HTML page.

    `lineage` is the URL to which its own redirects for good, if it does.
    """
    headers: Headers = [("content-type", b"text/html"), ("nearstream-url", url.encode("utf-8", "replace"))]
    if lineage:
        name = name_of_page(lineage).encode("utf-8", "replace")
        headers += [("nearstream-id", name), ("nearstream-lineage", name)]
    return ConsumerRecord("documents", 0, 0, at_ms, None, page, headers)


def ratios(ours: Figures, hashes: Iterable[Figures]) -> dict[str, float | None]:
    """Return our share of the fetches and of the stale hours.

    Each is at an equal number of the other. Between two first waits a straight line is taken.
    None: decisions are beside all of them.
    """
    rows, told = list(hashes), dict[str, float | None]()
    for name, equal in _RATIOS:
        theirs = _height(sorted((row[equal], row[name]) for row in rows), ours[equal])
        told[f"{name}_at_equal_{equal}"] = round(ours[name] / theirs, 3) if theirs else None
    return told


def _height(points: Sequence[tuple[float, float]], at: float) -> float | None:
    for (left, low), (right, high) in pairwise(points):
        if left <= at <= right:
            return low + (high - low) * (at - left) / ((right - left) or 1)
    return None


def nearest(figures: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return the counts of a report, of hashes the two nearest."""
    hashes = [name for name in figures if name not in (OURS, ALL)]
    near = {min(hashes, key=lambda name: abs(figures[name][by] - figures[OURS][by])) for by, _ in _RATIOS}
    return {name: row for name, row in figures.items() if name in near | {OURS, ALL}}


def chart(figures: Mapping[str, Figures]) -> Iterator[str]:
    """Yield the lines of an SVG: each policy by its fetches and its stale page hours."""
    most = [max(row[by] for row in figures.values()) or 1 for by, _ in _RATIOS]
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif" font-size="14">'
    yield '<rect width="640" height="400" fill="#fff"/><path d="M60 20V340H620" fill="none" stroke="#888"/>'
    yield f'<text x="300" y="380">fetches, at most {most[0]:.0f}</text>'
    yield f'<text x="60" y="15">stale page hours, at most {most[1]:.0f}</text>'
    for name, row in figures.items():
        x, y = (row[by] / high for (by, _), high in zip(_RATIOS, most, strict=True))
        colour, size = ("#d33", 7) if name == OURS else ("#39c", 4)
        told = f"{name}: {row['fetches']:.0f} fetches, {row['stale_page_hours']:.0f} stale page hours"
        yield f'<circle cx="{60 + 560 * x:.0f}" cy="{340 - 320 * y:.0f}" r="{size}" fill="{colour}">'
        yield f"<title>{told}</title></circle>"
    yield "</svg>"
