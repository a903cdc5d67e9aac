"""A made-up day of crawled pages and mail, hour by hour, for the demo."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

import msgspec

from nearstream.schemas.documents.document import Document, from_milliseconds

BEGIN_MS = 1_772_438_400_000  # 2026-03-02T08:00:00Z
HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_PAGES, _MAILS, _CAMPAIGN, _STORY = 1_400, 500, 760, 70
_STORM_MINUTES, _TRICKLE_MINUTES = (33.0, 42.0), (24.0, 60.0)
_WITHOUT_ZONE, _BROKEN = 140, 6
_WITHOUT_ZONE_MINUTES = (26.0, 31.0)
_NAMES = (
    "Ada",
    "Bela",
    "Chen",
    "Dara",
    "Emil",
    "Fatou",
    "Goran",
    "Hana",
    "Imre",
    "Jun",
    "Kofi",
    "Lena",
    "Mara",
    "Nils",
)


@dataclass(frozen=True)
class Happening:
    """A document that arrives, or one that is removed.

    Attributes:
        at_ms: When, in milliseconds since 1970.
        document: The document, with all fields that a signer needs. None for a removal.
        removed: Document key of what is removed. Empty: nothing.
        unreadable: A record in which no worker finds a document, or empty.
    """

    at_ms: int
    document: Document | None = None
    removed: str = ""
    unreadable: bytes = b""


def hours(examples: Sequence[Document]) -> Iterator[Happening]:
    """Yield what happens from `BEGIN_MS` on, in order of time and without end.

    Each run yields equal documents.

    Args:
        examples: Documents with texts, from which all are made.
    """
    later: list[Happening] = []
    for number in count():
        all_known = sorted((*later, *_Hour(number, examples).happenings()), key=lambda happening: happening.at_ms)
        end_ms = BEGIN_MS + (number + 1) * HOUR_MS
        later = [happening for happening in all_known if happening.at_ms >= end_ms]
        yield from all_known[: len(all_known) - len(later)]


class _Hour:
    """One hour: a crawl with recrawls, mail with a campaign, a syndicated story, quotes, and removals."""

    def __init__(self, number: int, examples: Sequence[Document]) -> None:
        self._number, self._examples = number, examples
        self._random = Random(number)  # noqa: S311 - made-up texts need no secret
        self._words = sorted({word for each in examples for word in (each.text or "").split() if word.isalpha()})

    def happenings(self) -> Iterator[Happening]:
        """Yield what happens in this hour, in no order."""
        yield from self._crawl()
        yield from self._from_examples()
        yield from self._mail()
        yield from self._campaign()
        yield from self._story()
        yield from self._unreadable()

    def _crawl(self) -> Iterator[Happening]:
        """Yield pages of forty sites.

        A third is fetched again, and a third of these has changed.
        """
        for place in range(_PAGES):
            minute, site = self._random.uniform(0, 60), int(self._random.triangular(0, 40, 0))
            url = f"https://site-{site:02}.example/{self._number + 8:02}/{place:04}"
            text = self._made_up(self._random.randint(90, 420))
            yield self._page(minute, url, text)
            if self._random.random() < 1 / 3:
                again = minute + self._random.uniform(6, 24)
                yield self._page(again, url, text if self._random.random() < 2 / 3 else self._edited(text, 0.12))
            if self._random.random() < 1 / 40:
                words = text.split()
                quote = " ".join(words[len(words) // 4 : len(words) * 3 // 4])
                where = f"https://blog.example/{self._number + 8:02}/{place:04}"
                yield self._page(minute + self._random.uniform(2, 12), where, quote)

    def _from_examples(self) -> Iterator[Happening]:
        """Yield real texts with their revisions, in their order."""
        for place, example in enumerate(self._examples):
            minute = 60 * (place + self._random.random()) / len(self._examples)
            yield self._arrival(
                minute, f"{example.id}", example.text or "", "archive", url=example.url, lineage=example.lineage
            )

    def _mail(self) -> Iterator[Happening]:
        for place in range(_MAILS):
            sender = f"list-{int(self._random.triangular(0, 60, 0)):02}.example"
            text = self._made_up(self._random.randint(40, 160))
            name = f"<{self._number}.{place}@{sender}>"
            yield self._arrival(self._random.uniform(0, 60), name, text, "smtp", labels={"sender": sender})

    def _campaign(self) -> Iterator[Happening]:
        """Yield a storm of personalised copies of one mail, sent by two relays."""
        body = self._made_up(170)
        for place in range(_CAMPAIGN):
            begin, end = _STORM_MINUTES if place % 20 else _TRICKLE_MINUTES
            minute = self._random.triangular(begin, end, begin + (end - begin) / 3)
            relay = "203.0.113.7" if self._random.random() < 0.8 else "203.0.113.19"
            text = f"Dear {self._random.choice(_NAMES)} {body} Your code is {self._random.getrandbits(40):x}"
            name = f"<{self._random.getrandbits(48):012x}@deals.example>"
            yield self._arrival(minute, name, text, "smtp", labels={"sender": "deals.example", "relay": relay})

    def _story(self) -> Iterator[Happening]:
        """Yield a story that papers print with small edits, and the removal of its first page."""
        story = self._made_up(380)
        for place in range(_STORY):
            minute = 8 + 46 * (place / _STORY) ** 0.7
            host = "agency.example" if not place else f"paper-{place:02}.example"
            url = f"https://{host}/{self._number + 8:02}/story"
            yield self._page(minute, url, self._edited(story, 0.03 if place else 0), source="feed")
        key = f"web/https://agency.example/{self._number + 8:02}/story"
        yield Happening(self._at(57), removed=key)

    def _unreadable(self) -> Iterator[Happening]:
        """Yield records with times that have no zone, and a few broken ones."""
        for place in range(_WITHOUT_ZONE):
            minute = self._random.uniform(*_WITHOUT_ZONE_MINUTES)
            name, time = (
                f"feed-{self._number + 8:02}-{place:03}",
                f"2026-03-02T{(self._number + 8) % 24:02}:{int(minute):02}:00",
            )
            fields = {"id": name, "text": self._made_up(40), "observed_at": time, "collection": "web"}
            yield Happening(self._at(minute), unreadable=msgspec.json.encode(fields))
        for _ in range(_BROKEN):
            text = self._made_up(20).encode()
            yield Happening(self._at(self._random.uniform(0, 60)), unreadable=b'{"id": "cut-off", "text": "' + text)

    def _page(self, minute: float, url: str, text: str, source: str = "crawler") -> Happening:
        return self._arrival(minute, url, text, source, url=url, lineage=url)

    def _arrival(
        self,
        minute: float,
        name: str,
        text: str,
        source: str,
        *,
        url: str | None = None,
        lineage: str | None = None,
        labels: dict[str, str] | None = None,
    ) -> Happening:
        at_ms = self._at(minute)
        collection = "mail" if source == "smtp" else "web"
        document = Document(
            id=name,
            text=text,
            collection=collection,
            observed_at=from_milliseconds(at_ms),
            source=source,
            url=url,
            lineage=lineage,
            labels=labels or {},
        )
        return Happening(at_ms, document)

    def _at(self, minute: float) -> int:
        return BEGIN_MS + self._number * HOUR_MS + int(minute * _MINUTE_MS)

    def _made_up(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, k=words))

    def _edited(self, text: str, share: float) -> str:
        """Return a text in which this share of the words is another, in a few places."""
        words = text.split()
        for _ in range(int(len(words) * share / 4)):
            place = self._random.randrange(len(words))
            words[place : place + 4] = self._random.choices(self._words, k=4)
        return " ".join(words)
