"""Streams of documents as they arrive in practice, the same for the same seed."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.stream.prose import Prose, joined

_CHARACTERS = 5_000  # of a unique document
_PAGE_WORDS = (250, 900)  # of the article of a page
_SITES = 40
_HEAD_WORDS, _FOOT_WORDS = 60, 120  # of a frame, which is a quarter of an average page
_SYNDICATED = 0.08  # pages whose article another site had before
_FETCHED_AGAIN = 1 / 3
_CHANGED_PAGES = 0.5  # pages that have another paragraph when they are fetched again
_CAMPAIGN, _REPLY = 0.5, 0.8  # bounds of the shares of mails: campaigns, replies, then notices
_CAMPAIGN_MAILS = 200
_THREAD_MAILS = 8
_QUOTED_LEVELS = 3
_EDITED = 300  # documents that are edited at a time
_STATES = 20  # of a document, before another one takes its place
_EDITS = 3  # most places that a state changes

Paragraphs = list[list[str]]


@dataclass(frozen=True)
class Record:
    """A document of a stream."""

    key: str  # the key of its record on Kafka
    text: str  # its text
    fields: dict[str, str] = field(default_factory=dict)  # its other fields
    content: str = "text"  # the name of the field that holds the text, which is `html` for a page

    @property
    def value(self) -> bytes:
        """The document as a producer sends it."""
        return json.dumps({**self.fields, self.content: self.text}, ensure_ascii=False).encode()


def unique(prose: Prose, count: int, seed: int) -> list[Record]:
    """Return documents of 5 KB that share nothing, except that one in ten is nearly an earlier one."""
    draw = random.Random(f"unique {seed}")
    texts: list[str] = []
    for number in range(count):
        if number % 10 == 9:
            words = draw.choice(texts).split(" ")
            words[draw.randrange(len(words))] = "changed"
            texts.append(" ".join(words))
        else:
            texts.append(joined(prose.paragraphs(_CHARACTERS // 5))[:_CHARACTERS])
    return [_named(f"d{number}", text) for number, text in enumerate(texts)]


@dataclass
class _Page:
    """A page of a site."""

    url: str  # its address
    site: int  # the site, whose frame it has
    article: Paragraphs  # its paragraphs
    views: int = 0  # how often it was fetched


def crawl(prose: Prose, count: int, seed: int) -> list[Record]:
    """Return pages of 40 sites in the order of a crawler.

    Each site has a frame of its own, which all its pages share. A third of the documents are pages that are fetched
    again: the frame then has another date, and half of them have another paragraph. Some articles appear on a second
    site, without their last paragraph.
    """
    draw = random.Random(f"crawl {seed}")
    frames = [(prose.words(_HEAD_WORDS), prose.words(_FOOT_WORDS)) for _ in range(_SITES)]
    pages: list[_Page] = []
    records = []
    for number in range(count):
        if pages and draw.random() < _FETCHED_AGAIN:
            page = draw.choice(pages)
            if draw.random() < _CHANGED_PAGES:
                page.article[draw.randrange(len(page.article))] = prose.paragraph()
        else:
            page = _new_page(prose, pages, number, draw)
            pages.append(page)
        page.views += 1
        head, foot = frames[page.site]
        dated = f"Updated on day {number // 100} of the crawl, read {page.views * 37 + page.site} times".split()
        text = joined([head, dated, *page.article, foot])
        records.append(Record(page.url, text, {"url": page.url}))
    return records


def _new_page(prose: Prose, pages: Sequence[_Page], number: int, draw: random.Random) -> _Page:
    site = draw.randrange(_SITES)
    if pages and draw.random() < _SYNDICATED:
        article = [list(words) for words in draw.choice(pages).article]
        article = article[:-1] or article
    else:
        article = prose.paragraphs(draw.randint(*_PAGE_WORDS))
    return _Page(f"https://site-{site}.example/articles/{number}.html", site, article)


def mail(prose: Prose, count: int, seed: int) -> list[Record]:
    """Return mails: half are of campaigns, 30 % replies that quote what they answer, 20 % notices from templates."""
    draw = random.Random(f"mail {seed}")
    campaigns: list[Paragraphs] = []
    threads: list[list[str]] = []  # the mails of each thread
    notices = [prose.paragraphs(50) for _ in range(20)]
    records = []
    for number in range(count):
        kind = draw.random()
        if kind < _CAMPAIGN:
            text = _campaign_mail(prose, campaigns, draw)
        elif kind < _REPLY:
            text = _reply(prose, threads, draw)
        else:
            text = joined([["Dear", *prose.words(1)], _personal(draw), *draw.choice(notices)])
        records.append(_named(f"mail-{number}@example.org", text))
    return records


def _campaign_mail(prose: Prose, campaigns: list[Paragraphs], draw: random.Random) -> str:
    """Return a mail of one of the last campaigns, with words of its own at the top, in the middle and at the end."""
    if not campaigns or draw.random() < 1 / _CAMPAIGN_MAILS:
        campaigns.append(prose.paragraphs(draw.randint(150, 500)))
    body = draw.choice(campaigns[-3:])
    middle = len(body) // 2
    return joined([["Dear", *prose.words(2)], *body[:middle], _personal(draw), *body[middle:], _personal(draw)])


def _personal(draw: random.Random) -> list[str]:
    return f"Your number is {draw.randrange(10**8):08}, see https://mail.example/{draw.randrange(10**9):09}".split()


def _reply(prose: Prose, threads: list[list[str]], draw: random.Random) -> str:
    """Return the first mail of a thread, or one that quotes a mail of it."""
    own = joined(prose.paragraphs(draw.randint(30, 150)))
    if not threads or draw.random() < 1 / _THREAD_MAILS:
        threads.append([own])
        return own
    thread = draw.choice(threads[-50:])
    quoted = [f"> {line}" for line in draw.choice(thread[-2:]).splitlines()]
    deepest = "> " * (_QUOTED_LEVELS + 1)
    text = "\n".join([own, "", "On that day they wrote:", *(line for line in quoted if not line.startswith(deepest))])
    thread.append(text)
    return text


def revisions(prose: Prose, count: int, seed: int) -> list[Record]:
    """Return the states of documents, in order, those of 300 documents mixed.

    In up to three places of a state, words or a paragraph are replaced, added or removed for the next one. Each has an
    id of its own, so nothing tells that two are of the same document. After 20 states of a document another one takes
    its place. The first 300 documents are of any age, and have fewer states.
    """
    draw = random.Random(f"revisions {seed}")

    def new_file() -> Paragraphs:
        return prose.paragraphs(draw.randint(500, 1_200))

    files = [new_file() for _ in range(_EDITED)]
    states = [draw.randrange(_STATES) for _ in range(_EDITED)]
    records = []
    for number in range(count):
        at = draw.randrange(_EDITED)
        records.append(_named(f"file-{at}-{states[at] // _STATES}/state-{number}", joined(files[at])))
        states[at] += 1
        if states[at] % _STATES == 0:
            files[at] = new_file()
        for _ in range(draw.randint(1, _EDITS)):
            _edit(files[at], prose, draw)
    return records


def _edit(paragraphs: Paragraphs, prose: Prose, draw: random.Random) -> None:
    place, edit = draw.randrange(len(paragraphs)), draw.random()
    if edit < 0.6:
        words = paragraphs[place]
        start = draw.randrange(len(words))
        paragraphs[place] = [*words[:start], *prose.words(draw.randint(3, 15)), *words[start + 8 :]]
    elif edit < 0.85:
        paragraphs.insert(place, prose.paragraph())
    elif len(paragraphs) > 1:
        del paragraphs[place]


def _named(name: str, text: str) -> Record:
    return Record(name, text, {"id": name})


STREAMS: dict[str, Callable[[Prose, int, int], list[Record]]] = {
    "unique": unique,
    "crawl": crawl,
    "mail": mail,
    "revisions": revisions,
}
