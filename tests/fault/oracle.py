"""What a single process says that is fed one document at a time."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.codec import InvalidMessageError, encode_event
from schemas.record import Record
from schemas.signature import Origin
from streams.matcher import Arrival
from streams.memory_index import MemoryIndex
from streams.receive import Removal, receive
from workers import assembly
from workers.settings import Settings

Place = tuple[int, int]
"""Partition and offset of a record of `documents`."""


@dataclass
class Expected:
    """The outcome of every record.

    Attributes:
        events: Event id to value.
        empty: Documents that leave nothing.
        refused: Records that become dead letters, with the reason of each.
        removed: Removals, with the document key of each.
        overflows: Full buckets met; unless 0, order decides what is found, and a comparison means nothing.
    """

    events: dict[str, bytes] = field(default_factory=dict)
    empty: set[Place] = field(default_factory=set)
    refused: dict[Place, str] = field(default_factory=dict)
    removed: dict[Place, str] = field(default_factory=dict)
    overflows: int = 0


def in_order_of_time(records: Iterable[Record]) -> list[Record]:
    """Records as they were sent, whatever partition they went to."""
    return sorted(records, key=lambda record: (record.timestamp_ms, record.partition, record.offset))


async def expected(settings: Settings, records: Iterable[Record]) -> Expected:
    """What must become of these records of `documents`, taken one at a time in the order given."""
    key = assembly.hash_key(settings)
    signer, bounds = assembly.signer(settings, key), assembly.bounds(settings)
    index = MemoryIndex(assembly.limits(settings), clock=lambda: time.time_ns() // 1_000_000)
    matcher = assembly.matcher(settings, index, key)
    outcome = Expected()
    for record in records:
        place = record.partition, record.offset
        try:
            received = receive(record, bounds)
            if isinstance(received, Removal):
                outcome.removed[place] = received.document_key
                arrival = Arrival(received.document_key, None, None, received.removed_at_ms)
            else:
                signature = signer.sign(received.document, Origin(record.topic, *place), received.degraded)
                if not signature.n_bytes:
                    outcome.empty.add(place)
                    continue
                arrival = Arrival(signature.document_key, signature)
        except InvalidMessageError as error:
            outcome.refused[place] = str(error.reason)
            continue
        for event in (await matcher.match_all([arrival]))[0]:
            outcome.events[event.event_id] = encode_event(event)
    outcome.overflows = matcher.counts.full_buckets
    return outcome
