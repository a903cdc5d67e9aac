"""Count what a crawler saves and misses that fetches as a policy says."""

import hashlib
import html
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from nearstream.schemas.documents.record import ConsumerRecord

HOUR_MS = 3_600_000
GONE = frozenset({404, 410})
_MINUTE_MS, _DAY_MS = 60_000, 24 * HOUR_MS
_LONGER, _SHORTER, _GONE_LONGER = 1.4, 0.8, 1.5  # of Nutch's AdaptiveFetchSchedule: INC_RATE .4, DEC_RATE .2
_UNSEEN = re.compile(rb"<(script|style|template)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>|\s+", re.IGNORECASE | re.DOTALL)


class Fetch(NamedTuple):
    """A fetch of a page, made or only asked for."""

    url: str  # what was asked for
    at_ms: int  # when
    status: int  # what the server answered
    record: ConsumerRecord | None  # what is sent to `documents`. None: it brought no page.
    content: str  # What is to be seen on the page. Empty: nothing is.


class Policy(Protocol):
    """Says which pages a crawler fetches."""

    async def is_due(self, url: str, at_ms: int) -> bool:
        """Return whether a page is to be fetched at a time."""

    async def take(self, fetch: Fetch) -> bool:
        """Learn what a fetch brought. Return whether the page is said to have nothing new."""


class Tried(NamedTuple):
    """What came of one page under a policy."""

    fetches: int
    stale_hours: float
    called_same: int


@dataclass
class Tally:
    """Counts over the fetches for which a policy was asked.

    A page is fresh when the newest fetch of some page brought what it shows. It is stale from the moment at which it
    was asked for and was not fetched to the next one.
    """

    asked: int = 0  # how often a page with something to be seen was asked for
    fresh: int = 0  # how often its content was known then, or fetched
    fetches: int = 0
    refetches: int = 0
    wasted: int = 0  # refetches that brought nothing that was not known
    called_same: int = 0  # fetches that brought something new, of which the policy said that it is not
    saved_bytes: int = 0  # of pages that were not fetched
    stale_ms: int = 0  # summed over pages
    _held: dict[str, str] = field(default_factory=dict)  # by page what its newest fetch brought
    _holders: Counter[str] = field(default_factory=Counter)  # by content how many pages hold it
    _stale_since: dict[str, int] = field(default_factory=dict)
    _tried: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))  # as `Tried`

    async def ask(self, policy: Policy, fetch: Fetch, *, is_due: bool) -> None:
        """Count what a policy says of a page, and let it take the page if it is due."""
        url, content = fetch.url, fetch.content
        self._end_staleness(fetch)
        is_new = bool(content) and not self._holders[content]
        if is_due:
            self._count_fetch(url, is_new=is_new)
            said_same = await policy.take(fetch)
            if is_new and said_same:
                self.called_same += 1
                self._tried[url][2] += 1
            self._hold(url, content)
        else:
            self.saved_bytes += len((fetch.record and fetch.record.value) or b"")
            if is_new:
                self._stale_since[url] = fetch.at_ms
        self.asked += bool(content)
        self.fresh += bool(content) and (is_due or not is_new)

    def tried(self) -> dict[str, Tried]:
        """Return what came of each page, worst first: the most stale hours, of which a change not seen counts a day."""
        worst = sorted(self._tried.items(), key=lambda each: (-each[1][1] - each[1][2] * _DAY_MS, each[0]))
        return {url: Tried(fetches, round(stale / HOUR_MS, 1), same) for url, (fetches, stale, same) in worst}

    def figures(self) -> dict[str, float]:
        """Return the counts of a report."""
        return {
            "fetches": self.fetches,
            "wasted": round(self.wasted / max(self.refetches, 1), 4),
            "stale_page_hours": round(self.stale_ms / HOUR_MS, 1),
            "fresh": round(self.fresh / max(self.asked, 1), 4),
            "called_same": self.called_same,
            "saved_bytes": self.saved_bytes,
        }

    def _count_fetch(self, url: str, *, is_new: bool) -> None:
        is_again = url in self._held
        self.fetches += 1
        self._tried[url][0] += 1
        self.refetches += is_again
        self.wasted += is_again and not is_new

    def _hold(self, url: str, content: str) -> None:
        before = self._held.setdefault(url, "")
        if content and content != before:
            self._holders[before] -= bool(before)
            self._holders[content] += 1
            self._held[url] = content

    def _end_staleness(self, fetch: Fetch) -> None:
        stale = fetch.at_ms - self._stale_since.pop(fetch.url, fetch.at_ms)
        if stale:
            self.stale_ms += stale
            self._tried[fetch.url][1] += stale


class FetchAll:
    """Fetches every page each time."""

    async def is_due(self, _: str, __: int) -> bool:
        """Return that it is."""
        return True

    async def take(self, _: Fetch) -> bool:
        """Say of no page that it has nothing new."""
        return False


@dataclass
class TextHash:
    """A hash of the text of each page, and the waits of Nutch's AdaptiveFetchSchedule.

    An interval becomes 1.4 times as long where the text is as before, else .8 times, at least a minute. A page that is
    gone waits 1.5 times as long, another failure a day.
    """

    first_hours: float  # after the first fetch of a page
    _digests: dict[str, bytes] = field(default_factory=dict)
    _intervals: dict[str, float] = field(default_factory=dict)  # in milliseconds
    _due: dict[str, float] = field(default_factory=dict)

    async def is_due(self, url: str, at_ms: int) -> bool:
        """Return whether the interval of a page is over."""
        return at_ms >= self._due.get(url, 0)

    async def take(self, fetch: Fetch) -> bool:
        """Compare the text with that of the fetch before."""
        interval = self._intervals.get(fetch.url, self.first_hours * HOUR_MS)
        is_same = False
        if fetch.record is not None:
            digest, before = text_digest(fetch.record.value or b""), self._digests.get(fetch.url)
            is_same = digest == before
            self._digests[fetch.url] = digest
            if before is not None:
                interval = max(interval * (_LONGER if is_same else _SHORTER), _MINUTE_MS)
        elif fetch.status in GONE:
            interval *= _GONE_LONGER
        self._intervals[fetch.url] = interval
        is_failure = fetch.record is None and fetch.status not in GONE
        self._due[fetch.url] = fetch.at_ms + (_DAY_MS if is_failure else interval)
        return is_same


def text_digest(page: bytes) -> bytes:
    """Return a digest of all words of a page, its title included."""
    words = html.unescape(_UNSEEN.sub(b" ", page).decode("utf-8", "replace")).split()
    return hashlib.blake2b(" ".join(words).encode(), digest_size=12).digest()
