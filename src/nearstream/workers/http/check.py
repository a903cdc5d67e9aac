"""Check one document against the shared index, within a deadline."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar, TypeVarTuple

from msgspec.structs import replace as replace_fields

from nearstream.schemas.checks.check import ApiError, CheckAnswer, CheckReason, Contained, LearnReason
from nearstream.schemas.documents.record import INPUT, ConsumerRecord, header
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.ingest.media_type import HTML_TYPES
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.checking import (
    answer,
    attached,
    found_in_text,
    known_reference,
    passages,
    spread,
    with_labels,
)
from nearstream.streams.matching.counterpart import is_mail
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails
from nearstream.streams.matching.looking_up import Found, Neighbours, find, newcomers
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH
from nearstream.streams.signing.signer import MAX_BYTES, Signer, Unsigned
from nearstream.streams.store.limits import IndexLostError, IndexState, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.tokens import ApiToken
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.http.learning import UNCONFIRMED, Learner
from nearstream.workers.http.requests import (
    MAIL_TYPE,
    SIGNATURE_TYPE,
    RefusedError,
    read_document,
    read_mail,
    read_page,
    read_signature,
    refusal_of,
    require,
    type_of,
)
from nearstream.workers.http.work import RareLog, Turns, in_thread
from nearstream.workers.monitoring.metrics import CHECKS
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.kept.label_guards import Guards
from nearstream.workers.redis.reading.members import Index, labelled_family

AT_ONCE = 64  # requests in work
TURNS = 12  # of these, short texts that are signed, looked up and compared at a time
_LARGE_BYTES = 1024 * 1024
_SHORT_BYTES, _FEW_CANDIDATES = 32_768, 16
LINES_MAX = 64  # documents of a request
_HELD_SECONDS, _HELD_MAX = 5.0, 64
_PASSAGES_MAX = 3  # labelled families of which a mail has a passage

Source = ConsumerRecord | Unsigned
# A newcomer to its collection and to each reference, none of a text without words, and the text, empty if unknown.
Question = tuple[list[Arriving], str]
Learning = asyncio.Task[LearnReason]
Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

log = logging.getLogger(__name__)


def busy() -> RefusedError:
    """Count and return the refusal of a request while as many as allowed are in work."""
    CHECKS.labels("busy").inc()
    return RefusedError(429, "busy", f"expected at most {AT_ONCE} requests at a time", again=True)


class AskedIndex(Index, Protocol):
    """An index that is asked about documents."""

    async def neighbours_of(self, asked: Sequence[Arriving], now_ms: int = 0) -> list[Neighbours]:
        """Return the neighbours of each document, at least one, with their families."""

    async def attached(self, asked: Arriving, delay_ms: int) -> tuple[int, FamilyDetails]:
        """Return how many mails have the attachments of one, and the labels of some."""

    async def state(self) -> IndexState:
        """Return whether the index can be trusted now."""

    async def reopen(self) -> None:
        """Use the index that has taken the place of a lost one."""


class Held(NamedTuple):
    """The details of a labelled family that were read before."""

    until: float  # the time of the loop until which they are used
    marks: tuple[tuple[bytes, int, bytes], ...]  # its labels, with others of which they are not used
    details: FamilyDetails


@dataclass(frozen=True)
class Checker:
    """Answers what documents are to those in the index."""

    deployment: Deployment  # its scheme, key and limits
    signer: Signer  # signs the documents
    index: AskedIndex  # the index
    guards: Guards  # labels that are suspended
    html: HtmlProcesses  # processes that turn the HTML of mails into text
    pages: PageReader  # reads web pages, with the same processes
    readers: Executor  # threads for reading mails and pages, which wait for those processes
    large: Executor  # one thread for reading large mails, so that many of them delay no other answer
    cpu: Executor  # one thread for signing and comparing large texts, so that they delay no deadline of another request
    # Turns of short texts, so that most are in time where more are asked about than the machine can carry.
    turns: Turns = field(default_factory=lambda: Turns(TURNS))
    # Tasks of requests in work. One that missed its deadline remains until it has ended.
    running: set[asyncio.Future[Any]] = field(default_factory=set)
    learning: set[asyncio.Future[Any]] = field(default_factory=set)  # tasks of documents that are being learned
    labelled: dict[int, Held] = field(default_factory=dict)  # details of labelled families, by founder
    rare_log: RareLog = field(default_factory=lambda: RareLog(log))  # logs why the index refuses checks

    async def check(
        self,
        record: ConsumerRecord,
        access: ApiToken,
        learner: Learner | None,
        in_use: Callable[[Learning], None],
    ) -> CheckAnswer:
        """Return the answer about a document, degraded if the index does not answer in time.

        The learner sends the document to the workers, whatever the verdict is. `in_use` is called with the learning of
        a document, which may need the record for longer than the answer does.

        Raises:
            InvalidMessageError: The record holds no document.
            RefusedError: It names another collection than allowed, or as many requests as allowed are in work.
        """
        if len(self.running) >= AT_ONCE:
            raise busy()
        reading = self._reading(record)
        # The document is still learned if it is read too late for an answer.
        task = asyncio.create_task(self._check(reading if learner is None else asyncio.shield(reading), access))
        self._count(self.running, task)
        learning = self._learning(learner, reading, access, task)
        if learning is not None:
            in_use(learning)
        waiting: list[asyncio.Task[Any]] = [task] if learning is None else [task, learning]
        await asyncio.wait(waiting, timeout=self.deployment.settings.api_seconds)
        if task.done():
            found = task.result()
        else:
            # The task is not awaited, because a client that is closing a connection may take longer to end.
            task.cancel()
            found = self._degraded("deadline")
        if learner is None:
            return found
        if not reading.done():
            self._count(self.running, reading)
        reason = _reason(learning)
        return replace_fields(found, learned=not reason, learn_reason=reason)

    async def check_lines(self, body: bytes, access: ApiToken) -> list[CheckAnswer | ApiError]:
        """Return the answer about the document of each line, or why there is none.

        The index is asked about all at once, which takes far less than to ask about each. There is as much time as for
        one answer, and again for each 32 KiB.

        Raises:
            RefusedError: There are too many lines, or as many requests as allowed are in work.
        """
        lines = [line for line in body.split(b"\n") if line.strip()]
        if not 0 < len(lines) <= LINES_MAX:
            raise RefusedError(400, "bad_request", f"expected 1 to {LINES_MAX} lines, each with a document in JSON")
        if len(self.running) >= AT_ONCE:
            raise busy()
        task = asyncio.create_task(self._check_lines(lines, access))
        self._count(self.running, task)
        await asyncio.wait([task], timeout=self.deployment.settings.api_seconds * (1 + len(body) // _SHORT_BYTES))
        if task.done():
            return task.result()
        task.cancel()
        return [self._degraded("deadline")] * len(lines)

    async def _check_lines(self, lines: Sequence[bytes], access: ApiToken) -> list[CheckAnswer | ApiError]:
        read = await self._computed(sum(map(len, lines)), self._read_lines, lines, access)
        async with self.turns.turn():
            told = iter(await self._answers([each for each in read if not isinstance(each, ApiError)]))
        return [each if isinstance(each, ApiError) else next(told) for each in read]

    def _read_lines(self, lines: Sequence[bytes], access: ApiToken) -> list[Question | ApiError]:
        read: list[Question | ApiError] = []
        for line in lines:
            try:
                read.append(
                    self._newcomers(ConsumerRecord(INPUT, 0, 0, time.time_ns() // 1_000_000, None, line, []), access)
                )
            except (InvalidMessageError, RefusedError) as error:
                refusal = refusal_of(error)
                read.append(ApiError(error=refusal.error, detail=refusal.detail))
        return read

    async def ready(self, seconds: float) -> str:
        """Return why checks would get degraded answers now, or an empty text."""
        try:
            async with asyncio.timeout(seconds):
                state = await self.index.state()
                if state is IndexState.LOST:
                    await self.index.reopen()
        except (IndexLostError, SettingsError) as error:
            return str(error)
        except (IndexUnavailableError, TimeoutError):
            return f"Redis did not answer within {seconds:g} s"
        return "the index is being rebuilt" if state is IndexState.REBUILDING else ""

    def _reading(self, record: ConsumerRecord) -> asyncio.Future[Source]:
        """Return the record, or the document of a whole mail, which is read in a thread."""
        if type_of(record) == MAIL_TYPE:
            readers = self.large if len(record.value or b"") > _LARGE_BYTES else self.readers
            made, seconds = self.deployment, self.deployment.settings.api_seconds
            return in_thread(readers, read_mail, record, made.key, self.html, made.mail_rules(), seconds)
        future: asyncio.Future[Source] = asyncio.get_running_loop().create_future()
        future.set_result(record)
        return future

    async def _check(self, reading: asyncio.Future[Source], access: ApiToken) -> CheckAnswer:
        source = await reading
        if isinstance(source, ConsumerRecord) and type_of(source) in HTML_TYPES:
            source = await in_thread(self.readers, read_page, source, self.deployment.document_limits, self.pages)
        if _bytes_of(source) > _SHORT_BYTES:  # others would wait for the one thread for such texts
            return await self._looked_up(source, access)
        async with self.turns.turn():
            return await self._looked_up(source, access)

    async def _looked_up(self, source: Source, access: ApiToken) -> CheckAnswer:
        question = await self._computed(_bytes_of(source), self._newcomers, source, access)
        (told,) = await self._answers([question])
        return told

    async def _answers(self, questions: Sequence[Question]) -> list[CheckAnswer]:
        """Ask the index about all newcomers at once."""
        reason: CheckReason = ""
        try:
            newcomers = [each for asked, _ in questions for each in asked]
            near = iter(await self.index.neighbours_of(newcomers) if newcomers else ())
            return [await self._answer(asked, [next(near) for _ in asked], text) for asked, text in questions]
        except IndexUnavailableError:
            reason = "index_unavailable"
        except IndexLostError:
            reason = "index_lost"
        except SettingsError as error:
            self.rare_log.warning(f"the index refuses checks: {error}")
            reason = "index_refused"
        return [self._degraded(reason)] * len(questions)

    async def _answer(self, asked: Sequence[Arriving], near: Sequence[Neighbours], text: str) -> CheckAnswer:
        if not asked:
            scheme = self.deployment.scheme.name
            return CheckAnswer(verdict="unknown", scheme=scheme, low_confidence=(BELOW_MIN_LENGTH,))
        own, *others = near
        matches = []
        for each in zip(asked[1:], others, strict=True):
            found = await self._found(*each)
            matches.append(known_reference(found, *await self._labels(found)))
        told = await self._own_answer(asked[0], own, text)
        return replace_fields(told, references=tuple(each for each in matches if each is not None))

    async def _found(self, asked: Arriving, near: Neighbours) -> Found:
        work = asked.signature.n_bytes * max(1, len(near.candidates) // _FEW_CANDIDATES)
        return await self._computed(work, find, asked, near)

    async def _own_answer(self, asked: Arriving, near: Neighbours, text: str) -> CheckAnswer:
        settings, found = self.deployment.settings, await self._found(asked, near)
        if text and not is_mail(asked.signature):  # which would take as long as all of the rest
            found = await self._computed(len(text), found_in_text, found, text, self.deployment.scheme.text)
        details, held = await self._labels(found)
        files = attached(found, *await self.index.attached(asked, 1000 * settings.label_delay_seconds))
        told = answer(found, settings.bulk_count, details, held, files)
        if told.contains is None and is_mail(asked.signature):
            told = replace_fields(told, contains=spread(found, time.time_ns() // 1_000_000))
        return told

    async def _labels(self, found: Found) -> tuple[FamilyDetails, Contained | None]:
        """Return the details of the family of a copy, and the labelled text in a mail."""
        asked, best, held = found.newcomer, found.best, None
        family = found.family or (found.families[best.number] if best and best.is_copy else None)
        details = await self._details(asked, family) if family else FamilyDetails()
        for facts in islice(passages(found), _PASSAGES_MAX) if is_mail(asked.signature) else ():
            labelled = with_labels(found, facts, await self._details(asked, facts))
            if labelled is not None and (held is None or labelled.labels.spam > held.labels.spam):
                held = labelled
        return details, held

    async def _details(self, asked: Arriving, family: FamilyFacts) -> FamilyDetails:
        """Return the details of a family, for a mail with members of it.

        Many mails of a wave ask in a row, so those of a labelled family are used for some seconds.
        """
        growth = family.growth
        if growth is None:
            return FamilyDetails()
        now, held = asyncio.get_running_loop().time(), self.labelled.pop(growth.founder, None)
        if held is None or held.until < now or held.marks != growth.marks or not is_mail(asked.signature):
            delay_ms = 1000 * self.deployment.settings.label_delay_seconds
            details = await labelled_family(self.index, self.guards, asked.signature.collection, family, delay_ms)
            held = Held(now + _HELD_SECONDS, growth.marks, details)
        if held.details.labels != NO_LABELS:
            self.labelled[growth.founder] = held
        while len(self.labelled) > _HELD_MAX:
            del self.labelled[next(iter(self.labelled))]
        return replace(held.details, senders=growth.senders, recipients=growth.recipients)

    async def _computed(self, n_bytes: int, compute: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Compute for a short text at once, and for any other in the thread for such work.

        For a short text the way to the thread and back takes as long as the work, less than a millisecond.
        """
        if n_bytes <= _SHORT_BYTES:
            return compute(*arguments)
        return await in_thread(self.cpu, compute, *arguments)

    def _newcomers(self, source: Source, access: ApiToken) -> Question:
        """Read and sign a document, and return none if it has no words."""
        signature, text = self._signature(source, access)
        if not signature.n_bytes:
            return [], ""
        made = self.deployment
        return newcomers(signature, made.scheme, made.key, made.thresholds, access.against), text

    def _signature(self, source: Source, access: ApiToken) -> tuple[Signature, str]:
        if isinstance(source, ConsumerRecord) and type_of(source) == SIGNATURE_TYPE:
            signature = read_signature(source, self.deployment.scheme)
            require(access, signature.collection, signature.against)
            return signature, ""
        limits = self.deployment.document_limits
        document = source if isinstance(source, Unsigned) else read_document(source, limits)
        require(access, document.document.collection, document.document.against)
        against = tuple(dict.fromkeys((*document.document.against, *sorted(access.against))))
        named = document._replace(document=replace_fields(document.document, against=against))
        return self.signer.sign(*named), document.document.text or ""

    def _degraded(self, reason: CheckReason) -> CheckAnswer:
        return CheckAnswer(verdict="unknown", scheme=self.deployment.scheme.name, degraded=True, reason=reason)

    def _learning(
        self,
        learner: Learner | None,
        reading: asyncio.Future[Source],
        access: ApiToken,
        check: asyncio.Task[CheckAnswer],
    ) -> Learning | None:
        """Learn a document after its check if that was asked for and not too many are being learned.

        A fast worker would else add the document before its check, which would then count it as a copy of itself.
        """
        if learner is None or len(self.learning) >= UNCONFIRMED:
            return None

        async def learn() -> LearnReason:
            await asyncio.wait([check])
            if not check.cancelled():
                check.result()  # What cannot be checked would not be signed either.
            return await learner.learn(reading, access)

        task = asyncio.create_task(learn())
        self._count(self.learning, task)
        return task

    def _count(self, group: set[asyncio.Future[Any]], task: asyncio.Future[Any]) -> None:
        def ended(_: asyncio.Future[Any]) -> None:
            group.discard(task)
            error = None if task.cancelled() else task.exception()
            # `check` raises it, or has answered already.
            if error is not None and not isinstance(error, InvalidMessageError | RefusedError):
                log.error("a request failed", exc_info=error)

        group.add(task)
        task.add_done_callback(ended)


def _reason(learning: Learning | None) -> LearnReason:
    if learning is None:
        return "outbox_full"
    return learning.result() if learning.done() else "deadline"


def _bytes_of(source: Source) -> int:
    if isinstance(source, Unsigned):
        return len(source.document.text or "")
    if header(source.headers, "content-encoding") is not None:
        return MAX_BYTES
    return len(source.value or b"")
