"""A made-up part of the web: hosts whose folders hold pages of many kinds."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.crawl.pages import Frame, Hidden, Page, Shown, Words
from benchmarks.stream.prose import Prose, sources

_END = 168.0  # no change comes later
_EVER = 1e9
_NEWS, _SHOP, _TOWN, _DOCS = "www.news.example", "www.shop.example", "town.example", "docs.example"
_RECALL = (61.0, "Recall: do not use this product, it may catch fire. Bring it back to where you bought it.")
_MAINTENANCE = (
    "<main><h1>Back soon</h1><p>We are working on our servers and will be back shortly. Please try again in a few "
    "minutes, or call the office if your order cannot wait.</p></main>"
)
_CAPTCHA = (
    "<main><p>Checking your browser before you go on. This takes five seconds. If it takes longer, write to us and "
    "name the number of your request: {number}</p></main>"
)
_COOKIES = (
    "<main><h1>{title}</h1><p>We and our 812 partners use cookies to make this site better and to show you "
    "advertisements. Accept all, or choose which of them you allow. You may change your mind at any time.</p></main>"
)
_MISSING = "<main><h1>Not found</h1><p>Sorry, this page does not exist. Incident {number}. Use the search.</p></main>"
_MONTH = "<main><h1>Calendar</h1><table>{0}</table><a href='?month={1}'>next</a></main>"
_HIDDEN = {"docs": Hidden(30, 37, 200, _MAINTENANCE), "cookies": Hidden(40, 46, 200, _COOKIES)}

Changes = Callable[[], Sequence[float]]


class Web:
    """The pages by their addresses. One seed makes the same pages each time."""

    def __init__(self, seed: int) -> None:
        """Make all pages."""
        self.pages: dict[str, Page] = {}
        self.draw = random.Random(f"web {seed}")
        self.words = Words(Prose(sources(None), seed), self.draw)
        self._headlines = [self.words.some(7) for _ in range(300)]
        for host in (self._news, self._shop, self._town, self._forum, self._docs, self._guarded):
            host()

    def _add(self, host: str, path: str, kind: str, changes: Sequence[float], main: Shown) -> Page:
        url = f"https://{host}/{path}"
        frame = Frame(host, random.Random(host).sample(self._headlines, 60), noise=frozenset(kind.split(", ")))
        frame = replace(frame, banner=_RECALL) if kind == "recall" else frame
        page = Page(url, kind, url, tuple(changes), self.words.some(5), main, frame.around)
        page = replace(page, period=2) if kind == "stock" else page
        self.pages[url] = page
        return page

    def _hide(self, page: Page, *hidden: Hidden) -> None:
        self.pages[page.url] = replace(page, hidden=hidden)

    # When contents change: by chance, once by chance, or regularly.

    def _often(self, hours: float, since: float = 0.0, until: float = _END) -> list[float]:
        found, now = [], since
        while (now := now + self.draw.expovariate(1 / hours)) < until:
            found.append(now)
        return found

    def _once(self, since: float, until: float) -> list[float]:
        return [self.draw.uniform(since, until)]

    def _each(self, hours: float) -> list[float]:
        start = self.draw.uniform(0, hours)
        return [start + hours * number for number in range(int(_END / hours))]

    def _one_day(self) -> list[float]:
        since = self.draw.uniform(0, 80)
        return self._often(2.5, since, since + 20)

    # The hosts.

    def _news(self) -> None:
        words, often = self.words, self._often
        rows: list[tuple[str, int, Changes, Callable[[], Shown]]] = [
            ("article", 16, tuple, words.article),
            ("corrected", 8, partial(self._once, 4, 130), words.article),
            ("after a rest", 8, partial(self._once, 90, 135), words.article),
            ("live blog", 5, self._one_day, partial(words.article, newest_first=True)),
            ("updated", 6, partial(often, 30), words.article),
            ("caption", 4, partial(often, 50), partial(words.with_part, _CAPTION)),
            ("correction", 4, partial(often, 50), partial(words.with_part, "<footer><p>{words}</p></footer>")),
            ("image", 4, partial(often, 50), partial(words.with_part, "<img src='/i/{state}.jpg' alt=''>")),
            ("link", 4, partial(often, 50), partial(words.with_part, "<p><a href='/f/{state}.pdf'>Report</a></p>")),
            ("title", 4, partial(often, 50), partial(words.with_part, "")),
            ("advertised", 5, tuple, words.article),
            ("counted", 5, tuple, words.article),
            ("day", 5, tuple, words.article),
            ("comments", 6, partial(often, 12), partial(words.grown, 14)),
            ("section", 4, partial(self._each, 4), partial(words.items, "<div><h2>{1}</h2></div>", 12)),
        ]
        made = []
        for kind, count, changes, main in rows:
            for number in range(count):
                path = f"2026/{number % 5}/{kind.replace(' ', '-')}-{number}-headline-of-a-story"
                made.append(self._add(_NEWS, path, kind, changes(), main()))
        self._copies([page for page in made if page.kind in ("article", "corrected", "updated")])
        for number in range(18):
            kind = ("teasers", "teasers, ticker", "teasers, updated")[number % 3]
            times = often(40) if number % 3 == 2 else ()
            self._add("blog.example", f"b/{number}", kind, times, words.article())

    def _copies(self, articles: Sequence[Page]) -> None:
        """Add print, session, AMP and mobile pages of articles, mirrors, and pages of scrapers."""
        for number, page in enumerate(self.draw.sample(articles, 18)):
            path = page.url.partition(".example/")[2]
            bare = replace(page, frame=_bare)
            declares = replace(bare, head=f"<link rel=canonical href='{page.url}'>")
            if number < 6:
                self._copy(declares, "print", f"https://{_NEWS}/print/{path}")
                self._copy(page, "session", f"{page.url}?sid={self.draw.getrandbits(48):012x}")
            elif number < 11:
                self._copy(declares, "AMP", f"https://{_NEWS}/amp/{path}")
                self._copy(bare, "mobile", f"https://m.news.example/{path}")
            elif number < 15:
                self._copy(bare, "mirror", f"https://mirror{number % 2}.example/news/{path}")
                self._copy(bare, "scraper", f"https://spam.example/{number}")
            else:
                thief = f"https://thief.example/{number}"
                self._copy(replace(bare, head=f"<link rel=canonical href='{thief}'>"), "own canonical", thief)

    def _copy(self, page: Page, kind: str, url: str) -> None:
        self.pages[url] = replace(page, kind=kind, url=url)

    def _shop(self) -> None:
        price = "<p>Price: {price} EUR</p>"
        rows: list[tuple[str, int, Changes, str]] = [
            ("product", 6, tuple, ""),
            ("price", 6, partial(self._often, 9), price),
            ("rare price", 8, partial(self._often, 80), price),
            ("sale", 8, lambda: [24.0], price),
            ("stock", 6, partial(self._often, 24), "<p>{stock}</p>"),
            ("aside price", 4, partial(self._often, 30), "</main><aside><p>Now {price} EUR</p></aside><main>"),
            ("button", 4, partial(self._often, 30), "<button>Buy for {price}.90</button>"),
        ]
        for kind, count, changes, part in rows:
            for number in range(count):
                path = f"p/{len(self.pages) * 37 % 1009}-{number}"
                self._add(_SHOP, path, kind, changes(), self.words.with_part(part, self.draw.randrange(30, 140)))
        for number in range(10):
            main = self.words.with_part("", self.draw.randrange(30, 140))
            self._add("recall.shop.example", f"p/{number}", "recall", [_RECALL[0]], main)

    def _town(self) -> None:
        words, often, each = self.words, self._often, self._each
        rows: list[tuple[str, int, Changes, Callable[[], Shown]]] = [
            ("notice", 10, tuple, partial(words.with_part, "")),
            ("weather", 6, partial(each, 1), partial(words.numbers, "Wind {} km/h, {} degrees, {} hPa", 5)),
            ("departures", 4, partial(each, 1.5), partial(words.numbers, "{}:{} to the harbour, track {}", 6)),
            ("water level", 5, partial(each, 6), partial(words.numbers, "Level {} cm, flow {} m3/s", 2)),
            ("cases", 4, partial(each, 24), partial(words.numbers, "{} cases, {} in hospital", 3)),
            ("results", 6, partial(each, 40), words.table),
            ("status", 5, partial(often, 45), partial(words.with_part, "<div class=banner><p>{words}</p></div>", 50)),
            ("link list", 4, partial(often, 60), partial(words.items, "<li><a href='/x/{0}'>{1}</a></li>", 20)),
        ]
        for kind, count, changes, main in rows:
            for number in range(count):
                page = self._add(_TOWN, f"info/{kind.replace(' ', '-')}-{number}", kind, changes(), main())
                if number % 2:
                    self._hide(page, _HIDDEN["cookies"])
        days = "".join(f"<td>{day}</td>" for day in range(1, 29))
        for number in range(8):
            month = _MONTH.format(days, number + 1)
            self._add(_TOWN, f"calendar?month={number}", "calendar", (), partial(_always, month))

    def _forum(self) -> None:
        for number in range(16):
            is_busy = number % 2
            changes = self._often(10) if is_busy else self._once(60, 135)
            kind = "thread" if is_busy else "quiet thread"
            self._add("forum.example", f"t/{number}", kind, changes, self.words.grown(16))
        for number in range(5):
            page = self._add("forum.example", f"t/{900 + number}", "soft 404", (), partial(_always, ""))
            self._hide(page, Hidden(0, _EVER, 200, _MISSING))

    def _docs(self) -> None:
        often, words, down = self._often, self.words, _HIDDEN["docs"]
        rows: list[tuple[str, int, Changes, str]] = [
            ("page", 10, tuple, ""),
            ("page after a rest", 8, partial(self._once, 70, 135), "<p>{words}</p>"),
            ("token", 5, partial(often, 60), "<p>{words}</p><p>Build {token} of this page</p>"),
            ("dated", 5, partial(often, 60), "<p>{words}</p></main><p>Made on day {day}</p><main>"),
        ]
        for kind, count, changes, part in rows:
            for number in range(count):
                page = self._add(_DOCS, f"d/{kind.replace(' ', '-')}-{number}", kind, changes(), words.with_part(part))
                self._hide(page, down)
        for number in range(4):
            away, gone, move = (self.draw.uniform(since, 70) for since in (10, 20, 40))
            self._hide(self._add(_DOCS, f"d/b{number}", "back", [away + 20], words.article()), Hidden(away, away + 20))
            self._hide(self._add(_DOCS, f"d/g{number}", "gone", (), words.article()), Hidden(gone, _EVER))
            page = self._add(_DOCS, f"new/{number}", "new place", often(50), words.with_part("<p>{words}</p>"))
            self._copy(replace(page, moves=(move, page.url)), "moved", f"https://{_DOCS}/old/{number}")

    def _guarded(self) -> None:
        for number in range(6):
            page = self._add("guarded.example", f"a/{number}", "captcha", self._often(70), self.words.article())
            self._hide(page, Hidden(0, 50, 200, _CAPTCHA))


_CAPTION = "<figure><img src='/i/1.jpg' alt=''><figcaption>{words}</figcaption></figure>"


def _bare(main: str, _: float, __: random.Random) -> str:
    return main


def _always(main: str, *_: object) -> str:
    return main
