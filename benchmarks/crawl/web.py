"""Make web sites of real text. The frame of a page changes with each fetch, its article may change or stay."""

import random
from dataclasses import dataclass

from benchmarks.stream.prose import Prose, joined

_PAGES_OF_A_SITE = 50
_ARTICLE_WORDS = (250, 900)
_COPIES, _LIVELY = 0.1, 0.2
_MENU_LINKS, _TEASERS, _SHOWN = 120, 60, 12
FOOTER_WORDS = 120
_CREDIT = ["This", "article", "appeared", "elsewhere", "first"]
_SURPRISED = 0.05
_STOCK = ("In stock", "Sold out")
_SHOPS = 3  # of this number of sites one shows prices
_UNMARKED = 10  # of this number of sites one marks its frame in no way

Paragraphs = list[list[str]]


@dataclass
class Page:
    """A page."""

    url: str  # its address
    site: int  # number of the site, whose frame it has
    title: str  # its heading
    article: Paragraphs  # what is to be read
    original: str  # the page that had the article first, which is the page itself unless it is a copy
    is_lively: bool  # the article is another one at each visit
    price: int = 0  # shown on pages of shops
    is_sold: bool = False  # whether the page of a shop says that nothing is left


@dataclass(frozen=True)
class _Frame:
    menu: list[str]
    teasers: list[str]
    footer: str


class Web:
    """Sites with their pages.

    Attributes:
        pages: All pages, an original before its copies.
    """

    def __init__(self, prose: Prose, count: int, seed: int, footer_words: int = FOOTER_WORDS) -> None:
        """Make this number of pages. One seed gives the same pages each time."""
        self._prose = prose
        self._footer_words = footer_words
        self._draw = random.Random(f"web {seed}")
        sites = max(count // _PAGES_OF_A_SITE, 2)
        self._frames = [self._frame() for _ in range(sites)]
        self.pages: list[Page] = []
        for number in range(count):
            self.pages.append(self._page(number, number % sites))

    def change(self) -> None:
        """Replace a paragraph of each lively page. In shops half of these are sold or come back."""
        for page in self.pages:
            if page.is_lively:
                page.article[self._draw.randrange(len(page.article))] = self._prose.paragraph()
                page.is_sold ^= self._draw.random() < 0.5

    def surprise(self) -> list[Page]:
        """Change a little of some originals that have never changed before, and return these pages."""
        steady = [page for page in self.pages if not page.is_lively and page.original == page.url]
        surprised = self._draw.sample(steady, max(round(len(steady) * _SURPRISED), 1))
        for number, page in enumerate(surprised):
            self._surprise(page, number)
        return surprised

    def _surprise(self, page: Page, number: int) -> None:
        """Change a price, what is sold, a word, the order of two paragraphs, or add a sentence."""
        place = self._draw.randrange(len(page.article))
        words = list(page.article[place])
        kind = number % 5
        if kind < 2 and page.site % _SHOPS:
            kind += 2
        if kind == 0:
            page.price += 1
        elif kind == 1:
            page.is_sold = not page.is_sold
        elif kind == 2:
            words[self._draw.randrange(len(words))] = "otherwise"
            page.article[place] = words
        elif kind == 3:
            page.article.append(page.article.pop(0))
        else:
            page.article[place] = words + self._prose.words(12)

    def html(self, page: Page) -> str:
        """Return a page as it is served now. Its date and teasers are others each time."""
        frame, draw = self._frames[page.site], self._draw
        menu = "".join(f"<li><a href='/{number}'>{name}</a></li>" for number, name in enumerate(frame.menu))
        shown = draw.sample(frame.teasers, _SHOWN)
        teasers = "".join(f"<div><a href='/{draw.randrange(9_999)}'>{text}</a></div>" for text in shown)
        date = f"Read {draw.randrange(10**6)} times until {draw.randrange(24):02}:{draw.randrange(60):02} today"
        article = "".join(f"<p>{' '.join(words)}</p>" for words in page.article)
        if page.site % _SHOPS == 0:
            article += f"<p>Price: {page.price} EUR</p><p>{_STOCK[page.is_sold]}</p>"
        title = page.title
        nav, aside, footer = _tags(page.site)
        return (
            f"<!doctype html><html><head><title>{title}</title></head><body><{nav}><ul>{menu}</ul></{nav.split()[0]}>"
            f"<main><article><h1>{title}</h1>{article}</article></main>"
            f"<{aside}><p>{date}</p>{teasers}</{aside.split()[0]}>"
            f"<{footer}><ul>{menu}</ul><p>{frame.footer}</p></{footer.split()[0]}></body></html>"
        )

    def _frame(self) -> _Frame:
        prose = self._prose
        return _Frame(
            [" ".join(prose.words(3)) for _ in range(_MENU_LINKS)],
            [" ".join(prose.words(18)) for _ in range(_TEASERS)],
            joined([prose.words(self._footer_words)]),
        )

    def _page(self, number: int, site: int) -> Page:
        draw = self._draw
        url = f"https://site-{site}.example/articles/{number}.html"
        copied = draw.choice(self.pages) if self.pages and draw.random() < _COPIES else None
        if copied is not None and not copied.is_lively and copied.site != site:
            return Page(url, site, copied.title, [*copied.article, _CREDIT], copied.original, False)
        article = self._prose.paragraphs(draw.randint(*_ARTICLE_WORDS))
        is_lively = draw.random() < _LIVELY
        return Page(url, site, " ".join(article[0][:6]), article, url, is_lively, draw.randrange(5, 900))


def is_marked(site: int) -> bool:
    """Return whether a site marks its frame by elements or by names of classes."""
    return site % _UNMARKED != 0


def _tags(site: int) -> tuple[str, str, str]:
    """Return the start tags of navigation, sidebar and footer."""
    if not is_marked(site):
        return "div class=a1", "div class=b2", "div class=c3"
    return ("nav", "aside", "footer") if site % 2 else ("div class=menu", "div class=sidebar", "div id=footer")
