"""Matching of records of `signatures`."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.evidence import DocumentState, event_id
from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.documents.signature import SIGNATURE_MAX_BYTES
from nearstream.schemas.topics.codec import decode_event, encode_signature
from nearstream.schemas.topics.table import EVENT_TOPICS
from nearstream.schemas.verdicts.events import (
    Event,
    ExactDuplicate,
    Retraction,
)
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.matching.telling import Matched
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexBehindError, IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Position, Shape, Store, local_store
from nearstream.workers.pipeline.match import CATCH_UP_BATCH, Matching, SignatureTopic
from nearstream.workers.pipeline.step import Lost
from tests.support.matching import KEY, SCHEME, TIME, Emptied, Topic, matching, prose, record, signed


def event(sent: ProducerRecord) -> Event:
    assert sent.value is not None
    return decode_event(sent.value)


async def refusal(bad: ConsumerRecord) -> str:
    """Return the dead-letter reason of a record between two good ones.

    The good ones must get their event.
    """
    text = prose(1)
    before, after = record(signed("before", text)), record(signed("after", text, 1), 2)
    letter, said = sorted(
        await matching().decide([before, bad._replace(offset=1), after]),
        key=lambda sent: "dead-letters" not in sent.topic,
    )
    assert isinstance(event(said), ExactDuplicate)
    assert (letter.topic, letter.key, letter.value) == ("p.nearstream.dead-letters.v1", bad.key, bad.value)
    assert header(letter.headers, "nearstream-dead-stage") == b"match"
    return (header(letter.headers, "nearstream-dead-reason") or b"").decode()


WRONG_FIELDS: dict[str, list[Any]] = {
    "sketch": [b"", b"\0" * 511],
    "digest": [b"short"],
    "raw_digest": [b"\0" * 17],
    "ld": [b"\0\0\0"],
    "gaps": [b"\x01"],
    "rate": [3],
    "anchors": [b"\0" * 7, b"\0" * 16],
    "n_bytes": [-1, 0],
    "characters": [0],
    "words": [0],
    "degraded": [("y" * SIGNATURE_MAX_BYTES,)],
    "observed_at_ms": [-1, to_milliseconds(TIME + timedelta(days=2)) + 1, 2**62, 2**63],
}


def unreadable() -> Iterable[tuple[str, ConsumerRecord]]:
    """Yield records that are no signature of our scheme under its key, each with the reason of its dead letter."""
    good = signed("x", prose(2))
    value = encode_signature(good)
    other_key = HashKey.from_secret(b"another secret of at least 32 bytes")
    document = Document(id="x", text=prose(2), observed_at=TIME)
    too_few_fields = msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:15])
    for wrong in (b"", b"garbage", b"\xc1", b"{}", b"\xdc\xff\xff", value[:1], value[:300], value[:-1], too_few_fields):
        yield "invalid_signature", record(wrong, key=b"news/x")
    for field, values in WRONG_FIELDS.items():
        for wrong in values:
            yield "invalid_signature", record(msgspec.structs.replace(good, **{field: wrong}))
    no_calendar_holds = msgspec.structs.replace(good, observed_at_ms=2**61)
    yield "invalid_signature", record(no_calendar_holds)._replace(timestamp_ms=2**62)
    for key, label in ((other_key, "fine"), (KEY, "compact")):
        yield "other_scheme", record(Signer(preset(label, key), key).sign(document))
    for of_other in (b"news/y", b"mail/x", b"x", b"", b"\xff", None):
        yield "invalid_signature", record(value)._replace(key=of_other)


async def test_b61_b62_b63_b64_b65_what_is_no_signature_of_its_key_and_scheme_is_a_dead_letter() -> None:
    for reason, bad in unreadable():
        assert await refusal(bad) == reason, bad


async def test_a_removal_retracts_on_every_event_topic_and_no_later_event_names_the_document() -> None:
    job = matching()
    trace: Headers = [("traceparent", b"00-1")]
    removal = record(None, 2, b"news/a", trace)
    await job.decide([record(signed("a", prose(1))), record(signed("b", prose(1), 1), 1)])
    told = await job.decide([removal])
    assert [sent.topic for sent in told] == [f"p.{topic.name}" for topic in EVENT_TOPICS]
    for sent in told:
        said = event(sent)
        assert isinstance(said, Retraction)
        assert (sent.key, said.document_id, said.collection) == (b"news/a", "a", "news")
        assert said.removed_at == TIME + timedelta(days=1)
        at = str(removal.timestamp_ms)
        assert said.event_id == event_id("retraction", DocumentState("news/a"), DocumentState(position=at), SCHEME.name)
        assert header(sent.headers, "traceparent") == b"00-1"
    (after,) = await job.decide([record(signed("c", prose(1), 2), 3)])
    assert b'"a"' not in (after.value or b"")


async def test_a_removal_of_nothing_says_nothing_and_one_that_cannot_be_read_is_a_dead_letter() -> None:
    for key in (b"news/unknown", b"", None):
        assert await matching().decide([record(None, key=key)]) == []
    known = record(signed("x", prose(1)))
    for at_ms, key in ((known.timestamp_ms, b"\xff"), (-1, b"news/x"), (253_402_300_800_000, b"news/x")):
        (letter,) = await matching().decide([known, record(None, 1, key)._replace(timestamp_ms=at_ms)])
        assert (letter.topic, letter.value) == ("p.nearstream.dead-letters.v1", b"")
        assert header(letter.headers, "nearstream-dead-reason") == b"invalid_signature"


def family(count: int) -> list[ConsumerRecord]:
    """Return documents of one text, each an exact duplicate of all before it."""
    return [record(signed(f"d{number}", prose(1), number), number) for number in range(count)]


def ids(sent: Iterable[ProducerRecord]) -> set[str]:
    return {event(each).event_id for each in sent}


async def caught_up(job: Matching, records: list[ConsumerRecord]) -> list[ProducerRecord]:
    """Return what is delivered if the index is found behind and is caught up."""
    try:
        return await job.decide(records)
    except IndexBehindError as behind:
        lost = Lost(behind.partition, behind.checkpoint, records[0].offset)
        parts = [part async for part in job.catch_up(lost)]
        assert max(map(len, parts), default=0) <= CATCH_UP_BATCH * 21
        return [sent for part in parts for sent in part] + await job.decide(records)


async def test_only_what_the_index_lost_is_read_again_and_told_with_the_same_bytes() -> None:
    records = family(6)
    records[3] = record(b"garbage", 3, b"news/x")
    whole = await matching().decide(records)
    assert sum("dead" in sent.topic for sent in whole) == 1
    for known in (-1, 1):
        store = local_store()
        early = await matching(store=store).decide(records[: known + 1])
        topic = Topic(records, committed_offset=5, known={} if known < 0 else {0: known})
        told = [*early, *await caught_up(matching(topic, store), records[5:])]
        assert topic.reads == [(0, known + 1, 5)]
        assert {(sent.topic, sent.key, sent.value) for sent in told} == {
            (sent.topic, sent.key, sent.value) for sent in whole
        }


async def test_the_removal_of_a_document_in_the_gap_is_caught_up() -> None:
    records = [*family(2), record(None, 2, b"news/d0"), record(signed("d3", prose(1), 3), 3)]
    told = await caught_up(matching(Topic(records, committed_offset=3)), records[3:])
    named = [said for said in map(event, told) if isinstance(said, ExactDuplicate)]
    assert [(said.newer.id, said.older.id) for said in named] == [("d1", "d0"), ("d3", "d1")]
    assert sum(isinstance(event(sent), Retraction) for sent in told) == len(EVENT_TOPICS)


async def test_a_loss_in_the_middle_of_the_run_is_caught_up_too() -> None:
    records = family(6)
    topic, slot = Topic(records), Emptied()
    job = matching(topic, Store(slot, Shape(), IndexLimits()))
    await job.decide(records[:4])
    slot.empty()
    assert ids(await caught_up(job, records[4:])) == ids(await matching().decide(records))
    assert topic.reads == [(0, 0, 4)]


async def test_what_silent_partitions_lost_is_found_and_told_again() -> None:
    records = family(6)
    topic, slot = Topic(records), Emptied()
    job = matching(topic, Store(slot, Shape(), IndexLimits()))
    told = await job.decide(records)
    topic.known = {0: 5}
    assert await job.lost([0]) == []
    slot.empty()
    topic.known = {}
    (lost,) = await job.lost([0])
    assert lost == Lost(0, -1, 6)
    with pytest.raises(IndexBehindError):  # the slot notices it too, once
        await anext(job.catch_up(lost))
    again = [sent for part in [part async for part in job.catch_up(lost)] for sent in part]
    assert ids(again) == ids(told)
    topic.known = {0: 5}
    assert await job.lost([0]) == []


async def test_what_another_worker_acknowledged_counts_as_admitted_and_a_partition_never_read_lost_nothing() -> None:
    assert await matching(Topic(committed_offset=4)).lost([0, 3]) == [Lost(0, -1, 4), Lost(3, -1, 4)]
    assert await matching(Topic(committed_offset=-1)).lost([0, 1]) == []


async def test_partitions_that_leave_meanwhile_are_left_alone() -> None:
    topic = Topic(committed_offset=4)
    job = matching(topic)

    async def leaving() -> dict[int, int]:
        job.forget_positions()
        return {0: 0}

    assert await replace(job, checkpoints=leaving).lost([0]) == [Lost(0, 0, 4)]


async def test_after_a_batch_failed_each_of_its_records_counts_as_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    step = matching()
    match_all, asked = step.matcher.match_all, []

    async def match(arrivals: Sequence[Arrival], pause: Pause, *, is_again: bool) -> list[Matched]:
        asked.append((len(arrivals), is_again))
        if any(arrival.document_key == "news/bad" for arrival in arrivals):
            raise ValueError("what was stored of the document cannot be read")
        return await match_all(arrivals, pause, is_again=is_again)

    await step.decide([record(signed("first", prose(1)))])
    monkeypatch.setattr(step.matcher, "match_all", match)
    await step.decide([record(signed(name, prose(at)), at) for at, name in enumerate(("a", "bad", "b"), 1)])
    await step.decide([record(signed("last", prose(5)), 4)])
    assert asked == [(3, False), (1, True), (1, True), (1, True), (1, False)]


async def test_dead_letters_are_covered_like_documents() -> None:
    """They are acknowledged too, and the next owner must not find the index behind them."""
    good, junk = family(2), [record(b"garbage", offset, b"news/x") for offset in (2, 4)]
    topic = Topic()
    job = matching(topic)
    await job.decide([good[0], good[1], junk[0]])
    assert topic.covered == [Position(0, 2)]
    await job.decide([junk[1]])
    assert topic.covered[1:] == [Position(0, 4)]


async def test_positions_that_were_asked_for_before_a_rebalance_do_not_outlast_it() -> None:
    """Otherwise a loss of documents that were acknowledged meanwhile would go unnoticed."""
    records = family(6)
    topic = Topic(records)
    job = matching(topic)
    await job.decide(records[:2])
    job.forget_positions()

    async def overtaken(partitions: Iterable[int]) -> dict[int, int]:
        job.forget_positions()
        return dict.fromkeys(partitions, 2)

    job.topic = SignatureTopic(overtaken, topic.read_range)
    await job.lost([0])
    job.topic = SignatureTopic(topic.committed, topic.read_range)
    topic.committed_offset = 5
    with pytest.raises(IndexBehindError):
        await job.decide(records[5:])


async def test_a_gap_that_a_rebalance_overtakes_is_caught_up_without_another_gap() -> None:
    records = [record(signed(f"d{number}", prose(number, 60), number), number) for number in range(2 * CATCH_UP_BATCH)]
    slot = Emptied()
    job = matching(Topic(records), Store(slot, Shape(), IndexLimits()))
    parts = job.catch_up(Lost(0, -1, len(records)))
    await anext(parts)
    job.forget_positions()
    slot.empty()
    with pytest.raises(IndexBehindError):
        await anext(parts)


class Slow(Local):
    """Slots that answer the calls of one partition only when told to."""

    def __init__(self, partition: int) -> None:
        super().__init__([Part(IndexLimits())])
        self.partition, self.go_on, self.asked = partition, asyncio.Event(), asyncio.Event()

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        if any(call.partition == self.partition for call in calls):
            self.asked.set()
            await self.go_on.wait()
        return await super().all(calls)


async def test_a_batch_that_ends_late_does_not_set_back_the_positions_of_other_partitions() -> None:
    """Otherwise a loss of what was done meanwhile would go unnoticed."""
    slots, topic = Slow(1), Topic()
    job = matching(topic, Store(slots, Shape(1, 2), IndexLimits()))
    mine = [record(signed(f"a{number}", prose(number), number), number) for number in range(4)]
    theirs = record(signed("b", prose(9)), 0)._replace(partition=1)
    await job.decide(mine[:1])
    late = asyncio.create_task(job.decide([theirs]))
    await slots.asked.wait()
    await job.decide(mine[1:3])
    slots.go_on.set()
    await late
    await job.decide(mine[3:])
    assert topic.covered == [(0, 0), (0, 2), (1, 0), (0, 3)]
    topic.known[0] = 2
    assert await job.lost([0, 1]) == [Lost(0, 2, 4)]
