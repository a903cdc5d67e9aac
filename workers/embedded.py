"""The main job in this process, without a server: documents in, events out, one at a time."""

import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from schemas.codec import InvalidMessageError
from schemas.events import Event
from schemas.record import Record
from schemas.signature import Origin
from streams.completion import Bounds
from streams.matcher import Arrival, Matcher
from streams.memory_index import MemoryIndex
from streams.receive import Removal, receive
from streams.signer import Signer
from workers import assembly
from workers.settings import Settings
from workers.sources import INPUT, Item


@dataclass(frozen=True)
class Outcome:
    """What became of one record: its events, or why it was refused."""

    place: str
    events: tuple[Event, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class Embedded:
    """Signer and matcher over an index in this process: the reference that every deployment must equal."""

    signer: Signer
    matcher: Matcher
    bounds: Bounds

    async def outcomes(self, items: Iterable[Item]) -> AsyncIterator[Outcome]:
        """The outcome of each record, in order."""
        for place, record in items:
            try:
                yield Outcome(place, tuple(await self._events(record)))
            except InvalidMessageError as error:
                yield Outcome(place, refusal=str(error))

    async def _events(self, record: Record) -> Iterable[Event]:
        received = receive(record, self.bounds)
        if isinstance(received, Removal):
            told = await self.matcher.match_all([Arrival(received.document_key, None, None, received.removed_at_ms)])
            return told[0]
        origin = Origin(record.topic, record.partition, record.offset) if record.topic != INPUT else None
        signature = self.signer.sign(received.document, origin, received.degraded)
        return await self.matcher.match(signature) if signature.n_bytes else ()


def embedded(settings: Settings) -> Embedded:
    """The main job over a fresh index.

    Raises:
        SettingsError: Bands, rows or thresholds do not fit together.
    """
    key = assembly.hash_key(settings)
    index = MemoryIndex(assembly.limits(settings), clock=lambda: time.time_ns() // 1_000_000)
    return Embedded(assembly.signer(settings, key), assembly.matcher(settings, index, key), assembly.bounds(settings))
