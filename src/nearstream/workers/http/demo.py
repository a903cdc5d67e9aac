"""Show the live page over a made-up day of crawled pages and mail, in one process without Kafka and Redis."""

import asyncio
import signal
import time
from collections import OrderedDict
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
from nearstream.streams.alerting.counting import Rule, Subject, Tally, end_quiet
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.checking import answer, found_in_text
from nearstream.streams.matching.looking_up import find, look_up, newcomer
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH
from nearstream.streams.store.store import local_store
from nearstream.workers.config.alert_rules import load_alerts
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
from nearstream.workers.pipeline.document_records import removal_of
from nearstream.workers.pipeline.sign import parse_unsigned

BEGIN_MS, HOUR_MS = 1_772_438_400_000, 3_600_000  # 2026-03-02T08:00:00Z
WARM_UP_MS = HOUR_MS // 2  # the part of the day that is over when the page opens
_PAGES, _MAILS, _CAMPAIGN, _STORY, _WITHOUT_ZONE = 1_400, 500, 760, 70, 140  # an hour
_KEPT_SECONDS = 2 * 3600  # of the day, after which the index forgets a document
_DOCUMENTS, _STATES, _TALLIES = 10_000, 8, 10_000
_MINUTE_MS = 60_000


def day(examples: Sequence[Document]) -> Iterator[ConsumerRecord]:
    """Yield the records of `documents` made from examples, from `BEGIN_MS` on, in order of time, without end.

    They are equal in each run.
    """
    later: list[ConsumerRecord] = []
    for number in count():
        known = sorted([*later, *_Hour(number, examples).records()], key=lambda record: record.timestamp_ms)
        end_ms = BEGIN_MS + (number + 1) * HOUR_MS
        later = [record for record in known if record.timestamp_ms >= end_ms]
        yield from known[: len(known) - len(later)]


class _Hour:
    """One hour: a crawl with recrawls, mail with a campaign, a syndicated story, a removal, and broken records."""

    def __init__(self, number: int, examples: Sequence[Document]) -> None:
        self._number, self._examples = number, examples
        self._random = Random(number)  # noqa: S311 - made-up texts need no secret
        self._words = sorted({word for each in examples for word in (each.text or "").split() if word.isalpha()})

    def records(self) -> Iterator[ConsumerRecord]:
        """Yield the records of this hour, in no order."""
        yield from self._crawl()
        yield from self._mail()
        yield from self._story()
        for place, example in enumerate(self._examples):
            yield self._page(60 * place / len(self._examples), example.id or "", example.text or "", example.lineage)
        for _ in range(_WITHOUT_ZONE):
            minute = self._random.uniform(26, 31)
            fields = b'{"text": "%s", "observed_at": "2026-03-02T08:30:00"}' % self._made_up(40).encode()
            yield self._record(minute, None, fields)
        yield self._record(self._random.uniform(0, 60), None, b'{"id": "cut-off", "text": "')

    def _crawl(self) -> Iterator[ConsumerRecord]:
        """Yield pages of forty sites. A third is fetched again, and a third of these has changed."""
        for place in range(_PAGES):
            minute, site = self._random.uniform(0, 60), int(self._random.triangular(0, 40, 0))
            url, text = f"https://site-{site:02}.example/{self._number}/{place:04}", self._made_up(240)
            yield self._page(minute, url, text, url)
            if self._random.random() < 1 / 3:
                again = text if self._random.random() < 2 / 3 else self._edited(text, 0.12)
                yield self._page(minute + self._random.uniform(6, 24), url, again, url)
            if self._random.random() < 1 / 40:
                quote = text[len(text) // 4 : len(text) * 3 // 4]
                yield self._page(minute + 6, f"https://blog.example/{self._number}/{place:04}", quote, None)

    def _mail(self) -> Iterator[ConsumerRecord]:
        """Yield mail of lists, and a storm of personalised copies of one mail, sent by two relays."""
        for place in range(_MAILS):
            sender = f"list-{int(self._random.triangular(0, 60, 0)):02}.example"
            name = f"<{self._number}.{place}@{sender}>"
            yield self._letter(self._random.uniform(0, 60), name, self._made_up(100), {"sender": sender})
        body = self._made_up(170)
        for place in range(_CAMPAIGN):
            minute = self._random.triangular(24, 60, 36) if place % 20 == 0 else self._random.triangular(33, 42, 36)
            labels = {"sender": "deals.example", "relay": "203.0.113.7" if place % 5 else "203.0.113.19"}
            name, code = f"<{self._number}.{place}@deals.example>", f"{self._random.getrandbits(40):x}"
            yield self._letter(minute, name, f"Dear {self._words[place]} {body} Your code is {code}", labels)

    def _story(self) -> Iterator[ConsumerRecord]:
        """Yield a story that papers print with small edits, and the removal of its first page."""
        story = self._made_up(380)
        for place in range(_STORY):
            url = f"https://{f'paper-{place:02}' if place else 'agency'}.example/{self._number}/story"
            text = self._edited(story, 0.03) if place else story
            yield self._page(8 + 46 * (place / _STORY) ** 0.7, url, text, url)
        removal = removal_of("", f"https://agency.example/{self._number}/story", "web")
        yield self._record(57, removal.key, None)._replace(headers=removal.headers)

    def _page(self, minute: float, name: str, text: str, lineage: str | None) -> ConsumerRecord:
        url = name if name.startswith("https:") else None
        return self._document(minute, Document(id=name, text=text, collection="web", url=url, lineage=lineage))

    def _letter(self, minute: float, name: str, text: str, labels: dict[str, str]) -> ConsumerRecord:
        return self._document(minute, Document(id=name, text=text, collection="mail", source="smtp", labels=labels))

    def _document(self, minute: float, document: Document) -> ConsumerRecord:
        return self._record(minute, (document.id or "").encode(), encode_json(document))

    def _record(self, minute: float, key: bytes | None, value: bytes | None) -> ConsumerRecord:
        at_ms = BEGIN_MS + self._number * HOUR_MS + int(minute * _MINUTE_MS)
        return ConsumerRecord(DOCUMENTS.name, 0, 0, at_ms, key, value, [])

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

    def __init__(self, deployment: Deployment, examples: Sequence[Document], speed: float) -> None:
        """Begin at the first minute of the day, of which `speed` seconds pass in a second."""
        self._deployment, self._speed, self._offset = deployment, speed, 0
        self.index = local_store(replace(deployment.index_limits, retention_seconds=_KEPT_SECONDS), self.now_ms)
        self.feed = Feed(self.now_ms, "demo")
        self.feed.why, self.feed.is_alerting = "", True
        self.signatures: OrderedDict[str, tuple[Signature, ...]] = OrderedDict()
        self._signer, self._matcher = deployment.signer(), deployment.matcher(self.index)
        self._letters, self._tallies = deployment.dead_letter_writer("sign"), _Tallies()
        rules, scheme = load_alerts(deployment.settings.alerts).rules, deployment.scheme.name
        self._rules: dict[str, Rule] = {rule.name: rule for rule in rules}
        self._alerting = Alerting(rules, self._tallies, ALERTS.name, scheme, deployment.dead_letter_writer("alert"))
        self._records = day(examples)
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
            await asyncio.sleep((self.now_ms() - before_ms) / 1000 / self._speed)

    async def _step(self) -> None:
        """Match the next record, and let others run."""
        self._offset += 1
        record = self._next._replace(offset=self._offset)
        try:
            await self._match(record)
        except InvalidMessageError as error:
            await self._refuse(record, error)
        self._next = next(self._records)
        if self._next.timestamp_ms // _MINUTE_MS > record.timestamp_ms // _MINUTE_MS:
            await self._end_quiet(record.timestamp_ms)
        await asyncio.sleep(0)

    async def _match(self, record: ConsumerRecord) -> None:
        began, unsigned = time.perf_counter(), parse_unsigned(record, self._deployment.document_limits)
        if isinstance(unsigned, Removal):
            self.signatures.pop(unsigned.document_key, None)
            arrival = Arrival(unsigned.document_key, None, None, unsigned.removed_at_ms, unsigned.origin)
        else:
            signature = self._signer.sign(*unsigned)
            self._keep(signature)
            arrival = Arrival(signature.document_key, signature)
        matched = await self._matcher.match_all([arrival])
        at_ms = record.timestamp_ms + round(1000 * (time.perf_counter() - began))
        for event in (matched[0].verdict, *matched[0].events):
            if event is not None:
                self.feed.add(event, at_ms)
        if matched[0].verdict is not None:
            verdict = ConsumerRecord(VERDICTS.name, 0, 0, at_ms, None, encode_json(matched[0].verdict), [])
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

    async def _end_quiet(self, now_ms: int) -> None:
        """End each alert of which nothing has come for a window of the day."""
        for name, subject in [each async for each in self._tallies.firing()]:
            rule = self._rules[name]
            tally = await self._tallies.change(rule, subject, partial(end_quiet, rule, now_ms))
            self.feed.alarms.add(tally.alerts[-1].alert)

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
        """Yield the alerts that are firing."""
        for (name, subject), tally in self._tallies.items():
            if tally.is_firing:
                yield name, subject

    async def forget_firing(self, rule: Rule, subject: Subject) -> None:
        """Do nothing, because `firing` looks at the tallies themselves."""


async def serve_demo(
    deployment: Deployment, examples: Sequence[Document], speed: float, opened: Callable[[str], None]
) -> None:
    """Serve the live page over a day made from documents with texts, until SIGINT or SIGTERM.

    Of the deployment only the scheme, the limits and the address count. `opened` is called with the address of the page
    once it answers.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    replay = Replay(deployment, examples, speed)
    app = application(Gate(deployment.settings.api_token))
    add_live_routes(app, replay.feed, Stored(deployment, replay.states))
    add_operator_routes(app, replay.feed, deployment, say_nowhere, None)
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
