"""Show the live page over a made-up day of crawled pages and mail, in one process without Kafka and Redis."""

import asyncio
import signal
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random

from aiohttp import web

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.checks.check import CheckAnswer
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_json, encode_json
from nearstream.schemas.topics.dead_letter import DeadLetter, Reason, read_dead_letter
from nearstream.schemas.topics.table import ALERTS, DOCUMENTS, VERDICTS
from nearstream.streams.alerting.counting import Rule, Subject, Tally
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.checking import answer, found_in_text
from nearstream.streams.matching.looking_up import find, look_up, newcomer
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH
from nearstream.streams.store.store import local_store
from nearstream.workers.config.alert_rules import DEFAULT_RULES
from nearstream.workers.http.application import add_handlers, application, listening
from nearstream.workers.http.live.details import Stored
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.http.operator import add_operator_routes, say_nowhere
from nearstream.workers.http.requests import (
    MAIL_TYPE,
    Gate,
    json_response,
    read_document,
    read_record,
    require_readable,
    type_of,
)
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.deployment import Deployment

BEGIN_MS, MINUTE_MS = 1_772_438_400_000, 60_000  # 2026-03-02T08:00:00Z
WARM_UP_MS = 30 * MINUTE_MS  # the part of the day that is over when the page opens
_SPEED = 20  # seconds of the day that pass in a second
_KEPT_SECONDS = 2 * 3600  # of the day, after which the index forgets a document
_DOCUMENTS, _STATES, _TALLIES = 10_000, 8, 10_000


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
    """The day, matched by an index in memory, in `feed`. `signatures` has the newest states of each document."""

    def __init__(self, deployment: Deployment, examples: Sequence[Document]) -> None:
        self._deployment, self._offset = deployment, 0
        self.index = local_store(replace(deployment.index_limits, retention_seconds=_KEPT_SECONDS), self.now_ms)
        self.feed = Feed(self.now_ms, "demo")
        self.feed.why, self.feed.is_alerting = "", True
        self.signatures: OrderedDict[str, tuple[Signature, ...]] = OrderedDict()
        self._signer, self._matcher = deployment.signer(), deployment.matcher(self.index)
        self._letters, of_alerts = (deployment.dead_letter_writer(role) for role in ("sign", "alert"))
        self._alerting = Alerting(DEFAULT_RULES, _Tallies(), ALERTS.name, deployment.scheme.name, of_alerts)
        self._records = Day(examples).records()
        self._next = next(self._records)

    def now_ms(self) -> int:
        """Return the time of the day in milliseconds since 1970, which is that of the next record."""
        return self._next.timestamp_ms

    async def states(self, document_key: str) -> Sequence[Signature]:
        """Return the states of a document, the last one first."""
        return self.signatures.get(document_key, ())

    async def warm_up(self) -> None:
        """Match the first half hour as fast as possible."""
        while self.now_ms() < BEGIN_MS + WARM_UP_MS:
            await self._step()

    async def run(self) -> None:
        """Match the rest of the day at its speed, until this is cancelled. A slow machine sees a slower day."""
        while True:
            before_ms = self.now_ms()
            await self._step()
            await asyncio.sleep((self.now_ms() - before_ms) / 1000 / _SPEED)

    async def _step(self) -> None:
        """Match the next record, and let others run."""
        self._offset += 1
        record = self._next._replace(offset=self._offset)
        try:
            await self._match(record)
        except InvalidMessageError as error:
            await self._refuse(record, error)
        self._next = next(self._records)
        await asyncio.sleep(0)

    async def _match(self, record: ConsumerRecord) -> None:
        began, signature = (
            time.perf_counter(),
            self._signer.sign(*read_document(record, self._deployment.document_limits)),
        )
        self._keep(signature)
        (matched,) = await self._matcher.match_all([Arrival(signature.document_key, signature)])
        at_ms = record.timestamp_ms + round(1000 * (time.perf_counter() - began))
        for event in (matched.verdict, *matched.events):
            if event is not None:
                self.feed.add(event, at_ms)
        if matched.verdict is not None:
            verdict = ConsumerRecord(VERDICTS.name, 0, 0, at_ms, None, encode_json(matched.verdict), [])
            self._alert(await self._alerting.decide([verdict]))

    async def _refuse(self, record: ConsumerRecord, error: InvalidMessageError) -> None:
        sent = self._letters.write(DeadLetter(record, "sign", error.reason, error.detail))
        written = record._replace(topic=sent.topic, key=sent.key, value=sent.value, headers=sent.headers)
        letter = read_dead_letter(written)
        if letter is not None:
            self.feed.letters.add(letter)
        self._alert(await self._alerting.count_letters([written]))

    def _alert(self, sent: Sequence[ProducerRecord]) -> None:
        for record in sent:
            self.feed.alarms.add(decode_json(Alert, record.value or b""))

    def _keep(self, signature: Signature) -> None:
        known = self.signatures.pop(signature.document_key, ())
        if not known or known[0].version != signature.version:
            known = (signature, *known[: _STATES - 1])
        self.signatures[signature.document_key] = known
        if len(self.signatures) > _DOCUMENTS:
            self.signatures.popitem(last=False)


class _Tallies:
    """What the rules have counted, in memory."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, Subject], Tally] = {}

    async def change(self, rule: Rule, subject: Subject, action: Callable[[Tally], Tally]) -> Tally:
        """Replace the tally of a subject by what `action` makes of it, and return that."""
        tally = self._tallies[rule.name, subject] = action(self._tallies.pop((rule.name, subject), Tally()))
        if len(self._tallies) > _TALLIES:
            del self._tallies[next(iter(self._tallies))]
        return tally

    async def firing(self) -> AsyncIterator[tuple[str, Subject]]:
        """Yield nothing. Later records of a subject end its alert."""
        nothing: tuple[tuple[str, Subject], ...] = ()
        for each in nothing:
            yield each

    async def forget_firing(self, rule: Rule, subject: Subject) -> None:
        """Do nothing, because `firing` lists nothing."""


async def serve_demo(deployment: Deployment, examples: Sequence[Document], opened: Callable[[str], None]) -> None:
    """Serve the live page over a day made from documents with texts, until SIGINT or SIGTERM.

    Of the deployment only the scheme, the limits and the address count. `opened` is called with the address of the page
    once it answers.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    replay = Replay(deployment, examples)
    app = application(Gate(deployment.settings.api_token))
    add_live_routes(app, replay.feed, Stored(deployment, replay.states))
    add_operator_routes(app, replay.feed, say_nowhere, None)
    add_handlers(app, {"check": partial(_check, deployment, replay)})
    async with listening(app, deployment.settings.api) as address:
        await replay.warm_up()
        running = asyncio.create_task(replay.run())
        opened(f"http://{address}/")
        await asyncio.wait({running, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()


async def _check(deployment: Deployment, replay: Replay, request: web.Request) -> web.Response:
    """Answer what a text is to the documents of the day, without adding it."""
    require_readable(request, deployment.document_limits.value_bytes)
    record = await read_record(request, deployment.document_limits.value_bytes)
    if type_of(record) == MAIL_TYPE:
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected a text or a JSON document in the demo")
    document = read_document(record, deployment.document_limits)
    signature = deployment.signer().sign(*document)
    if not signature.n_bytes:
        scheme = deployment.scheme.name
        return json_response(CheckAnswer(verdict="unknown", scheme=scheme, low_confidence=(BELOW_MIN_LENGTH,)))
    asked = newcomer(signature, deployment.scheme, deployment.key, deployment.thresholds)
    near = await look_up(replay.index, asked)
    text = document.document.text or ""
    found = found_in_text(find(asked, near), text, deployment.scheme.text)
    return json_response(answer(found, deployment.settings.bulk_count))
