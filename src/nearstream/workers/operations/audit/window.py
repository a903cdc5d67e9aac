"""Read the window of a deployment that an audit measures: documents, signatures and what was found."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, Topic
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.records import follow_events
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded
from nearstream.workers.pipeline.sign import parse_document
from nearstream.workers.pipeline.signature_records import arrival_of

Place = tuple[int, int]  # partition and offset on `documents`


def too_large(most: int, what: str) -> RefusalError:
    """Return the refusal of a window that holds more than an audit can keep in memory."""
    return RefusalError(f"the window holds more than {most} {what}: choose a later --since", Exit.USAGE)


@dataclass(frozen=True)
class Window:
    """The records of a deployment that an audit reads. It reads without a group, and writes nothing."""

    deployment: Deployment  # the deployment
    since_ms: int  # time of the oldest records, in milliseconds since 1970
    wait_seconds: float  # how long a broker may take to answer
    quiet: bool  # show no progress

    async def documents(self, job: Embedded) -> AsyncGenerator[tuple[ConsumerRecord, Unsigned | Removal]]:
        """Yield each readable document with its text, and each removal."""
        async with aclosing(self._records(DOCUMENTS)) as records:
            async for record in records:
                try:
                    parsed = parse_document(record, job.limits)
                    yield record, parsed if isinstance(parsed, Removal) else job.pages.with_text(parsed)
                except InvalidMessageError:
                    continue

    async def signatures(self) -> AsyncGenerator[Arrival]:
        """Yield each signature of the deployment's scheme, and each removal."""
        scheme, limits = self.deployment.scheme, self.deployment.document_limits
        async with aclosing(self._records(SIGNATURES)) as records:
            async for record in records:
                try:
                    arrival = arrival_of(record, scheme, limits)
                except InvalidMessageError:
                    continue
                if arrival.labelling is None:
                    yield arrival

    async def events(self) -> AsyncGenerator[Event]:
        """Yield all verdicts and events."""
        settings, since_ms = self.deployment.settings, self.since_ms
        found = follow_events(settings, self.wait_seconds, since_ms=since_ms, until_end=True)
        async with aclosing(found) as arrivals:
            async for _, event in arrivals:
                if event is not None:
                    yield event

    async def told(self) -> "Told":
        """Return what the deployment has found, by its verdicts and events."""
        told = Told()
        async with aclosing(self.events()) as events:
            async for event in events:
                told.add(event)
        return told

    async def _records(self, topic: Topic) -> AsyncGenerator[ConsumerRecord]:
        settings, progress = self.deployment.settings, Progress("read", 0, self.quiet)
        tps = await kafka_offsets.partitions(settings, [self.deployment.topic(topic)], self.wait_seconds)
        async with (
            kafka_client.consumer(settings, self.wait_seconds, fetch_wait_ms=1) as client,
            aclosing(kafka_records.follow(client, tps, since_ms=self.since_ms, until_end=True)) as records,
        ):
            async for record in records:
                yield record
                progress.step()
        progress.end()


@dataclass(frozen=True)
class Told:
    """What the deployment has found."""

    families: dict[Place, str] = field(default_factory=dict)  # id of the family of each document, by its place
    events: set[frozenset[Place]] = field(default_factory=set)  # the two places that each event names

    def add(self, event: Event) -> None:
        """Add a verdict or an event. A retraction says nothing about pairs."""
        if isinstance(event, DocumentVerdict):
            if event.partition is not None and event.offset is not None:
                self.families[event.partition, event.offset] = event.family.id
        elif not isinstance(event, Retraction):
            places = frozenset(place for ref in (event.newer, event.older) if (place := place_of(ref)) is not None)
            self.events.add(places)

    def pairs(self) -> Callable[[Place, Place], bool]:
        """Return a function that says whether a pair was found.

        It was found if both documents are in one family, or if an event connects their families. A document without a
        verdict is alone.
        """

        def families(*places: Place) -> frozenset[object]:
            return frozenset(self.families.get(place, place) for place in places)

        connected = {families(*places) for places in self.events}

        def is_found(one: Place, other: Place) -> bool:
            both = families(one, other)
            return len(both) == 1 or both in connected

        return is_found


def place_of(ref: DocumentRef) -> Place | None:
    """Return where the record of a document is on `documents`, if that is known."""
    return None if ref.partition is None or ref.offset is None else (ref.partition, ref.offset)
