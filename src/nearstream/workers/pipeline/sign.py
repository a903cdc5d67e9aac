"""Sign the records of `documents`."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from nearstream.schemas.documents.document import YEAR_9999_MS
from nearstream.schemas.documents.record import (
    INPUT,
    ConsumerRecord,
    Headers,
    ProducerRecord,
    as_sent,
    page_headers,
    traceparent,
)
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError, encode_signature, origin_header
from nearstream.schemas.topics.dead_letter import DeadLetter, Reason, Stage
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import Removal, parse_record
from nearstream.streams.signing.signer import Signer, Unsigned
from nearstream.workers.crawl.page import PageReader, ReadDocument, patience
from nearstream.workers.pipeline.dead_letters import DATA_ERRORS, DeadLetterWriter
from nearstream.workers.pipeline.step import cooperative_yield

GROUP_BYTES = 4 * 1024 * 1024  # of contents that are held at a time, or one longer content

_Parsed = tuple[ConsumerRecord, Unsigned | ProducerRecord]  # what a record holds: a document to sign, or a result

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Signing:
    """Turns records of `documents` into records of `signatures`."""

    signer: Signer  # signs the documents
    limits: DocumentLimits  # limits of a document
    topic: str  # where signatures are sent
    dead_letters: DeadLetterWriter  # writes the refused records
    pages: PageReader = field(default_factory=PageReader)  # turns HTML into text
    _pause: Callable[[], Awaitable[None]] = field(default_factory=cooperative_yield, compare=False)

    async def decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Return a signature, a removal or a dead letter for each record.

        A document with an empty text has no result. While a page becomes text, the event loop runs on.
        """
        try:
            return await self._decide(records)
        except DATA_ERRORS as error:
            if len(records) == 1:
                return [self.dead_letters.unprocessable(records[0], "sign", error)]
        return [sent for record in records for sent in await self.decide([record])]

    async def _decide(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        outgoing: list[ProducerRecord] = []
        group: list[_Parsed] = []
        until, held_bytes = patience(), 0
        for number, record in enumerate(records, 1):
            item = self._parse(record)
            group.append((record, item))
            held_bytes += _content_bytes(item) if isinstance(item, Unsigned) else 0
            await self._pause()
            if held_bytes > GROUP_BYTES or number == len(records):
                outgoing += await self._group(group, until)
                group, held_bytes = [], 0
        return outgoing

    async def _group(self, group: Sequence[_Parsed], until: float) -> list[ProducerRecord]:
        outgoing = []
        documents = [item for _, item in group if isinstance(item, Unsigned)]
        read = await self.pages.with_texts(documents, until)
        signed = zip(self.signer.sign_many(unsigned for unsigned, _ in read), read, strict=True)
        for record, item in group:
            result = self._signed(record, *next(signed)) if isinstance(item, Unsigned) else item
            if result is not None:
                outgoing.append(result)
            await self._pause()
        return outgoing

    def _parse(self, record: ConsumerRecord) -> Unsigned | ProducerRecord:
        try:
            parsed = parse_document(record, self.limits)
        except InvalidMessageError as error:
            return self._refused(record, "decode", error)
        if isinstance(parsed, Removal):
            return removal_record(self.topic, parsed, _passed_on(record))
        return parsed

    def _signed(
        self, record: ConsumerRecord, signature: Signature | InvalidMessageError, read: ReadDocument
    ) -> ProducerRecord | None:
        if isinstance(signature, InvalidMessageError):
            return self._refused(record, "sign", signature)
        if not signature.n_bytes:
            log.debug("empty text: %s %d %d", record.topic, record.partition, record.offset)
            return None
        passed_on = [*_passed_on(record), *page_headers(as_sent(read[1], record.headers))]
        return signature_record(self.topic, signature, passed_on, record.timestamp_ms)

    def _refused(self, record: ConsumerRecord, stage: Stage, error: InvalidMessageError) -> ProducerRecord:
        return self.dead_letters.write(DeadLetter(record, stage, error.reason, error.detail))


def parse_unsigned(record: ConsumerRecord, limits: DocumentLimits) -> Unsigned | Removal:
    """Parse a record of `documents` that holds a text to sign, or a removal."""
    parsed = parse_document(record, limits)
    if isinstance(parsed, Unsigned) and parsed.document.text is None:
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "cannot read HTML here, send its text")
    return parsed


def parse_document(record: ConsumerRecord, limits: DocumentLimits) -> Unsigned | Removal:
    """Parse a record of `documents`: a document to sign, whose content may be HTML, or a removal."""
    parsed = parse_record(record, limits)
    origin = None
    if record.topic != INPUT:
        origin = Origin(record.topic, record.partition, record.offset, min(max(record.timestamp_ms, 0), YEAR_9999_MS))
    if isinstance(parsed, Removal):
        return replace(parsed, origin=origin)
    return Unsigned(parsed.document, origin, parsed.degraded)


def signature_record(
    topic: str, signature: Signature, headers: Sequence[tuple[str, bytes | None]] = (), timestamp_ms: int | None = None
) -> ProducerRecord:
    """Return the record of `signatures` with a signature."""
    typed: Headers = [("content-type", b"application/msgpack"), *headers]
    return ProducerRecord(topic, signature.document_key.encode(), encode_signature(signature), typed, timestamp_ms)


def removal_record(topic: str, removal: Removal, headers: Headers) -> ProducerRecord:
    """Return the record of `signatures` that removes a document: a null value that names its origin."""
    named = [origin_header(removal.origin)] if removal.origin else []
    return ProducerRecord(topic, removal.document_key.encode(), None, [*named, *headers], removal.removed_at_ms)


def _content_bytes(unsigned: Unsigned) -> int:
    """Return about how many bytes of memory the content of a document takes."""
    document = unsigned.document
    return len(document.text or document.html or document.raw or "")


def _passed_on(record: ConsumerRecord) -> Headers:
    trace = traceparent(record.headers)
    return [("traceparent", trace)] if trace else []
