"""Count what a crawler saves and misses that leaves fetches out."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.crawl.html_text import strip_tags

HOUR_MS = 3_600_000
GONE = frozenset({404, 410})
_MINUTE_MS, _DAY_MS = 60_000, 24 * HOUR_MS
_LONGER, _SHORTER, _GONE_LONGER = 1.4, 0.8, 1.5  # of Nutch's AdaptiveFetchSchedule: INC_RATE .4, DEC_RATE .2


class Fetch(NamedTuple):
    """A fetch of a page, made or only asked for."""

    url: str  # what was asked for
    at_ms: int  # when
    status: int  # what the server answered
    record: ConsumerRecord | None  # what is sent to `documents`. None: it brought no page.
    content: str  # What is to be seen on the page. Empty: nothing is.


@dataclass
class PageTally:
    """What came of one page."""

    held: str = ""  # what its newest fetch brought
    fetches: int = 0
    called_same: int = 0
    stale_ms: int = 0  # up to the latest question
    asked_ms: int = 0
    gap_ms: int = 0  # between the latest two questions
    is_stale: bool = False  # since the latest question

    @property
    def stale_hours(self) -> float:
        """Return how long it was stale, after the latest question as long as before it."""
        return (self.stale_ms + self.gap_ms * self.is_stale) / HOUR_MS

    def go_on(self, at_ms: int) -> None:
        """Count the time up to another question."""
        self.gap_ms = at_ms - (self.asked_ms or at_ms)
        self.stale_ms += self.gap_ms * self.is_stale
        self.asked_ms, self.is_stale = at_ms, False


@dataclass
class Tally:
    """Counts what comes of the fetches of a log.

    A page is fresh when the newest fetch of some page brought what it shows. If it is not and is left out, it is stale
    to the next time that it is asked for.
    """

    pages: dict[str, PageTally] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _holders: Counter[str] = field(default_factory=Counter)  # by content how many pages hold it

    def ask(self, fetch: Fetch, *, is_due: bool, said_same: bool = False) -> None:
        """Count a fetch, which is made if it is due.

        `said_same`: its page is said to have nothing new.
        """
        page, content = self.pages.setdefault(fetch.url, PageTally()), fetch.content
        page.go_on(fetch.at_ms)
        is_new, is_again = bool(content) and not self._holders[content], bool(page.fetches)
        self._counts.update(asked=bool(content), fresh=bool(content) and (is_due or not is_new))
        if not is_due:
            page.is_stale = is_new
            self._counts["saved_bytes"] += len((fetch.record and fetch.record.value) or b"")
            return
        self._counts.update(fetches=1, refetches=is_again, wasted=is_again and not is_new)
        page.fetches += 1
        page.called_same += is_new and said_same
        if content:
            self._holders.update({page.held: -1})
            self._holders[content] += 1
            page.held = content

    def figures(self) -> dict[str, float]:
        """Return the counts of a report."""
        counts = self._counts
        return {
            "fetches": counts["fetches"],
            "wasted": round(counts["wasted"] / max(counts["refetches"], 1), 4),
            "stale_page_hours": round(sum(page.stale_hours for page in self.pages.values()), 1),
            "fresh": round(counts["fresh"] / max(counts["asked"], 1), 4),
            "called_same": sum(page.called_same for page in self.pages.values()),
            "saved_bytes": counts["saved_bytes"],
        }


@dataclass
class TextHash:
    """A hash of the text of each page, and the waits of Nutch's AdaptiveFetchSchedule.

    An interval becomes 1.4 times as long where the text is as before, else .8 times, at least a minute. A page that is
    gone waits 1.5 times as long, another failure a day.
    """

    first_hours: float  # after the first fetch of a page
    _known: dict[str, tuple[bytes, float, float]] = field(
        default_factory=dict
    )  # its digest, interval, and when it is due

    def is_due(self, url: str, at_ms: int) -> bool:
        """Return whether the interval of a page is over."""
        return url not in self._known or at_ms >= self._known[url][2]

    def take(self, fetch: Fetch) -> bool:
        """Compare the text with that of the fetch before, and return whether it is equal."""
        before, interval, _ = self._known.get(fetch.url, (b"", self.first_hours * HOUR_MS, 0))
        if fetch.record is None and fetch.status not in GONE and not 300 <= fetch.status < 400:
            self._known[fetch.url] = before, interval, fetch.at_ms + _DAY_MS
            return False
        digest = before if fetch.status in GONE else text_digest((fetch.record and fetch.record.value) or b"")
        if before:
            factor = _GONE_LONGER if fetch.status in GONE else _LONGER if digest == before else _SHORTER
            interval = max(interval * factor, _MINUTE_MS)
        self._known[fetch.url] = digest, interval, fetch.at_ms + interval
        return digest == before


def text_digest(page: bytes) -> bytes:
    """Return a digest of all words of a page, its title included."""
    words = strip_tags(page.decode("utf-8", "replace")).split()
    return hashlib.blake2b(" ".join(words).encode(), digest_size=12).digest()
