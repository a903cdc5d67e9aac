"""Show the live page over a made-up day of crawled pages and mail, in one process without Kafka and Redis."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.store.store import Shape
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.requests import Gate
from nearstream.workers.http.server import alone, serving, until_signal
from nearstream.workers.http.standalone import Standalone
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.sqlite.file import IndexFile

BEGIN_MS, MINUTE_MS = 1_772_438_400_000, 60_000  # 2026-03-02T08:00:00Z
WARM_UP_MS = 30 * MINUTE_MS  # the part of the day that is over when the page opens
_SPEED = 20  # seconds of the day that pass in a second
_KEPT_SECONDS = 2 * 3600  # of the day, after which the index forgets a document
_AT_ONCE, _SEND_SECONDS = 32, 60.0


class Day:
    """Makes a crawl, mail with a storm, a story of papers, and broken records. Each run makes equal ones."""

    def __init__(self, examples: Sequence[Document]) -> None:
        self._examples = [
            Document(id=each.id, text=each.text, collection="web", lineage=each.lineage) for each in examples
        ]
        self._words = sorted({word for each in examples for word in (each.text or "").split() if word.isalpha()})
        self._random = Random(0)  # noqa: S311 - made-up texts need no secret
        self._pages: deque[tuple[str, str]] = deque(maxlen=500)  # with their URLs, which may be fetched again
        self._mail, self._story = "", ""

    def records(self) -> Iterator[ConsumerRecord]:
        """Yield the records of `documents` from `BEGIN_MS` on, in order of time, without end."""
        for number in count():
            made = list(self._minute(*divmod(number, 60)))
            for place, (key, value) in enumerate(made):
                at_ms = BEGIN_MS + number * MINUTE_MS + MINUTE_MS * place // len(made)
                yield ConsumerRecord(DOCUMENTS.name, 0, 0, at_ms, key, value, [])

    def _minute(self, hour: int, minute: int) -> Iterator[tuple[bytes | None, bytes]]:
        """Yield keys and values of the records of a minute."""
        if minute == 0:
            self._mail, self._story = self._made_up(170), self._made_up(380)
        for document in (*self._crawl(hour, minute), *self._letters(hour, minute), *self._examples[minute::60]):
            yield (document.id or "").encode(), encode_json(document)
        for _ in range(30 if 26 <= minute < 31 else 1):
            without_zone = b'{"text": "%s", "observed_at": "2026-03-02T08:30:00"}'
            yield None, without_zone % self._made_up(40).encode()

    def _crawl(self, hour: int, minute: int) -> Iterator[Document]:
        """Yield new pages, pages that are fetched again with or without a change, and a story."""
        for place in range(24):
            site = int(self._random.triangular(0, 40, 0))
            url, text = f"https://site-{site:02}.example/{hour}/{minute}/{place}", self._made_up(240)
            if self._pages and place % 3 == 0:
                url, text = self._random.choice(self._pages)
                text = self._edited(text, 0.12) if place % 9 == 0 else text
            self._pages.append((url, text))
            yield Document(id=url, text=text, collection="web", url=url, lineage=url)
        for url, text in [self._random.choice(self._pages)][: minute % 2]:
            quote = text[len(text) // 4 : len(text) * 3 // 4]
            yield Document(id=f"https://blog.example/{hour}/{minute}", text=quote, collection="web", source=url)
        if minute >= 8:
            url = f"https://paper-{minute:02}.example/{hour}/story"
            yield Document(id=url, text=self._edited(self._story, 0.03), collection="web", url=url, lineage=url)

    def _letters(self, hour: int, minute: int) -> Iterator[Document]:
        """Yield mail of lists, and copies of one mail, which are a storm in some minutes."""
        for place in range(8):
            sender = f"list-{int(self._random.triangular(0, 60, 0)):02}.example"
            yield self._letter(f"<{hour}.{minute}.{place}@{sender}>", self._made_up(100), {"sender": sender})
        for place in range(70 if 31 <= minute < 40 else 1):
            labels = {"sender": "deals.example", "relay": "203.0.113.7" if place % 5 else "203.0.113.19"}
            text = f"Dear {self._words[place]} {self._mail} Your code is {self._random.getrandbits(40):x}"
            yield self._letter(f"<{hour}.{minute}.{place}@deals.example>", text, labels)

    def _letter(self, name: str, text: str, labels: dict[str, str]) -> Document:
        return Document(id=name, text=text, collection="mail", source="smtp", labels=labels)

    def _made_up(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, k=words))

    def _edited(self, text: str, share: float) -> str:
        """Return a text in which this share of the words is another, in a few places."""
        words = text.split()
        for _ in range(int(len(words) * share / 4)):
            place = self._random.randrange(len(words))
            words[place : place + 4] = self._random.choices(self._words, k=4)
        return " ".join(words)


class Replay:
    """The day, which a server without Kafka and Redis takes in, in `feed`."""

    def __init__(self, deployment: Deployment, examples: Sequence[Document], path: Path) -> None:
        self._records, self._now_ms = Day(examples).records(), BEGIN_MS
        self._topic = deployment.topic(DOCUMENTS)
        self.feed = Feed(self.now_ms, "demo")
        limits = replace(deployment.index_limits, retention_seconds=_KEPT_SECONDS)
        self.file = IndexFile(path, deployment.scheme.name, limits, Shape(), self.now_ms)
        self.standalone = Standalone(deployment, self.file, self.feed)

    def now_ms(self) -> int:
        """Return the time of the day in milliseconds since 1970, which is that of the last record."""
        return self._now_ms

    async def warm_up(self) -> None:
        """Take in the first half hour as fast as possible."""
        while self._now_ms < BEGIN_MS + WARM_UP_MS:
            await asyncio.gather(*(self._send(next(self._records)) for _ in range(_AT_ONCE)))

    async def run(self) -> None:
        """Take in the rest of the day at its speed, until this is cancelled. A slow machine sees a slower day."""
        for record in self._records:
            await asyncio.sleep(max(0, record.timestamp_ms - self._now_ms) / 1000 / _SPEED)
            await self._send(record)

    async def _send(self, record: ConsumerRecord) -> None:
        self._now_ms = record.timestamp_ms
        sent = ProducerRecord(self._topic, record.key, record.value, [], record.timestamp_ms)
        await self.standalone.send(sent, _SEND_SECONDS)


async def serve_demo(deployment: Deployment, examples: Sequence[Document], opened: Callable[[str], None]) -> None:
    """Serve the live page over a day made from documents with texts, until SIGINT or SIGTERM.

    Of the deployment only the scheme, the limits and the address count. `opened` is called with the address of the page
    once it answers.
    """
    stopped = until_signal()
    with TemporaryDirectory() as folder:
        replay = Replay(deployment, examples, Path(folder) / "day.db")
        gate, storing = Gate(deployment.settings.api_token), asyncio.create_task(replay.standalone.run())
        async with serving(deployment, alone(replay.standalone), replay.feed, gate) as address:
            await replay.warm_up()
            running = asyncio.create_task(replay.run())
            opened(f"http://{address}/")
            stopping = asyncio.create_task(stopped.wait())
            await asyncio.wait({storing, running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            running.cancel()
        storing.cancel()
        replay.file.close()
