"""Take events for the live page and for readers of the stream: the newest ones, and what they add up to."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from time import monotonic
from typing import Literal

import msgspec
from msgspec import UNSET

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.live.state import LiveLag, LiveNewText, LiveState, WorkerState
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.verdicts.events import Event, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS, DocumentVerdict
from nearstream.workers.http.live.families import Growth
from nearstream.workers.http.live.troubles import Alarms, Letters
from nearstream.workers.kafka.lag import PartitionLag, reader_of
from nearstream.workers.operations.checks import sentences, standing_still

SLOT_MS = 10_000
SLOTS = 360  # an hour
_MINUTE_SLOTS = 6
_STEPS = 8  # steps of the histogram for each doubling of a time, so that a quantile is off by less than a tenth
_CHARACTERS, _NOVEL = "characters", "novel"  # no kinds of verdicts
EVENTS = 10_000
EVENT_BYTES = 32 * 1024 * 1024
COLLECTIONS = 64  # whose rates are counted, beside those of all together
_SHOWN = 12  # families in each ranking
_LAG_SECONDS = 30.0  # for which a lag that was read counts as known
_VERSION = version("nearstream")


class Rates:
    """Counts of the last hour in slots, and totals since the start."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        # Of each slot by its number: the verdicts by kind, the ages by their step, the characters, and the new ones.
        self._slots: dict[int, Counter[str | int]] = {}
        self._newest = 0

    def add(self, verdict: str, at_ms: int, age_ms: int, characters: int = 0, novel: int = 0) -> None:
        """Count a verdict that was sent at a time, so many milliseconds after its document was observed.

        The characters are those of a document of which the verdict says how many are new.
        """
        number = at_ms // SLOT_MS
        if number not in self._slots:
            self._newest = max(self._newest, number)
            if number <= self._newest - SLOTS:
                return
            for old in [each for each in self._slots if each <= self._newest - SLOTS]:
                del self._slots[old]
        slot = self._slots.setdefault(number, Counter())
        slot[verdict] += 1
        slot[round(_STEPS * math.log2(max(age_ms, 0) + 1))] += 1
        slot[_CHARACTERS] += characters
        slot[_NOVEL] += min(novel, characters)

    def new_text(self, now_ms: int) -> tuple[int, int]:
        """Return the characters of the last hour, and how many of them were new."""
        slots = self._last(now_ms, SLOTS)
        return sum(slot[_CHARACTERS] for slot in slots), sum(slot[_NOVEL] for slot in slots)

    def series(self, now_ms: int) -> dict[str, tuple[int, ...]]:
        """Return the verdicts of the last hour by kind, the oldest slot first."""
        slots = self._last(now_ms, SLOTS)
        return {kind: tuple(slot[kind] for slot in slots) for kind in VERDICT_KINDS}

    def per_second(self, now_ms: int) -> float:
        """Return the verdicts a second over the whole slots of the last minute."""
        counted = sum(slot[kind] for slot in self._last(now_ms - SLOT_MS, _MINUTE_SLOTS) for kind in VERDICT_KINDS)
        return counted * 1000 / (SLOT_MS * _MINUTE_SLOTS)

    def ages(self, now_ms: int, *shares: float) -> list[float | None]:
        """Return quantiles of the seconds to a verdict over the last minute, None without verdicts."""
        merged: Counter[int] = Counter()
        for slot in self._last(now_ms, _MINUTE_SLOTS):
            merged.update({step: count for step, count in slot.items() if isinstance(step, int)})
        return [_quantile(merged, share) for share in shares]

    def _last(self, now_ms: int, count: int) -> list[Counter[str | int]]:
        last = now_ms // SLOT_MS
        return [self._slots.get(number, Counter()) for number in range(last - count + 1, last + 1)]


def _quantile(counts: Counter[int], share: float) -> float | None:
    left = share * counts.total()
    for step, count in sorted(counts.items()):
        left -= count
        if left <= 0:
            return round((2 ** (step / _STEPS) - 1) / 1000, 4)
    return None


@dataclass(frozen=True)
class Entry:
    """An event in the ring."""

    number: int  # its place in the order of arrival, from 1 on
    event_id: str  # its id
    collection: str  # the tenant of its documents
    data: bytes  # the event as JSON, without line breaks


class Ring:
    """Holds the newest events, at most `EVENTS` of them and `EVENT_BYTES` together.

    A reader has no queue. It remembers the number of its last event and asks for those after it, so a reader that never
    reads costs nothing and loses only what has left the ring.
    """

    def __init__(self, events: int = EVENTS, event_bytes: int = EVENT_BYTES) -> None:
        self._limits = events, event_bytes
        self._entries: deque[Entry] = deque()
        self._numbers: dict[str, int] = {}
        self._bytes = 0
        self._last = 0
        self._arrived = asyncio.Event()
        self.is_closed = False

    @property
    def last(self) -> int:
        """Return the number of the newest event, 0 if there was none."""
        return self._last

    def append(self, event_id: str, collection: str, data: bytes) -> None:
        """Add an event, and drop the oldest ones above the limits."""
        self._last += 1
        self._entries.append(Entry(self._last, event_id, collection, data))
        self._numbers[event_id] = self._last
        self._bytes += len(data)
        events, event_bytes = self._limits
        while len(self._entries) > events or (self._bytes > event_bytes and len(self._entries) > 1):
            oldest = self._entries.popleft()
            self._bytes -= len(oldest.data)
            if self._numbers.get(oldest.event_id) == oldest.number:
                del self._numbers[oldest.event_id]
        self._wake()

    def number_of(self, event_id: str) -> int | None:
        """Return the number of an event, None if it is not in the ring."""
        return self._numbers.get(event_id)

    def after(self, number: int, limit: int) -> tuple[int, list[Entry]]:
        """Return how many events were missed after a number, which is 0 at first, and the next ones."""
        first = self._last - len(self._entries) + 1
        missed = max(first - 1 - number, 0)
        start = max(number + 1 - first, 0)
        return missed, list(islice(self._entries, start, start + limit))

    def newest(self) -> Iterator[Entry]:
        """Yield all events, the newest first."""
        return reversed(self._entries)

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for an event after a number, and return whether there is one within this time."""
        if self._last > number or self.is_closed:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Let readers end."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()


class Feed:
    """The events of one stream in memory, with what they add up to."""

    def __init__(self, clock: Callable[[], int], source: Literal["kafka", "file"] = "kafka") -> None:
        self.ring = Ring()
        # What was read of each group when, by the monotonic clock. The role is that of a group of its own, or empty.
        self.lags: dict[str, tuple[float, list[PartitionLag]]] = {}
        self.why = "no event source is connected yet"  # Why no events can be read now. Empty: they can.
        self.loading: float | None = None  # Share of the last hour that is read after a start. None: all of it.
        self.away: dict[str, str] = {}  # of each service that does not answer now, its name and why
        self.workers: list[WorkerState] = []
        self.are_workers_known = False
        self.unread: dict[str, tuple[str, ...]] = {}  # of each group, a sentence for each topic that nobody reads
        self.now_ms, self._source = clock, source
        self.alarms = Alarms()
        self.is_alerting: bool | None = None  # whether a worker `alert` has ever read the verdicts, if that is known
        self.letters = Letters()
        self.growth = Growth(self.alarms.is_storm)
        self._rates = {"": Rates()}

    def add(self, event: Event, at_ms: int) -> None:
        """Take an event, unless it is in the ring already, as one that is delivered again.

        One that says it was sent before 1970, or in the future, counts for 1970, or for now.
        """
        at_ms = min(max(at_ms, 0), self.now_ms())
        if self.ring.number_of(event.event_id) is not None:
            return
        for rates in self._rates_of(event.collection):
            rates.totals[kind_of(event)] += 1
            if isinstance(event, DocumentVerdict):
                age_ms = at_ms - int(event.observed_at.timestamp() * 1000)
                text = (0, 0) if event.novel is UNSET else (event.characters, event.novel.value)
                rates.add(event.verdict, at_ms, age_ms, *text)
        if isinstance(event, DocumentVerdict):
            self.growth.add(event, at_ms)
        elif isinstance(event, Retraction):
            self.growth.remove(event.collection, event.document_id)
        detected = msgspec.json.encode(from_milliseconds(at_ms))
        data = encode_json(event)[:-1] + b',"detected_at":' + detected + b"}"
        self.ring.append(event.event_id, event.collection, data)

    def state(self, collection: str) -> LiveState:
        """Return the last hour of a collection, or of all collections if it is empty."""
        now_ms = self.now_ms()
        rates = self._rates.get(collection) or Rates()
        why = "; ".join(self.away.values()) or self.why
        p50, p99 = rates.ages(now_ms, 0.5, 0.99)
        alerts = self.alarms.firing(collection, now_ms)
        return LiveState(
            now=from_milliseconds(now_ms),
            version=_VERSION,
            collection=collection,
            source=self._source,
            connected=not why,
            why=why,
            troubles=self._troubles(),
            workers=tuple(self.workers),
            slot_seconds=SLOT_MS // 1000,
            verdicts=rates.series(now_ms),
            totals=dict(rates.totals),
            per_second=rates.per_second(now_ms),
            new_text=self._new_text(collection, now_ms),
            age_p50=p50,
            age_p99=p99,
            lag=self._lag(),
            largest=self.growth.largest(now_ms, _SHOWN, collection),
            growing=self.growth.growing(now_ms, _SHOWN, collection),
            collections=tuple(sorted(name for name in self._rates if name)),
            loading=self.loading,
            alarmed=self.growth.shown((alert.subject for alert in alerts[:_SHOWN]), now_ms),
            alerts=alerts,
            silences=tuple(filter(None, (self.alarms.said.of(alert, now_ms) for alert in alerts))),
            is_alerting=self.is_alerting,
            dead_letters_1h=self.letters.within_an_hour(now_ms),
        )

    def known_lags(self) -> Iterator[tuple[str, PartitionLag]]:
        """Yield the lag of each partition that is known now, with the role that reads it."""
        for role, (read_at, rows) in list(self.lags.items()):
            if monotonic() - read_at < _LAG_SECONDS:
                yield from ((role or reader_of(row.topic), row) for row in rows)

    def known_workers(self) -> list[tuple[str, str]] | None:
        """Return role and state of each worker, None while Redis does not answer."""
        is_known = self.are_workers_known and "Redis" not in self.away
        return [(each.role, each.state) for each in self.workers] if is_known else None

    def verdict(self, collection: str, name: str) -> DocumentVerdict | None:
        """Return the last verdict on a document, None if it is not in the ring."""
        begin = b'{"type":"verdict","id":' + msgspec.json.encode(name) + b","
        own = (entry for entry in self.ring.newest() if entry.collection == collection)
        found = next((entry for entry in own if entry.data.startswith(begin)), None)
        return msgspec.json.decode(found.data, type=DocumentVerdict) if found else None

    def _new_text(self, collection: str, now_ms: int) -> tuple[LiveNewText, ...]:
        """Return how much text of the last hour was new in a collection, or in each of them."""
        names = [collection] if collection else [name for name in self._rates if name]
        counted = [(name, *self._rates[name].new_text(now_ms)) for name in names if name in self._rates]
        found = [LiveNewText(collection=name, characters=all_, novel=novel) for name, all_, novel in counted if all_]
        return tuple(sorted(found, key=lambda each: (-each.characters, each.collection)))

    def _lag(self) -> LiveLag | None:
        """Return the lag of the group of workers. None: Kafka has not said it lately."""
        read_at, rows = self.lags.get("", (-_LAG_SECONDS, []))
        if monotonic() - read_at >= _LAG_SECONDS:
            return None
        seconds = max((row.seconds or 0.0 for row in rows), default=0.0)
        return LiveLag(records=sum(row.records for row in rows), seconds=seconds)

    def _troubles(self) -> tuple[str, ...]:
        """Return a sentence for each cause of stopped workers and each topic without readers."""
        unread = (each for problems in self.unread.values() for each in problems)
        return (*sentences(standing_still(self.workers)), *unread)

    def _rates_of(self, collection: str) -> list[Rates]:
        if collection not in self._rates and len(self._rates) <= COLLECTIONS:
            self._rates[collection] = Rates()
        own = self._rates.get(collection)
        return [self._rates[""]] if own is None else [self._rates[""], own]
