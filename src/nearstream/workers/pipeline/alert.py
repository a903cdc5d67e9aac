"""Alert from the records of `verdicts` and `dead-letters` about what happens too often."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Protocol

from msgspec.structs import replace

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS, ORIGINS_MAX, Alert
from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event, encode_json, event_headers
from nearstream.schemas.topics.dead_letter import OF_CONTENT, DeadLetter, Reason, StoredDeadLetter, read_dead_letter
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.alerting.counting import (
    ENDED_BY_SILENCE,
    ON_SITES,
    Arrival,
    LabelledGrowth,
    Rule,
    Silences,
    Subject,
    Tally,
    adopted,
    alerts_of,
    count,
    end_quiet,
    find_flood,
    find_size,
    joined,
    name_origins,
    origins_of,
    reaches,
)
from nearstream.streams.ingest.parse import STRANGERS
from nearstream.workers.monitoring import metrics
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.probe import INTERVAL_SECONDS
from nearstream.workers.pipeline.dead_letters import DATA_ERRORS, DeadLetterWriter
from nearstream.workers.pipeline.step import Send

_LAG_MARGIN_MS = 1000 * (INTERVAL_SECONDS + 5.0)  # how old the lag that the probe has read may be
_OTHER_REASON = "other"
AT_ONCE = 4  # families that are counted at once, as many as the client has connections


def _nobody(_: Sequence[Alert]) -> None:
    pass


class Tallies(Protocol):
    """Where tallies are kept."""

    async def change(self, rule: Rule, subject: Subject, action: Callable[[Tally], Tally]) -> Tally:
        """Replace the tally of a subject by what `action` makes of it, and return that."""
        ...

    def firing(self) -> AsyncIterator[tuple[str, Subject]]:
        """Yield the rule and the subject of each alert that is listed as firing."""
        ...

    async def forget_firing(self, rule: Rule, subject: Subject) -> None:
        """Remove an alert that has ended from the list of those that are firing."""
        ...


async def _no_growth(_document_key: str) -> LabelledGrowth | None:
    return None


async def _no_suspension(_collection: str, _family: str, _document: str) -> None:
    pass


@dataclass(frozen=True)
class Alerting:
    """Turns records of `verdicts` and `dead-letters` into records of `alerts`.

    What is counted is stored before an alert is sent. A batch that is tried again finds it, and sends the alert again
    as it was.
    """

    rules: Sequence[Rule]  # the rules, at most one of each name
    store: Tallies  # what they have counted
    topic: str  # where alerts are sent
    scheme: str  # name of the scheme of the deployment
    dead_letters: DeadLetterWriter  # writes the refused records
    # Returns how fast the labelled family of a document grows, None without a label.
    growth: Callable[[str], Coroutine[None, None, LabelledGrowth | None]] = _no_growth
    # Suspends the labels of a family, of this collection, with the id of one of its documents.
    suspend: Callable[[str, str, str], Coroutine[None, None, None]] = _no_suspension
    # What persons have said about alerts. Metrics leave out what is silent for a time.
    silences: Silences = field(default_factory=Silences)
    notify: Callable[[Sequence[Alert]], None] = _nobody  # Called with the alerts that were sent. It must not wait.

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the alerts that verdicts cause, and dead letters for what cannot be read."""
        try:
            return await self._decide(records)
        except DATA_ERRORS as error:
            if len(records) == 1:
                return [self.dead_letters.unprocessable(records[0], "alert", error)]
        return [sent for record in records for sent in await self.decide([record])]

    async def _decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        outgoing = []
        families: dict[Subject, list[tuple[DocumentVerdict, int]]] = {}
        for record in records:
            try:
                event = decode_event(record.value or b"")
            except InvalidMessageError as error:
                outgoing.append(self.dead_letters.write(DeadLetter(record, "alert", error.reason, error.detail)))
                continue
            if isinstance(event, DocumentVerdict) and event.family.ordinal > 1:
                families.setdefault(_family(event), []).append((event, record.timestamp_ms))
        for alerts in await self._at_once([self._after_verdicts(*each) for each in families.items()]):
            outgoing += map(self._record, alerts)
        return outgoing

    async def count_letters(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return the alerts that dead letters cause. Other records are left out."""
        try:
            return await self._count_letters(records)
        except DATA_ERRORS as error:
            if len(records) == 1:
                return [self.dead_letters.unprocessable(records[0], "alert", error)]
        return [sent for record in records for sent in await self.count_letters([record])]

    async def _count_letters(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        about: dict[str, list[StoredDeadLetter]] = {}
        for letter in filter(None, map(read_dead_letter, records)):
            about.setdefault(_about(letter), []).append(letter)
        rules = list(self._rules("dead_letters"))
        counted = await self._at_once([self._after_letters(rule, *each) for rule in rules for each in about.items()])
        return [self._record(alert) for alerts in counted for alert in alerts]

    async def _after_letters(self, rule: Rule, name: str, letters: Sequence[StoredDeadLetter]) -> list[Alert]:
        subject = Subject(ALL_COLLECTIONS, name, self.scheme)
        heard_ms = max(letter.record.timestamp_ms for letter in letters)
        places = Counter(letter.came_from for letter in letters if letter.came_from not in ("", name))
        origins = tuple(place for place, _ in places.most_common(ORIGINS_MAX))
        return await self._count(rule, subject, list(map(_refused, letters)), heard_ms, origins)

    async def end_quiet(self, health: Health, send: Send) -> None:
        """Send the end of each alert of which nothing has been heard for a whole window.

        It does nothing while the lag is unknown, because what is not read yet could go on with the alert.
        """
        firing: dict[str, int] = dict.fromkeys((rule.name for rule in self.rules), 0)
        if not health.assigned or not health.lags:
            return
        behind_ms = 1000 * max(lag.seconds or 0.0 for lag in health.lags)
        clock_ms = int(time.time() * 1000 - behind_ms - _LAG_MARGIN_MS)
        async for name, subject in self.store.firing():
            # An alert whose rule was taken away ends as if nothing were heard any more.
            for rule in [*self._rules(name)] or [Rule(name, 2, 1)]:  # type: ignore[arg-type] # as it was stored
                tally = await self.store.change(rule, subject, partial(end_quiet, rule, clock_ms))
                if not tally.is_firing:
                    await self._send_end(rule, subject, tally, send)
                elif not self.silences.is_silent(tally.alerts[-1].alert, int(time.time() * 1000)):
                    firing[rule.name] = firing.get(rule.name, 0) + 1
        metrics.set_firing(firing)

    async def adopt(self, alerts: Iterable[Alert]) -> None:
        """Take over alerts that have begun and not ended in another namespace, so that they end."""
        for alert in alerts:
            if alert.name in ENDED_BY_SILENCE:
                subject = Subject(alert.collection, alert.subject, alert.scheme, alert.founder)
                rule = Rule(alert.name, int(alert.limit), alert.window_seconds)
                await self.store.change(rule, subject, partial(adopted, alert))

    def after_sending(self, _: Sequence[ConsumerRecord], outgoing: Sequence[ProducerRecord]) -> None:
        """Count and pass on the alerts that were delivered for a batch."""
        self.notify(metrics.count_alerts(outgoing))

    async def _send_end(self, rule: Rule, subject: Subject, tally: Tally, send: Send) -> None:
        if not tally.is_sent:
            ended = [self._record(tally.alerts[-1].alert)]
            await send(ended)
            self.after_sending((), ended)
            tally = await self.store.change(rule, subject, _mark_sent)
        if not tally.is_firing:  # it may have begun again
            await self.store.forget_firing(rule, subject)

    async def _at_once(self, work: Sequence[Coroutine[None, None, list[Alert]]]) -> list[list[Alert]]:
        """Return the results in their order, once all work has ended, or raise the first error."""
        places = asyncio.Semaphore(AT_ONCE)

        async def limited(each: Coroutine[None, None, list[Alert]]) -> list[Alert]:
            async with places:
                return await each

        results = await asyncio.gather(*map(limited, work), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def _after_verdicts(self, subject: Subject, verdicts: Sequence[tuple[DocumentVerdict, int]]) -> list[Alert]:
        alerts: list[Alert] = []
        heard_ms = max(record_ms for _, record_ms in verdicts)
        arrivals = [arrival for each in verdicts if (arrival := joined(*each)) is not None]
        origins = origins_of(verdict for verdict, _ in verdicts)
        for rule in self._rules("duplicate_storm", subject.collection):
            alerts += await self._count(rule, subject, arrivals, heard_ms, origins)
        of_new_families = (self._rules(name, subject.collection) for name in ("new_family_of_size", ON_SITES))
        for rule in chain.from_iterable(of_new_families):
            large = [verdict for verdict, _ in verdicts if reaches(rule, verdict)]
            if large:
                finding = partial(find_size, rule, subject, large)
                tally = await self.store.change(rule, subject, finding)
                alerts += alerts_of(tally, {each.event_id for each in large})
        for rule in self._rules("label_flood", subject.collection):
            alerts += await self._after_labelled(rule, subject, [verdict for verdict, _ in verdicts])
        return alerts

    async def _after_labelled(self, rule: Rule, subject: Subject, verdicts: Sequence[DocumentVerdict]) -> list[Alert]:
        newest = verdicts[-1]
        growth = await self.growth(document_key(subject.collection, newest.id))
        tally = await self.store.change(rule, subject, partial(find_flood, rule, subject, growth, verdicts))
        found = alerts_of(tally, {each.event_id for each in verdicts})
        if found:
            await self.suspend(subject.collection, subject.name, newest.id)
        return found

    async def _count(
        self, rule: Rule, subject: Subject, arrivals: Sequence[Arrival], heard_ms: int, origins: tuple[str, ...] = ()
    ) -> list[Alert]:
        if not arrivals:
            return []

        def counting(former: Tally) -> Tally:
            return name_origins(origins, former, count(rule, subject, arrivals, heard_ms, former))

        tally = await self.store.change(rule, subject, counting)
        return alerts_of(tally, {each.event_id for each in arrivals})

    def _rules(self, name: str, collection: str = ALL_COLLECTIONS) -> Iterator[Rule]:
        for rule in self.rules:
            if rule.name == name and (collection == ALL_COLLECTIONS or rule.concerns(collection)):
                yield rule

    def _record(self, alert: Alert) -> ProducerRecord:
        key = f"{alert.collection}/{alert.name}/{alert.subject}".encode()
        return ProducerRecord(self.topic, key, encode_json(alert), event_headers(alert, datetime.now(UTC)))


def _family(verdict: DocumentVerdict) -> Subject:
    founder = verdict.family.founder
    return Subject(verdict.collection, verdict.family.id, verdict.scheme, None if founder is None else founder.id)


def _about(letter: StoredDeadLetter) -> str:
    """Return who sent an unreadable content, or of another dead letter the reason."""
    if letter.reason in OF_CONTENT and letter.came_from.startswith(STRANGERS):
        return letter.came_from
    return letter.reason if letter.reason in set(Reason) else _OTHER_REASON


def _refused(letter: StoredDeadLetter) -> Arrival:
    refused_ms = letter.original.timestamp_ms if letter.original.timestamp_ms >= 0 else letter.record.timestamp_ms
    # Zero would be a number that has passed.
    return Arrival(min(refused_ms, letter.record.timestamp_ms), 1 + int(letter.dead_id[:12], 16), letter.dead_id)


def _mark_sent(tally: Tally) -> Tally:
    return replace(tally, is_sent=True)
