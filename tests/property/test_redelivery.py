"""Redelivered records add no event, whatever the order of the partitions."""

import asyncio
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import ParsedDocument, parse_record
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Position, Shape
from tests.fault.corpus import corpus
from tests.support.stores import parts_store

KEY = HashKey.public()
SCHEME = preset("fine", KEY)
PARTITIONS = 3
FOR_EVER = IndexLimits(retention_seconds=0)
ALL_PAIRS = IndexLimits(retention_seconds=0, events_per_family=0)
FIRST_MS = 1_790_000_000_000

# Each turn is a partition, its number of new records, and how many of them are redelivered after that.
TURNS = st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(1, 9), st.integers(0, 9)), max_size=60)


@cache
def partitions() -> list[list[Signature]]:
    """Return signatures of documents with planted relations, per partition.

    The document key decides on the partition.
    """
    signer, dealt = Signer(SCHEME, KEY), [list[Signature]() for _ in range(PARTITIONS)]
    for offset, sent in enumerate(corpus(60, 5)):
        received = parse_record(
            ConsumerRecord(DOCUMENTS.name, 0, offset, FIRST_MS + offset, *sent, []), DocumentLimits()
        )
        assert isinstance(received, ParsedDocument)
        signature = signer.sign(received.document)
        if signature.n_bytes:
            dealt[sum(signature.document_key.encode()) % PARTITIONS].append(signature)
    return dealt


async def told(
    turns: list[tuple[int, int, int]], limits: IndexLimits
) -> tuple[set[str], set[bytes], set[tuple[str, ...]]]:
    """Return what was sent in these turns and about the rest of each partition: ids of events, verdicts, families."""
    matcher, done = Matcher(parts_store(limits, Shape(1, PARTITIONS)), SCHEME, KEY), [0] * PARTITIONS
    events, verdicts, families = set[str](), set[bytes](), set[tuple[str, ...]]()
    for part, count, again in [*turns, *((part, len(each), 0) for part, each in enumerate(partitions()))]:
        end = min(done[part] + count, len(partitions()[part]))
        for offset in (*range(done[part], end), *range(max(0, end - again), end)):
            signature = partitions()[part][offset]
            arrival = Arrival(signature.document_key, signature, Position(part, offset))
            (matched,) = await matcher.match_all([arrival])
            said = matched.verdict
            assert said is not None
            verdicts.add(encode_json(said))
            families.add((said.event_id, said.verdict, said.family.id))
            events |= {event.event_id for event in matched.events}
        done[part] = end
    return events, verdicts, families


@cache
def all_pairs() -> set[str]:
    events, _, _ = asyncio.run(told([], ALL_PAIRS))
    return events


@settings(max_examples=8)
@given(TURNS)
def test_a_redelivered_document_adds_no_event_of_any_pair(turns: list[tuple[int, int, int]]) -> None:
    assert len(all_pairs()) > 15
    events, _, _ = asyncio.run(told(turns, ALL_PAIRS))
    assert events == all_pairs()


@settings(max_examples=12)
@given(TURNS)
def test_a_redelivered_document_adds_no_verdict_and_no_family(turns: list[tuple[int, int, int]]) -> None:
    """A later document may name another member of a family than it would have named otherwise."""
    once = asyncio.run(told([(part, count, 0) for part, count, _ in turns], FOR_EVER))
    again = asyncio.run(told(turns, FOR_EVER))
    assert again[2] == once[2]
    assert len(once[1]) == len(again[1]) == sum(map(len, partitions()))
    assert once[0] | again[0] <= all_pairs()
