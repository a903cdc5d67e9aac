"""A web site of 300 pages for crawlers: articles in frames, mirrors, session ids, changes, traps."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

ARTICLES, MIRRORS, SYNDICATED, DAYS = 200, 60, 20, 18
SESSIONS = 30
CHANGED = frozenset(range(SESSIONS + 5, ARTICLES, 20))
PAGES = 2 + ARTICLES + MIRRORS + SYNDICATED + DAYS
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


def page(path: str, visit: int) -> bytes:
    """Return the page at a path, at the first (0) or second (1) visit."""
    kind, _, rest = path.partition("?")[0].strip("/").partition("/")
    if kind == "":
        links = "".join(f"<a href='{link}'>{link}</a> " for link in _links())
        return f"<html><head><title>Start</title></head><body><nav>{links}</nav></body></html>".encode()
    number = int(rest or 0)
    if kind == "a":
        return html(f"Article {number}", article(number, visit))
    if kind == "mirror":
        return html(f"Article {number}", article(number, 0))
    if kind == "syndicated":
        return f"<html><body><div class='post'><p>{article(100 + number, 0)} {words('agency', 9)}</div>".encode()
    if kind == "calendar":
        day = words(f"day {number}", 30)
        return f"<html><body><a href='/calendar/{number + 1}'>next</a><p>{day}</body></html>".encode()
    return b"<html><body>" + b"<div>" * 5_000 + words("bomb", 100).encode()


def _links() -> Iterator[str]:
    yield from (f"/a/{number}" for number in range(ARTICLES))
    yield from (f"/a/{number}?PHPSESSID={number}f&utm_source=start" for number in range(SESSIONS))
    yield from (f"/mirror/{number}" for number in range(MIRRORS))
    yield from (f"/syndicated/{number}" for number in range(SYNDICATED))
    yield from ("/calendar/0", "/bomb")


class Site:
    """The site, with the number of requests for each path.

    Attributes:
        visit: 0 before the changes, 1 after them.
        requests: By path with query.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.visit = 0
        self.requests = Counter[str]()


@contextmanager
def served() -> Iterator[Site]:
    """Serve the site on loopback."""
    site = Site("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests[self.path] += 1
            try:
                body, status = page(self.path, site.visit), 200
            except ValueError:
                body, status = b"", 404
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=iso-8859-1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
