"""Records that come again, in whatever order their partitions take turns, add nothing."""

import asyncio
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.record import Record
from schemas.signature import Signature
from schemas.topics import DOCUMENTS
from streams.completion import Bounds
from streams.hashing import HashKey
from streams.index import IndexLimits, Position
from streams.matcher import Arrival, Matcher
from streams.memory_index import MemoryIndex
from streams.receive import Received, receive
from streams.scheme import preset
from streams.signer import Signer
from tests.fault.corpus import corpus

KEY = HashKey.public()
SCHEME = preset("standard", KEY)
PARTITIONS = 3
FOR_EVER = IndexLimits(retention_seconds=0)
FIRST_MS = 1_790_000_000_000

# Which partition goes on, by how many records, and how many of them come again after that.
TURNS = st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(1, 9), st.integers(0, 9)), max_size=60)


@cache
def partitions() -> list[list[Signature]]:
    """Signatures of documents with planted relations, dealt to partitions by their document keys."""
    signer, dealt = Signer(SCHEME, KEY), [list[Signature]() for _ in range(PARTITIONS)]
    for offset, sent in enumerate(corpus(60, 5)):
        received = receive(Record(DOCUMENTS.name, 0, offset, FIRST_MS + offset, *sent, []), Bounds())
        assert isinstance(received, Received)
        signature = signer.sign(received.document)
        if signature.n_bytes:
            dealt[sum(signature.document_key.encode()) % PARTITIONS].append(signature)
    return dealt


async def told(turns: list[tuple[int, int, int]]) -> set[str]:
    """Ids of all events; when the turns are over, each partition goes on to its end."""
    matcher, done, ids = Matcher(MemoryIndex(FOR_EVER), SCHEME, KEY), [0] * PARTITIONS, set[str]()
    for part, count, again in [*turns, *((part, len(each), 0) for part, each in enumerate(partitions()))]:
        end = min(done[part] + count, len(partitions()[part]))
        for offset in (*range(done[part], end), *range(max(0, end - again), end)):
            signature = partitions()[part][offset]
            arrival = Arrival(signature.document_key, signature, Position(part, offset, offset - 1))
            ids |= {event.event_id for events in await matcher.match_all([arrival]) for event in events}
        done[part] = end
    return ids


@settings(max_examples=15, deadline=None)
@given(TURNS)
def test_a_redelivered_document_adds_no_event(turns: list[tuple[int, int, int]]) -> None:
    once = asyncio.run(told([]))
    assert len(once) > 15
    assert asyncio.run(told(turns)) == once
