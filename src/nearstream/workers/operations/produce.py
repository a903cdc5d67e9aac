"""Send documents from files to the `documents` topic."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.ingest.parse import parse_record
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.source import Refused, count_lines, read
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.reading import reported
from nearstream.workers.operations.signatures import read_signatures
from nearstream.workers.operations.terminal import PATH_CHARACTERS, Progress, escaped, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.document_records import record_key
from nearstream.workers.pipeline.sign import signature_record

BATCH = 500


@dataclass
class Produced:
    """The number of documents sent, and of files and documents refused.

    Attributes:
        sent: Documents sent.
        refused: Files and documents refused.
        incomplete: Documents that were read in part, by reason.
        passed_over: Records of WARC files that hold no page to send, by reason.
    """

    sent: int = 0
    refused: int = 0
    incomplete: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)

    def refuse(self, source: str, reason: str) -> None:
        """Report a file or document that cannot be read."""
        self.refused += 1
        print_message(f"refused {escaped(source, PATH_CHARACTERS)}: {reason}")


async def produce_files(deployment: Deployment, paths: Sequence[str], wait_seconds: float, *, quiet: bool) -> Produced:
    """Send every readable document of the paths.

    An unreadable file or document is reported on stderr and left out.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    topic, produced = deployment.topic(DOCUMENTS), Produced()
    progress = Progress("sent", count_lines(paths), quiet)
    await kafka_offsets.partitions(deployment.settings, [topic], wait_seconds)
    records = _readable(topic, deployment, paths, produced)
    await _send(deployment.settings, records, wait_seconds, progress)
    produced.sent = progress.done
    return produced


async def produce_signatures(
    deployment: Deployment, paths: Sequence[str], wait_seconds: float, *, quiet: bool
) -> Produced:
    """Send every signature of the files, which `nearstream sign` has written elsewhere.

    One that cannot be read, or has another scheme or key, is reported on stderr and left out.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    topic, produced, progress = deployment.topic(SIGNATURES), Produced(), Progress("sent", quiet=quiet)
    await kafka_offsets.partitions(deployment.settings, [topic], wait_seconds)

    def records() -> Iterator[ProducerRecord]:
        for item in read_signatures(deployment.scheme, paths):
            if isinstance(item, Refused):
                produced.refuse(item.source, item.reason)
            else:
                yield signature_record(topic, item.signature)

    await _send(deployment.settings, records(), wait_seconds, progress)
    produced.sent = progress.done
    return produced


async def _send(settings: Settings, records: Iterable[ProducerRecord], wait_seconds: float, progress: Progress) -> None:
    """Send records in batches, and count those that Kafka has confirmed."""
    try:
        async with kafka_records.sender(settings, wait_seconds) as send_all:
            for batch in kafka_records.batched(records, BATCH):
                await send_all(batch)
                progress.step(len(batch))
    except (asyncio.CancelledError, KeyboardInterrupt):
        print_message(f"interrupted: {progress.done} were confirmed")
        raise
    progress.end()


def _readable(topic: str, deployment: Deployment, paths: Sequence[str], produced: Produced) -> Iterator[ProducerRecord]:
    """Yield the readable documents of the paths, and report what is not."""
    items = read(paths, deployment.key, produced.passed_over, deployment.settings.mail_content)
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
