"""Read a log of fetches: JSON Lines, or WARC files in order."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.workers.crawl.warc import PERMANENT, Redirects
from nearstream.workers.files.source import Item, Refused
from nearstream.workers.operations.backtest.grading import Fetch, text_digest
from nearstream.workers.operations.backtest.playing import page_record

_HOURS_MAX = 1_000_000
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)  # when a log begins whose times are hours
_URL_CHARACTERS = 2_048
_FOUND = 200


class Line(msgspec.Struct, frozen=True):
    """A fetch in a log: when which URL was fetched, and what the server answered."""

    t: float | datetime  # hours since the log began, or a time with zone
    url: str
    html: str | None = None
    body: bytes | None = None  # in place of `html`, in base64
    status: int = _FOUND
    location: str = ""  # where a redirect leads
    content: str = ""  # What is to be seen, by who knows it. Empty: all words of the page.


def read_log(items: Iterable[Item | Refused]) -> Iterator[Fetch | Refused]:
    """Yield the fetches of a log, those of each page in the order of time."""
    redirects, latest = Redirects(), dict[str, int]()
    for item in items:
        try:
            fetch = item if isinstance(item, Refused) else _fetch(item.record, redirects)
        except ValueError as error:  # of msgspec too
            fetch = Refused(item.source, str(error))
        if isinstance(fetch, Fetch) and fetch.at_ms < latest.get(fetch.url, 0):
            fetch = Refused(item.source, "earlier than the fetch of its URL before it: sort the log by time")
        elif isinstance(fetch, Fetch):
            latest[fetch.url] = fetch.at_ms
        yield fetch


def _fetch(record: ConsumerRecord, redirects: Redirects) -> Fetch:
    value, url = record.value or b"", header(record.headers, "nearstream-url")
    if url is not None:
        observed_at = datetime.fromisoformat((header(record.headers, "nearstream-observed-at") or b"").decode())
        return Fetch(url.decode(), to_milliseconds(observed_at), _FOUND, record, text_digest(value).hex())
    if not value.startswith(b"{"):
        raise ValueError("expected JSON Lines with t, url and html, or WARC")
    line = msgspec.json.decode(value, type=Line)
    at_ms = _milliseconds(line.t)
    if not 0 < len(line.url) <= _URL_CHARACTERS:
        raise ValueError(f"expected a url of 1 to {_URL_CHARACTERS} characters")
    if line.status in PERMANENT and line.location:
        redirects.add(line.url, line.location)
    if line.status != _FOUND:
        return Fetch(line.url, at_ms, line.status, None, "")
    page = line.html.encode("utf-8", "replace") if line.html is not None else line.body
    if page is None:
        raise ValueError("expected html, or body in base64, for the status 200")
    asked = redirects.take(line.url)
    sent = page_record(asked[-1], at_ms, page, line.url) if asked else page_record(line.url, at_ms, page)
    return Fetch(line.url, at_ms, line.status, sent, line.content or text_digest(page).hex())


def _milliseconds(time: float | datetime) -> int:
    if isinstance(time, datetime) and time.tzinfo is not None:
        return to_milliseconds(time)
    if isinstance(time, datetime) or not 0 <= time <= _HOURS_MAX:
        raise ValueError(f"expected t from 0 to {_HOURS_MAX} hours, or a time with zone")
    return to_milliseconds(_BEGIN + timedelta(hours=time))
