"""Sign, match and decide in the process that answers, without Kafka and Redis."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import partial
from itertools import groupby

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import INPUT, ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.dead_letter import read_dead_letter
from nearstream.schemas.topics.table import (
    ALERTS,
    DEAD_LETTERS,
    DECISIONS,
    DOCUMENTS,
    SIGNATURES,
    VERDICTS,
)
from nearstream.streams.alerting.counting import Rule, Subject, Tally
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.ingest.sites import site_of
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.streams.store.store import Position
from nearstream.workers.config.alert_rules import DEFAULT_RULES
from nearstream.workers.http.learning import UNCONFIRMED, OutboxFullError
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.work import RareLog
from nearstream.workers.kafka.records import event_of
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.decide import Deciding, notice_error_text
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.local_index import LocalIndex
from nearstream.workers.pipeline.match import Matching, SignatureTopic
from nearstream.workers.pipeline.sign import Signing
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.reading.members import stored_family
from nearstream.workers.sqlite.file import IndexFile
from nearstream.workers.sqlite.pages import PageCommands

_AT_ONCE = 16  # records that are stored together, so that the first one does not wait long for the last one
_TALLIES = 10_000

log = logging.getLogger(__name__)


class Standalone:
    """Does the work of workers for an API, in the place of its outbox.

    Records that wait together are stored together. A record is confirmed once it is stored.
    """

    def __init__(self, deployment: Deployment, file: IndexFile, feed: Feed) -> None:
        self._file, self._commands = file, PageCommands(file)
        self.index = LocalIndex(file.part, file.store, file.scheme)
        freshness = deployment.settings.crawl_freshness
        self.pages = DecisionStore(self._commands, deployment.settings.namespace, freshness)
        letters = deployment.dead_letter_writer("standalone")
        self.topic = {each: deployment.topic(each) for each in (DOCUMENTS, SIGNATURES, VERDICTS, DEAD_LETTERS)}
        self.feed = feed
        self.feed.why, self.feed.is_alerting = "", True
        self._signing = Signing(
            deployment.signer(), deployment.document_limits, self.topic[SIGNATURES], letters, deployment.page_reader()
        )
        self._matching = Matching(
            deployment.matcher(file.store),
            deployment.scheme,
            deployment.document_limits,
            deployment.settings.topic_prefix,
            letters,
            SignatureTopic(_nothing_done, _nothing_to_read),
            _nothing_done,
            _cover_nothing,
            deployment.verdicts(),
            partial(stored_family, self.index),
        )
        decider = partial(Decider, site_of=site_of, freshness=freshness, notice=notice_error_text)
        self._deciding = Deciding(self.pages, decider, deployment.topic(DECISIONS), letters)
        alerts = deployment.topic(ALERTS)
        self._alerting = Alerting(DEFAULT_RULES, _Tallies(), alerts, deployment.scheme.name, letters)
        self._waiting: deque[tuple[ProducerRecord, asyncio.Future[None]]] = deque()
        self._arrived, self._rare_log = asyncio.Event(), RareLog(log)

    async def send(self, record: ProducerRecord, seconds: float) -> None:
        """Store a document, a signature or a label, and wait until the file has it.

        Other records, such as silences, are not stored: the memory of the process has them.

        Raises:
            IndexUnavailableError: It was not stored, or not within `seconds`.
            OutboxFullError: Too many records wait.
        """
        if record.topic not in (self.topic[DOCUMENTS], self.topic[SIGNATURES]):
            return
        if len(self._waiting) >= UNCONFIRMED:
            raise OutboxFullError
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append((record, stored))
        self._arrived.set()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(stored)
        except TimeoutError:
            raise IndexUnavailableError(f"the record was not stored within {seconds:g} s") from None

    async def run(self) -> None:
        """Store what is sent until this is cancelled, and confirm what is stored."""
        while True:
            await self._arrived.wait()
            some = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            records, stored = zip(*some, strict=True)
            if not self._waiting:
                self._arrived.clear()
            try:
                sent = await self.process([self._arrived_record(record) for record in records])
                self._commands.expire()
                self._file.flush()
                await asyncio.to_thread(self._file.write)
            except IndexUnavailableError as error:
                self._rare_log.warning(f"records were not stored: {error}")
                self.feed.away["index"] = str(error)
                for each in stored:
                    each.set_exception(error)
                continue
            self.feed.away.pop("index", None)
            for each in stored:
                each.set_result(None)
            await self.publish(sent)

    def _arrived_record(self, record: ProducerRecord) -> ConsumerRecord:
        topic = INPUT if record.topic == self.topic[DOCUMENTS] else record.topic
        return self._read(record, topic, 0)

    def _read(self, record: ProducerRecord, topic: str, offset: int) -> ConsumerRecord:
        timestamp_ms = self.feed.now_ms() if record.timestamp_ms is None else record.timestamp_ms
        return ConsumerRecord(topic, 0, offset, timestamp_ms, record.key, record.value, [*record.headers])

    async def process(self, records: Sequence[ConsumerRecord]) -> list[ConsumerRecord]:
        """Sign, match and decide, and return the records of events and dead letters."""
        told, signatures = list[ConsumerRecord](), list[ConsumerRecord]()
        for topic, run in groupby(records, key=lambda record: record.topic):
            if topic != INPUT:
                signatures += (record._replace(offset=next(self._file.offsets)) for record in run)
                continue
            for sent in await self._signing.decide(list(run)):
                if sent.topic == self.topic[SIGNATURES]:
                    signatures.append(self._read(sent, sent.topic, next(self._file.offsets)))
                else:
                    told.append(self._read(sent, sent.topic, 0))
        for record in signatures:
            self._file.keep(record.key or b"", record.value, record.timestamp_ms)
        told += [self._read(sent, sent.topic, 0) for sent in await self._matching.decide(signatures)]
        await self._deciding.decide([record for record in told if record.topic == self.topic[VERDICTS]])
        return told

    async def publish(self, records: Sequence[ConsumerRecord]) -> None:
        """Show events, dead letters and alerts."""
        verdicts = [record for record in records if record.topic == self.topic[VERDICTS]]
        letters = [record for record in records if record.topic == self.topic[DEAD_LETTERS]]
        for event, record in zip(map(event_of, records), records, strict=True):
            if event is not None:
                self.feed.add(event, record.timestamp_ms)
        for letter in filter(None, map(read_dead_letter, letters)):
            self.feed.letters.add(letter)
        for sent in [*await self._alerting.decide(verdicts), *await self._alerting.count_letters(letters)]:
            self.feed.alarms.add(decode_json(Alert, sent.value or b""))


async def _nothing_done(*_: object) -> dict[int, int]:
    return {}


async def _nothing_to_read(_partition: int, _start: int, _end: int) -> AsyncGenerator[ConsumerRecord]:
    nothing: tuple[ConsumerRecord, ...] = ()
    for each in nothing:
        yield each


async def _cover_nothing(_positions: Sequence[Position]) -> None:
    pass


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
