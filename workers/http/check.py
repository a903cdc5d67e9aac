"""Check one document against the shared index, within a deadline."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

from nearstream.schemas.check import CheckAnswer, CheckReason
from nearstream.schemas.record import ConsumerRecord, header
from nearstream.streams.checking import answer, find, newcomer
from nearstream.streams.counterpart import Newcomer
from nearstream.streams.index.contract import IndexLostError, IndexUnavailableError
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.signing.signer import MAX_BYTES, Signer, Unsigned
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.http.reading import is_mail, read_document, read_mail
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.families import family_of
from nearstream.workers.redis_index.index import RedisIndex

DEADLINE_SECONDS = 0.15
AT_ONCE = 64  # requests in work
_PAUSE_SECONDS = 0.05
_SHORT_BYTES, _FEW_CANDIDATES = 32_768, 16

_NOTHING = Keys(bytes(8), None, (), ())

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

log = logging.getLogger(__name__)


class BusyError(Exception):
    """As many requests as allowed are in work."""


@dataclass(frozen=True)
class Checker:
    """Answers what documents are to those in the index, and adds nothing to it.

    Attributes:
        deployment: Its scheme, key and limits.
        signer: Signs the documents.
        index: The shared index.
        html: Processes that turn the HTML of mails into text.
        readers: Threads for reading mails, which wait for those processes.
        cpu: One thread for signing and comparing large texts, so that they delay no deadline of another request.
        running: Tasks of requests in work. One that missed its deadline remains until it has ended.
    """

    deployment: Deployment
    signer: Signer
    index: RedisIndex
    html: HtmlProcesses
    readers: Executor
    cpu: Executor
    running: set[asyncio.Task[CheckAnswer]] = field(default_factory=set)

    async def check(self, record: ConsumerRecord) -> CheckAnswer:
        """Return the answer about the document of a record, degraded if the index does not answer in time.

        Raises:
            InvalidMessageError: The record holds no document.
            BusyError: As many requests as allowed are in work.
        """
        if len(self.running) >= AT_ONCE:
            raise BusyError
        task = asyncio.create_task(self._check(record))
        self.running.add(task)
        task.add_done_callback(self._ended)
        done, _ = await asyncio.wait({task}, timeout=DEADLINE_SECONDS)
        if done:
            return task.result()
        # The task is not awaited, because a client that is closing a connection may take longer to end.
        task.cancel()
        return self._degraded("deadline")

    async def ready(self, seconds: float) -> str:
        """Return why checks would get degraded answers now, or an empty text."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self.index.look_up(_NOTHING, 1)
                return ""
            except (IndexLostError, SettingsError) as error:
                return str(error)
            except (IndexUnavailableError, TimeoutError):
                if loop.time() + _PAUSE_SECONDS >= deadline:
                    return f"Redis did not answer within {seconds:g} s"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _check(self, record: ConsumerRecord) -> CheckAnswer:
        source: ConsumerRecord | Unsigned = record
        if is_mail(record):
            loop = asyncio.get_running_loop()
            source = await loop.run_in_executor(self.readers, read_mail, record, self.deployment.key, self.html)
        asked = await self._computed(_bytes_of(source), self._newcomer, source)
        if asked is None:
            return CheckAnswer(
                verdict="unknown", scheme=self.deployment.scheme.name, low_confidence=(BELOW_MIN_LENGTH,)
            )
        try:
            near = await self.index.neighbours(asked.keys, self.deployment.index_limits.candidates)
        except IndexUnavailableError:
            return self._degraded("index_unavailable")
        except IndexLostError:
            return self._degraded("index_lost")
        except SettingsError as error:
            log.warning("a check was refused by the index: %s", error)
            return self._degraded("index_refused")
        work = asked.signature.n_bytes * max(1, len(near.candidates) // _FEW_CANDIDATES)
        found = await self._computed(work, find, asked, near.candidates)
        family = family_of(near, found.joins.candidate) if found.joins else None
        return answer(found, family, self.deployment.settings.bulk_count)

    async def _computed(self, n_bytes: int, compute: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Compute at once what takes less than a millisecond, and anything else in the thread for it.

        The way to the thread and back costs as much as the work on a short text.
        """
        if n_bytes <= _SHORT_BYTES:
            return compute(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.cpu, compute, *arguments)

    def _newcomer(self, source: ConsumerRecord | Unsigned) -> Newcomer | None:
        """Sign a document, which is read first if it is no mail, unless it has no words."""
        limits = self.deployment.document_limits
        document = source if isinstance(source, Unsigned) else read_document(source, limits)
        signature = self.signer.sign(*document)
        if not signature.n_bytes:
            return None
        return newcomer(signature, self.deployment.scheme, self.deployment.key, self.deployment.thresholds)

    def _degraded(self, reason: CheckReason) -> CheckAnswer:
        return CheckAnswer(verdict="unknown", scheme=self.deployment.scheme.name, degraded=True, reason=reason)

    def _ended(self, task: asyncio.Task[CheckAnswer]) -> None:
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # `check` raises it, or has answered already


def _bytes_of(source: ConsumerRecord | Unsigned) -> int:
    """Return the size of what is signed, or the largest if it has to be unpacked first."""
    if isinstance(source, Unsigned):
        return len(source.document.text or "")
    if header(source.headers, "content-encoding") is not None:
        return MAX_BYTES
    return len(source.value or b"")
