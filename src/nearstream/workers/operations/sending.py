"""Send documents, signatures, removals and labels to Kafka."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nearstream.schemas.documents.document import ADDRESS_BYTES, document_key
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import Label, is_label_key
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.ingest.parse import parse_record, record_key, removal_of
from nearstream.workers.files.source import Item, Refused, bytes_of, read
from nearstream.workers.files.tables import Columns
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.whole_topic import read_topic
from nearstream.workers.mail.headers import address_hash
from nearstream.workers.operations.inspection import DocumentStatus
from nearstream.workers.operations.signatures import read_signatures, reported
from nearstream.workers.operations.terminal import PATH_CHARACTERS, Progress, escaped, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.sign import signature_record
from nearstream.workers.pipeline.signature_records import label_record
from nearstream.workers.redis.index.index import RedisIndex, index_to_read
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.reading.inspect import inspect_document
from nearstream.workers.redis.reading.members import current_state, labels_of, spellings, stored_family

BATCH = 500


@dataclass
class Produced:
    """The number of documents sent, and of files and documents refused."""

    sent: int = 0  # documents sent
    refused: int = 0  # files and documents refused
    incomplete: Counter[str] = field(default_factory=Counter)  # documents that were read in part, by reason
    # Records of WARC files that hold no page to send, by reason.
    passed_over: Counter[str] = field(default_factory=Counter)

    def refuse(self, source: str, reason: str) -> None:
        """Report a file or document that cannot be read."""
        self.refused += 1
        print_message(f"refused {escaped(source, PATH_CHARACTERS)}: {reason}")


async def produce_files(
    deployment: Deployment, paths: Sequence[str], wait_seconds: float, columns: Columns, *, quiet: bool
) -> Produced:
    """Send every readable document of the paths, and report the others on stderr."""
    topic, produced = deployment.topic(DOCUMENTS), Produced()
    progress = Progress("sent", bytes_of(paths), quiet, place=0)
    items = read(paths, deployment.key, produced.passed_over, deployment.mail_rules(), columns)
    records = _readable(topic, deployment, progress.reach(items), produced)
    produced.sent = await _send(deployment, topic, records, wait_seconds, progress)
    return produced


async def produce_signatures(
    deployment: Deployment, paths: Sequence[str], wait_seconds: float, *, quiet: bool
) -> Produced:
    """Send every signature of the files, which `nearstream sign` has written elsewhere.

    One that cannot be read, or has another scheme or key, is reported on stderr and left out.
    """
    topic, produced, progress = deployment.topic(SIGNATURES), Produced(), Progress("sent", quiet=quiet)

    def records() -> Iterator[ProducerRecord]:
        for item in read_signatures(deployment.scheme, paths):
            if isinstance(item, Refused):
                produced.refuse(item.source, item.reason)
            else:
                yield signature_record(topic, item.signature)

    produced.sent = await _send(deployment, topic, records(), wait_seconds, progress)
    return produced


async def produce_indexes(
    deployment: Deployment, paths: Sequence[str], wait_seconds: float, *, quiet: bool
) -> Produced:
    """Send all signatures and labels of indexes in files, with their times."""
    topic, produced, progress = deployment.topic(SIGNATURES), Produced(), Progress("sent", quiet=quiet)
    for path in paths:
        with deployment.index_file(path, may_create=False) as index:
            records = (ProducerRecord(topic, key, value, [], at_ms) for key, at_ms, value in index.records())
            produced.sent = await _send(deployment, topic, records, wait_seconds, progress)
    return produced


async def _send(
    deployment: Deployment,
    topic: str,
    records: Iterable[ProducerRecord],
    wait_seconds: float,
    progress: Progress | None = None,
) -> int:
    progress = progress or Progress("sent", quiet=True)
    await kafka_offsets.partitions(deployment.settings, [topic], wait_seconds)
    try:
        async with kafka_records.sender(deployment.settings, wait_seconds) as send_all:
            for batch in kafka_records.batched(records, BATCH):
                await send_all(batch)
                progress.step(len(batch))
    except (asyncio.CancelledError, KeyboardInterrupt):
        print_message(f"interrupted: {progress.done} were confirmed")
        raise
    progress.end()
    return progress.done


def _readable(
    topic: str, deployment: Deployment, items: Iterable[Item | Refused], produced: Produced
) -> Iterator[ProducerRecord]:
    for item in reported(items, produced.incomplete):
        if isinstance(item, Refused):
            produced.refuse(item.source, item.reason)
            continue
        try:
            key = record_key(parse_record(item.record, deployment.document_limits)) or item.record.key
        except InvalidMessageError as error:
            produced.refuse(item.source, str(error))
        else:
            yield ProducerRecord(topic, key, item.record.value, item.record.headers)


async def remove_documents(
    deployment: Deployment, ids: Sequence[str], collection: str, wait_seconds: float
) -> dict[str, DocumentStatus]:
    """Send the removals of documents, and return the former status by document key."""
    topic = deployment.topic(DOCUMENTS)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        removed = {key: await _status(index, key) for key in (document_key(collection, name) for name in ids)}
    await _send(deployment, topic, [removal_of(topic, name, collection) for name in ids], wait_seconds)
    return removed


async def mails_of(deployment: Deployment, address: str, collection: str, wait_seconds: float) -> list[str]:
    """Return the ids of the mails that an address has sent or got.

    All of the topic `signatures` is read.
    """
    wanted, found = bytes.fromhex(address_hash(address, deployment.key)), dict[bytes | None, str]()

    def take(record: ConsumerRecord) -> None:
        if is_label_key(record.key):
            return
        found.pop(record.key, None)
        if record.value is not None:
            mail = decode_signature(record.value)
            people = {mail.sender, *(mail.recipients[at : at + ADDRESS_BYTES] for at in range(0, 512, ADDRESS_BYTES))}
            if mail.collection == collection and wanted in people:
                found[record.key] = mail.id

    await read_topic(deployment.settings, SIGNATURES.name, take, wait_seconds, until_end=True)
    return list(found.values())


async def _status(index: RedisIndex, key: str) -> DocumentStatus:
    states = await inspect_document(index, key)
    if not states:
        return "unknown"
    return "expired" if states[0].expired else "live"


# A document to be labelled: its collection, its id, and its signature, with which it is labelled where the index does
# not have it. None: only its id is known.
Target = tuple[str, str, Signature | None]


class Labelled(NamedTuple):
    """What became of a document to be labelled."""

    document_id: str  # its id
    is_sent: bool  # whether its label was sent
    is_new: bool = False  # its signature was sent before, because the index did not have it
    # Of one that is unknown: another way to write its id, which the index knows. None: it knows none.
    known: str | None = None


async def label_documents(
    deployment: Deployment, targets: Sequence[Target], label: Label, wait_seconds: float
) -> list[Labelled]:
    """Send the label of each document that the index has, or whose signature is given."""
    topic = deployment.topic(SIGNATURES)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        looked_up = [await _look_up(index, *target) for target in targets]
    given_ms, records = time.time_ns() // 1_000_000, []
    for (collection, name, signature), labelled in zip(targets, looked_up, strict=True):
        if labelled.is_new and signature is not None:
            records.append(signature_record(topic, signature))
        if labelled.is_sent:
            records.append(label_record(topic, document_key(collection, name), label, given_ms))
    if records:
        await _send(deployment, topic, records, wait_seconds)
    return looked_up


async def decide_label(
    deployment: Deployment, collection: str, family: str, wait_seconds: float, *, confirms: bool
) -> list[str] | None:
    """Confirm the labels of a family, also before they are suspended, or take suspended ones back.

    Returns the ids of the labelled documents. None: no label of this family is suspended or confirmed.
    """
    topic = deployment.topic(SIGNATURES)
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        guards = LabelGuards(index.client, deployment.settings.namespace)
        guard = await guards.read(collection, family)
        if guard is None and not confirms:
            return None
        stored = await stored_family(index, document_key(collection, guard.document)) if guard else None
        names = [name for name, _ in await labels_of(index, stored)] if stored else []
        if confirms:
            await guards.confirm(collection, family, guard)
            return names
        given_ms = time.time_ns() // 1_000_000
        taken_back = [label_record(topic, document_key(collection, name), None, given_ms) for name in names]
        await _send(deployment, topic, taken_back, wait_seconds)
        await guards.forget(collection, family)
        return names


async def _look_up(index: RedisIndex, collection: str, name: str, signature: Signature | None) -> Labelled:
    known = [each for each in spellings(name) if await current_state(index, document_key(collection, each))]
    if name in known:
        return Labelled(name, is_sent=True)
    if signature is not None:
        return Labelled(name, is_sent=True, is_new=True)
    return Labelled(name, is_sent=False, known=next(iter(known), None))
