"""What a page of a made-up web shows at a time, and which content that is.

The truth comes from here alone: `Page.key` names the content that is to be seen at a time. Copies of a thing have its
keys. What changes at each fetch, or on all pages of a host, is no content.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from benchmarks.stream.prose import Prose

# The HTML of a state of a page, by the number of the state and the hour, with a source of noise.
Shown = Callable[[int, float, random.Random], str]


class Hidden(NamedTuple):
    """That a page shows nothing of its own for some time."""

    since: float
    until: float
    status: int = 404
    text: str = "<h1>Error</h1>"  # may hold {number}, {title}


@dataclass(frozen=True)
class Page:
    """A page."""

    url: str  # its address
    kind: str  # what kind of page it is
    thing: str  # what it shows, which copies share
    changes: tuple[float, ...]  # hours at which its content changes
    title: str  # of its `<title>`, which tells the state of a page of the kind `title`
    main: Shown  # the HTML of its main part
    frame: Callable[[str, float, random.Random], str] = lambda main, _, __: main  # what stands around the main part
    head: str = ""  # what else its head holds
    hidden: tuple[Hidden, ...] = ()
    moves: tuple[float, str] | None = None  # when it redirects for good, and to which page
    period: int = 10**9  # after how many changes it shows again what it showed at first

    def key(self, at: float) -> str:
        """Return which content is to be seen at an hour, or nothing if none is."""
        return "" if self._hidden(at) else f"{self.thing} {self._state(at)}"

    def serve(self, at: float, draw: random.Random) -> tuple[int, str]:
        """Return the status and the HTML of an answer, or the target of a redirect."""
        if self.moves and at >= self.moves[0]:
            return 301, self.moves[1]
        state, hidden, title = self._state(at), self._hidden(at), self.title
        if hidden:
            body = hidden.text.format(number=f"{draw.getrandbits(48):012x}", title=title)
            title = title if "{title}" in hidden.text else "One moment"
        else:
            body = self.frame(self.main(state, at, draw), at, draw)
            title += f" {state}" * (self.kind == "title")
        head = f"<title>{title}</title>{self.head}"
        return hidden.status if hidden else 200, f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"

    def _state(self, at: float) -> int:
        return bisect_right(self.changes, at) % self.period

    def _hidden(self, at: float) -> Hidden | None:
        return next((each for each in self.hidden if each.since <= at < each.until), None)


@dataclass(frozen=True)
class Words:
    """Real words and chances, of which pages are made."""

    prose: Prose
    draw: random.Random

    def some(self, count: int) -> str:
        """Return this number of words."""
        return escape(" ".join(self.prose.words(count)), quote=False)

    def paragraphs(self, count: int) -> str:
        """Return paragraphs of at least this number of words."""
        found = (escape(" ".join(words), quote=False) for words in self.prose.paragraphs(count))
        return "".join(f"<p>{text}</p>" for text in found)

    def article(self, *, newest_first: bool = False) -> Shown:
        """Return an article, to which each state adds a paragraph, or puts a correction in place of the one before."""
        heading, text, added = self.some(6), self.paragraphs(self.draw.randrange(150, 500)), self._rows(60, 30)

        def main(state: int, _: float, __: random.Random) -> str:
            rows = added[:state][::-1] if newest_first else added[max(state - 1, 0) : state]
            news = "".join(f"<p>{each}</p>" for each in rows)
            return f"<main><article><h1>{heading}</h1>{news}{text}</article></main>"

        return main

    def with_part(self, part: str, count: int = 160) -> Shown:
        """Return a text with a part of which each state fills the braces anew."""
        heading, text, said = self.some(6), self.paragraphs(count), self._rows(60, 12)
        price, number = self.draw.randrange(20, 900), self.draw.randrange(10**4)

        def main(state: int, at: float, draw: random.Random) -> str:
            own = part.format(
                words=said[state % 60],
                state=f"{number}-{state}",
                price=price + 7 * state,
                stock=("In stock", "Sold out")[state % 2],
                token=f"{draw.getrandbits(64):016x}",
                day=int(at // 24),
            )
            return f"<main><h1>{heading}</h1>{text}{own}</main>"

        return main

    def grown(self, words: int) -> Shown:
        """Return posts, of which each state adds one."""
        heading, text, rows = self.some(6), self.paragraphs(60), self._rows(70, words)

        def main(state: int, _: float, __: random.Random) -> str:
            posts = "".join(f"<div><p>{row}</p></div>" for row in rows[: 3 + state])
            return f"<main><h1>{heading}</h1>{text}{posts}</main>"

        return main

    def numbers(self, line: str, lines: int) -> Shown:
        """Return lines whose numbers are all others in each state."""
        heading, place = self.some(3), self.draw.randrange(10**6)

        def main(state: int, _: float, __: random.Random) -> str:
            draw = random.Random(f"numbers {place} {state}")
            rows = (line.format(*(draw.randrange(10, 999) for _ in range(line.count("{}")))) for _ in range(lines))
            return f"<main><h1>Station {heading}</h1>{''.join(f'<p>{row}</p>' for row in rows)}</main>"

        return main

    def table(self) -> Shown:
        """Return a table, to which each state adds a row."""
        heading, draw = self.some(3), self.draw
        rows = [f"<tr><td>Round {n + 1}</td><td>{draw.randrange(6)} : {draw.randrange(6)}</td></tr>" for n in range(40)]
        return lambda state, _, __: f"<main><h1>Team {heading}</h1><table>{''.join(rows[: 4 + state])}</table></main>"

    def items(self, row: str, count: int) -> Shown:
        """Return a list that begins one item later with each state."""
        heading, rows = self.some(3), [row.format(n, text) for n, text in enumerate(self._rows(200, 9))]
        return lambda state, _, __: f"<main><h1>{heading}</h1>{''.join(rows[state : state + count])}</main>"

    def _rows(self, count: int, words: int) -> list[str]:
        return [self.some(words) for _ in range(count)]


@dataclass(frozen=True)
class Frame:
    """What stands around the main parts of the pages of a host. Of it only the banner is content."""

    host: str
    headlines: list[str]
    banner: tuple[float, str] = (math.inf, "")  # from when on all pages show which text
    noise: frozenset[str] = frozenset()  # which of the changing parts are shown

    def around(self, main: str, at: float, draw: random.Random) -> str:
        """Return a body with this main part at an hour."""
        menu = "".join(f"<li><a href='/s{n}'>{each[:16]}</a></li>" for n, each in enumerate(self.headlines[:24]))
        warning = f"<div class=banner><p>{self.banner[1]}</p></div>" if at >= self.banner[0] else ""
        shown = {name: text for name, text in self._changing(at, draw).items() if name in self.noise}
        return (
            f"{warning}<nav><ul>{menu}</ul></nav>{shown.get('day', '')}{shown.get('ticker', '')}{main}<aside>"
            f"<p>Most read</p>{shown.get('teasers', '')}{shown.get('advertised', '')}</aside>"
            f"<footer>{shown.get('counted', '')}<p>Imprint and terms of {self.host}</p></footer>"
        )

    def _changing(self, at: float, draw: random.Random) -> dict[str, str]:
        picked = random.Random(f"teasers {self.host} {at // 3}").sample(range(len(self.headlines)), 5)
        ticker = random.Random(f"ticker {self.host} {at // 2}").choice(self.headlines)
        return {
            "teasers": "".join(f"<div><a href='/n{n}'>{self.headlines[n]}</a></div>" for n in picked),
            "ticker": f"<div class=ticker><p>Latest: {ticker}</p></div>",
            "advertised": f"<div class=ad>{draw.choice(self.headlines)} Order now</div>",
            "counted": f"<p>Read {draw.randrange(10**5)} times, {draw.randrange(90)} readers now</p>",
            "day": f"<p>Day {int(at // 24)}, {int(at % 24):02}:{int(at * 60 % 60):02}</p>",
        }
