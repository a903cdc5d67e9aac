"""A web site of 300 pages for crawlers: articles in frames, mirrors, session ids, changes, traps."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.support.answering import answering

ARTICLES, MIRRORS, SYNDICATED, DAYS, NOTES = 200, 60, 20, 18, 12
SESSIONS = 30
CHANGED = frozenset(range(SESSIONS + 5, ARTICLES, 20))
PAGES = 2 + ARTICLES + MIRRORS + SYNDICATED + DAYS + 2 * NOTES
_FRAME = "".join(
    f"<li><a href='/a/{number}'>Topic {number} of our site, with much more to read</a></li>" for number in range(90)
)


def words(seed: str, count: int) -> str:
    """Return made-up prose that shares no passage with that of another seed."""
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("bcdfglmnprst", k=2)) + draw.choice("aeiou") for _ in range(count))


def article(number: int, visit: int) -> str:
    text = words(f"article {number}", 300)
    return f"{text} {words(f'change {number}', 60)}" if visit and number in CHANGED else text


def html(title: str, text: str) -> bytes:
    return (
        f"<!doctype html><html><head><meta charset='utf-8'><title>{title}</title></head><body>"
        f"<nav><ul>{_FRAME}</ul></nav><main><article><h1>{title}</h1><p>{text}</p></article></main>"
        f"<footer>{_FRAME}</footer></body></html>"
    ).encode()


def note(number: int) -> bytes:
    """Return a page with an article of 60 words and a frame of 600, which nothing marks as such."""
    frame = "".join(f"<div>{words(f'frame {line}', 25)}</div>" for line in range(24))
    return f"<html><body><div>{words(f'note {number}', 60)}</div>{frame}</body></html>".encode()


def page(path: str, visit: int, elsewhere: str) -> bytes:
    """Return the page at a path, at the first (0) or second (1) visit. Syndicated pages are elsewhere."""
    kind, _, rest = path.partition("?")[0].strip("/").partition("/")
    if kind == "":
        links = "".join(f"<a href='{link}'>{link}</a> " for link in _links(elsewhere))
        return f"<html><head><title>Start</title></head><body><nav>{links}</nav></body></html>".encode()
    number = int(rest or 0)
    if kind == "a":
        return html(f"Article {number}", article(number, visit))
    if kind == "mirror":
        return html(f"Article {number}", article(number, 0))
    if kind == "syndicated":
        return f"<html><body><div class='post'><p>{article(100 + number, 0)} {words('agency', 9)}</div>".encode()
    if kind == "note":
        return note(number)
    if kind == "calendar":
        day = words(f"day {number}", 30)
        return f"<html><body><a href='/calendar/{number + 1}'>next</a><p>{day}</body></html>".encode()
    return b"<html><body>" + b"<div>" * 5_000 + words("bomb", 100).encode()


def _links(elsewhere: str) -> Iterator[str]:
    yield from (f"/a/{number}" for number in range(ARTICLES))
    yield from (f"/a/{number}?PHPSESSID={number}f&utm_source=start" for number in range(SESSIONS))
    yield from (f"/mirror/{number}" for number in range(MIRRORS))
    yield from (f"{elsewhere}/syndicated/{number}" for number in range(SYNDICATED))
    yield from (f"/note/{number}" for number in range(NOTES))
    yield from (f"/note/{number}?visitor=7" for number in range(NOTES))
    yield from ("/calendar/0", "/bomb")


@dataclass
class Site:
    """The site, with the number of requests for each path."""

    address: str  # of all pages but the syndicated ones
    elsewhere: str  # of these, on another host
    visit: int = 0  # 0 before the changes, 1 after them
    requests: Counter[str] = field(default_factory=Counter)  # by path with query

    def url(self, path: str) -> str:
        return (self.elsewhere if path.startswith("/syndicated") else self.address) + path


@contextmanager
def served() -> Iterator[Site]:
    """Serve the site on loopback."""

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
        site.requests[request.path] += 1
        try:
            return 200, page(request.path, site.visit, site.elsewhere)
        except ValueError:
            return 404, b""

    with answering(answer, "text/html; charset=iso-8859-1") as port:
        site = Site(f"http://127.0.0.1:{port}", f"http://localhost:{port}")
        yield site
