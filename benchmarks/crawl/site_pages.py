"""The pages of a small site, what each shows at a time, and which of them is canonical."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.stream.prose import Prose, sources

_HOST, _MIRROR = "https://a.example", "https://mirror.example"
_ARTICLES, _PRINTED, _MIRRORED, _MONTHS, _MISSING, _LISTED, _VARIANTS = 24, 12, 8, 8, 6, 4, 5
_OUTAGE = timedelta(minutes=10)
_LOGIN = "Please log in to read this page. Enter your name and your password, or register for free."
# What sites show in place of a page. In braces what is different for each page or each request.
WALLS = {
    "maintenance": "We are working on our servers and will be back shortly. Please try again in a few minutes, or call "
    "the office if your order cannot wait.",
    "login": _LOGIN,
    "login that names the page": _LOGIN + "\nYou will be sent back to {url} when you are done.",
    "cookies": "We and our 812 partners use cookies to make this site better and to show you advertisements. "
    "Accept all, or choose which of them you allow. You may change your mind at any time.",
    "captcha": "Checking your browser before you go on. This takes five seconds. If it takes longer, write to us and "
    "name the number of your request: {request}",
    "rate limit": "You have sent {count} requests within a minute from your address. Please wait and try again later.",
    "two words": "Access denied",
    "a number": "Error 1020 Ray ID: {request}",
    "start page": "All the news of the day, from the town and from the county, every morning at six. Read about "
    "weather, traffic, markets and schools.",
}
_NOT_FOUND = "Sorry, the page that you are looking for does not exist. Use the search, or go back to the start."
_COLOURS = ("red", "blue", "green", "grey", "black")


@dataclass(frozen=True)
class SitePage:
    """A page."""

    url: str  # its address
    article: str  # number of the article or text that it shows
    changes: tuple[timedelta, ...] = ()  # when its content changes
    declares: str = ""  # the URL that it declares as canonical, or nothing
    is_frozen: bool = False  # it shows the first state of its article for ever


@dataclass(frozen=True)
class Site:
    """The site."""

    pages: tuple[SitePage, ...]  # all pages
    texts: dict[str, tuple[str, ...]]  # by article its states in order
    outage: timedelta  # when the site begins to show another text in place of its pages
    wall: str = "maintenance"  # name of that text

    @property
    def outage_end(self) -> timedelta:
        """When the site shows its pages again."""
        return self.outage + _OUTAGE

    def is_out(self, page: SitePage, at: timedelta) -> bool:
        """Return whether a page shows the other text."""
        return page.url.startswith(_HOST) and self.outage <= at < self.outage_end

    def content(self, page: SitePage, at: timedelta) -> str:
        """Return the text of a page at a time, the outage left aside."""
        states = self.texts[page.article]
        return states[0 if page.is_frozen else sum(change <= at for change in page.changes) % len(states)]

    def canonical(self, page: SitePage, times: Mapping[str, timedelta]) -> str:
        """Return the URL of the page to be read for the content of a page: the first in the list with it.

        Args:
            page: The page.
            times: By URL when each page is looked at.
        """
        content = self.content(page, times[page.url])
        return next(each.url for each in self.pages if self.content(each, times[each.url]) == content)

    def html(self, page: SitePage, at: timedelta) -> str:
        """Return a page as it is served at a time."""
        is_out = self.is_out(page, at)
        text = _wall(self.wall, page, at) if is_out else self.content(page, at)
        body = "".join(f"<p>{part}</p>" for part in text.split("\n"))
        link = f'<link rel="canonical" href="{page.declares}">' if page.declares and not is_out else ""
        return (
            f"<!doctype html><html><head><!-- <link rel=canonical href=/template> -->{link}</head><body>"
            f"<nav><a href=/>Start</a> <a href=/news>News</a></nav><main><article>{body}</article></main></body></html>"
        )


def _wall(name: str, page: SitePage, at: timedelta) -> str:
    draw = random.Random(f"{page.url} {at}")
    return WALLS[name].format(url=page.url, request=f"{draw.getrandbits(64):016x}", count=draw.randint(100, 900))


def site_of_80_pages(seed: int, wall: str = "maintenance") -> Site:
    """Return the site, which shows a wall for a while. Of pages with one content the canonical one comes first."""
    prose, draw = Prose(sources(None), seed), random.Random(f"site {seed}")
    texts: dict[str, tuple[str, ...]] = {}
    changes = {number: _changes(draw) if number % 3 == 0 else () for number in range(_ARTICLES)}
    for number in range(_ARTICLES):
        first = "\n".join(" ".join(words) for words in prose.paragraphs(180))
        added = " ".join(prose.paragraph()[:40])
        texts[f"article {number}"] = tuple(f"{first}\n{added} {state}" if state else first for state in range(4))
    for number in range(_LISTED):
        texts[f"list {number}"] = ("\n".join(" ".join(words) for words in prose.paragraphs(150)),)
    product = " ".join(prose.paragraph()[:90])
    texts |= {f"variant {colour}": (f"{product}\nThe colour of this one is {colour}.",) for colour in _COLOURS}
    months = range(_MONTHS)
    texts |= {f"month {month}": (f"Events in month {month} of 2031\nThere are no events.",) for month in months}
    texts["missing"] = (_NOT_FOUND,)
    return Site(tuple(_pages(draw, changes)), texts, timedelta(hours=24, minutes=3), wall)


def _changes(draw: random.Random) -> tuple[timedelta, ...]:
    hours = sorted(draw.uniform(25, 160) for _ in range(draw.randint(1, 3)))
    return tuple(timedelta(hours=hour) for hour in hours)


def _pages(draw: random.Random, changes: dict[int, tuple[timedelta, ...]]) -> Iterator[SitePage]:
    for number in range(_ARTICLES):
        yield SitePage(f"{_HOST}/articles/{number}", f"article {number}", changes[number])
    for number in range(_PRINTED):
        declares = f"{_HOST}/articles/{number}" if number % 2 else ""
        yield SitePage(f"{_HOST}/print/{number}", f"article {number}", changes[number], declares)
    for number in range(_PRINTED, _ARTICLES):
        visit = "".join(draw.choices("0123456789abcdef", k=26))
        yield SitePage(f"{_HOST}/articles/{number}?visit={visit}", f"article {number}", changes[number])
    for number in range(_MIRRORED):
        yield SitePage(f"{_MIRROR}/a.example/articles/{number}", f"article {number}", changes[number], is_frozen=True)
    yield from _others()


def _others() -> Iterator[SitePage]:
    yield from (SitePage(f"{_HOST}/calendar/2031/{month}", f"month {month}") for month in range(_MONTHS))
    yield SitePage(f"{_HOST}/news", "list 0")
    for number in range(_LISTED):
        yield SitePage(f"{_HOST}/news?page={number + 1}", f"list {number}", declares=f"{_HOST}/news")
    for colour in _COLOURS:
        yield SitePage(f"{_HOST}/product?colour={colour}", f"variant {colour}", declares=f"{_HOST}/product")
    yield from (SitePage(f"{_HOST}/missing{number or ''}", "missing") for number in range(_MISSING))
