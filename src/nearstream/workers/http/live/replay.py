"""Sign and match a made-up day in this process, for the demo of the live page."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import decode_json, encode_json
from nearstream.schemas.topics.dead_letter import read_dead_letter
from nearstream.schemas.topics.table import ALERTS, DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.streams.alerting.counting import Rule, Subject, Tally, end_quiet
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.local import local_store
from nearstream.workers.config.alert_rules import load_alerts
from nearstream.workers.http.live.day import BEGIN_MS, HOUR_MS, Happening, hours
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.sign import Signing

WARM_UP_MS = HOUR_MS // 2  # the part of the day that is over when the page opens
_KEPT_SECONDS = 2 * 3600  # of the day, after which the index forgets a document
_DOCUMENTS, _STATES = 10_000, 8
_TALLIES = 10_000
_TURN_SECONDS = 0.05
_MINUTE_MS = 60_000


class Replay:
    """A made-up day, matched by an index in memory.

    Attributes:
        feed: What takes the verdicts and events.
        index: The index.
        signatures: The newest states of each document, the last one first, of at most `_DOCUMENTS` documents.
    """

    def __init__(self, deployment: Deployment, examples: Sequence[Document], speed: float) -> None:
        """Begin at the first minute of the day.

        Args:
            deployment: Its scheme, key and limits.
            examples: Documents with texts, from which the day is made.
            speed: How many seconds of the day pass in a second.
        """
        limits = replace(deployment.index_limits, retention_seconds=_KEPT_SECONDS)
        self.index = local_store(limits, self.now_ms)
        self.feed = Feed(self.now_ms, "demo")
        self.feed.why, self.feed.is_alerting = "", True
        self._signing = Signing(
            deployment.signer(), deployment.document_limits, SIGNATURES.name, deployment.dead_letter_writer("sign")
        )
        self._rules, self._tallies = load_alerts(deployment.settings.alerts).rules, _Tallies()
        self._alerting = _alerting(deployment, self._rules, self._tallies)
        self.signatures: OrderedDict[str, tuple[Signature, ...]] = OrderedDict()
        self._signer, self._matcher = deployment.signer(), deployment.matcher(self.index)
        self._happenings: Iterator[Happening] = hours(examples)
        self._speed = speed
        self._next = next(self._happenings)
        self._began = 0.0
        self._signed = 0

    def now_ms(self) -> int:
        """Return the time of the day in milliseconds since 1970.

        It waits for what is due, so a slow machine sees a slower day.
        """
        if not self._began:
            return self._next.at_ms
        passed = time.monotonic() - self._began
        return min(BEGIN_MS + WARM_UP_MS + int(1000 * passed * self._speed), self._next.at_ms)

    async def states(self, document_key: str) -> Sequence[Signature]:
        """Return the states of a document, the last one first."""
        return self.signatures.get(document_key, ())

    async def warm_up(self) -> None:
        """Match the first half hour as fast as possible."""
        while self._next.at_ms < BEGIN_MS + WARM_UP_MS:
            await self._step()
        self._began = time.monotonic()

    async def run(self) -> None:
        """Match the rest of the day at its speed, until this is cancelled."""
        while True:
            due = self._began + (self._next.at_ms - BEGIN_MS - WARM_UP_MS) / 1000 / self._speed
            late = time.monotonic() - due
            if late > 1:  # a machine that is too slow does not catch up in a burst
                self._began += late
            if late < 0:
                await asyncio.sleep(min(-late, _TURN_SECONDS))
                continue
            await self._step()

    async def _step(self) -> None:
        """Match what is due, and let others run."""
        happening = self._next
        self._signed += 1
        if happening.unreadable:
            await self._refuse(happening)
        else:
            await self._match(happening)
        self._next = next(self._happenings)
        if self._next.at_ms // _MINUTE_MS > happening.at_ms // _MINUTE_MS:
            await self._end_quiet(happening.at_ms)
        await _pause()

    async def _end_quiet(self, now_ms: int) -> None:
        """End each alert of which nothing has come for a window of the day."""
        for name, subject in [each async for each in self._tallies.firing()]:
            for rule in self._rules:
                if rule.name == name:
                    tally = await self._tallies.change(rule, subject, partial(end_quiet, rule, now_ms))
                    self.feed.alarms.add(tally.alerts[-1].alert)

    async def _match(self, happening: Happening) -> None:
        began = time.perf_counter()
        (matched,) = await self._matcher.match_all([self._arrival(happening)], _pause)
        at_ms = happening.at_ms + round(1000 * (time.perf_counter() - began))
        for event in (matched.verdict, *matched.events):
            if event is not None:
                self.feed.add(event, at_ms)
        if matched.verdict is not None:
            record = ConsumerRecord(VERDICTS.name, 0, 0, at_ms, None, encode_json(matched.verdict), [])
            self._alert(await self._alerting.decide([record]))

    async def _refuse(self, happening: Happening) -> None:
        """Let a worker refuse a record."""
        record = ConsumerRecord(DOCUMENTS.name, 0, self._signed, happening.at_ms, None, happening.unreadable, [])
        for sent in await self._signing.decide([record]):
            written = ConsumerRecord(sent.topic, 0, self._signed, happening.at_ms, sent.key, sent.value, sent.headers)
            dead_letter = read_dead_letter(written)
            if dead_letter is not None:
                self.feed.letters.add(dead_letter)
            self._alert(await self._alerting.count_letters([written]))

    def _alert(self, sent: Sequence[ProducerRecord]) -> None:
        for record in sent:
            self.feed.alarms.add(decode_json(Alert, record.value or b""))

    def _arrival(self, happening: Happening) -> Arrival:
        if happening.document is None:
            self.signatures.pop(happening.removed, None)
            removal = Origin(DOCUMENTS.name, 0, self._signed)
            return Arrival(happening.removed, None, removed_at_ms=happening.at_ms, removal=removal)
        # Its own position makes the verdict on an unchanged page one of its own.
        signature = self._signer.sign(happening.document, Origin(DOCUMENTS.name, 0, self._signed))
        self._keep(signature)
        return Arrival(signature.document_key, signature)

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


def _alerting(deployment: Deployment, rules: Sequence[Rule], tallies: _Tallies) -> Alerting:
    """Return what makes alerts of the verdicts and dead letters of the day."""
    return Alerting(rules, tallies, ALERTS.name, deployment.scheme.name, deployment.dead_letter_writer("alert"))


async def _pause() -> None:
    await asyncio.sleep(0)
