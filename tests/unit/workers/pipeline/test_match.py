"""Matching of records of `signatures`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.evidence import DocumentState, event_id
from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.documents.signature import SIGNATURE_MAX_BYTES, Signature
from nearstream.schemas.topics.codec import decode_event, encode_signature
from nearstream.schemas.topics.table import EVENT_TOPICS
from nearstream.schemas.verdicts.events import (
    Containment,
    Event,
    ExactDuplicate,
    NearDuplicate,
    Rearranged,
    Retraction,
    Version,
)
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.matching.telling import Matched
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexBehindError, IndexLimits
from nearstream.streams.store.store import Position, Shape, Store, local_store
from nearstream.workers.pipeline.match import CATCH_UP_BATCH, Matching, SignatureTopic
from nearstream.workers.pipeline.step import Lost
from tests.support.matching import KEY, SCHEME, TIME, Emptied, Topic, matching, prose, record, signed


def edited(text: str, every: int = 60) -> str:
    """Return the text with a few words replaced."""
    return " ".join("other" if at % every == every - 1 else word for at, word in enumerate(text.split()))


def swapped(text: str) -> str:
    """Return the text with its halves swapped."""
    words = text.split()
    return " ".join(words[len(words) // 2 :] + words[: len(words) // 2])


async def decided(*values: Signature | bytes | None) -> list[ProducerRecord]:
    return await matching().decide([record(value, offset) for offset, value in enumerate(values)])


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


@pytest.mark.parametrize("value", [b"", b"garbage", b"\xc1", b"\x80", b"{}", b"\x93\x01\x02\x03", b"\xdc\xff\xff"])
async def test_b61_what_is_no_signature_is_a_dead_letter(value: bytes) -> None:
    assert await refusal(record(value, key=b"news/x")) == "invalid_signature"


@pytest.mark.parametrize("cut", [1, 3, 40, 300, -1])
async def test_b61_a_truncated_signature_is_a_dead_letter(cut: int) -> None:
    assert await refusal(record(encode_signature(signed("x", prose(2)))[:cut], key=b"news/x")) == "invalid_signature"


async def test_b61_a_signature_with_too_few_fields_is_a_dead_letter() -> None:
    fields = msgspec.msgpack.decode(encode_signature(signed("x", prose(2))))
    assert await refusal(record(msgspec.msgpack.encode(fields[:15]), key=b"news/x")) == "invalid_signature"


@pytest.mark.parametrize(
    "change",
    [
        {"sketch": b""},
        {"sketch": b"\0" * 511},
        {"digest": b"short"},
        {"raw_digest": b"\0" * 17},
        {"ld": b"\0\0\0"},
        {"gaps": b"\x01"},
        {"rate": 3},
        {"anchors": b"\0" * 7},
        {"anchors": b"\0" * 16},
        {"n_bytes": -1},
        {"n_bytes": 0},
        {"characters": 0},
        {"words": 0},
        {"collection": "NEWS"},
        {"id": "a\nb"},
        {"labels": {"Lang": "x"}},
        {"url": "x" * 4097},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_b61_wrong_lengths_and_fields_inside_are_a_dead_letter(change: dict[str, object]) -> None:
    spoiled = msgspec.structs.replace(signed("x", prose(2)), **change)
    assert await refusal(record(spoiled)) == "invalid_signature"


async def test_b62_a_value_over_128_kib_is_a_dead_letter() -> None:
    huge = msgspec.structs.replace(signed("x", prose(2)), degraded=("y" * SIGNATURE_MAX_BYTES,))
    assert await refusal(record(huge)) == "invalid_signature"


async def test_b63_a_signature_of_another_scheme_or_key_is_a_dead_letter() -> None:
    elsewhere = HashKey.from_secret(b"another secret of at least 32 bytes")
    document = Document(id="x", text=prose(2), observed_at=TIME)
    for key, label in ((elsewhere, "fine"), (KEY, "compact")):
        assert await refusal(record(Signer(preset(label, key), key).sign(document))) == "other_scheme"


@pytest.mark.parametrize("key", [b"news/y", b"mail/x", b"x", b"", b"\xff", None])
async def test_b64_a_record_under_the_key_of_another_document_is_a_dead_letter(key: bytes | None) -> None:
    value = encode_signature(signed("x", prose(2)))
    assert await refusal(record(value, key=key)) == "invalid_signature"


@pytest.mark.parametrize("observed_at_ms", [-1, to_milliseconds(TIME + timedelta(days=2)) + 1, 2**62, 2**63])
async def test_b65_a_time_out_of_bounds_is_a_dead_letter(observed_at_ms: int) -> None:
    dated = msgspec.structs.replace(signed("x", prose(2)), observed_at_ms=observed_at_ms)
    assert await refusal(record(dated)) == "invalid_signature"


async def test_b65_a_record_from_the_far_future_cannot_carry_a_time_that_no_calendar_holds() -> None:
    dated = msgspec.structs.replace(signed("x", prose(2)), observed_at_ms=2**61)
    assert await refusal(record(dated)._replace(timestamp_ms=2**62)) == "invalid_signature"


async def test_an_exact_duplicate_goes_to_its_topic_under_the_key_of_the_newer() -> None:
    (sent,) = await decided(signed("a", prose(1)), signed("b", prose(1).upper(), 5))
    said = event(sent)
    assert isinstance(said, ExactDuplicate)
    assert (sent.topic, sent.key, sent.timestamp_ms) == ("p.nearstream.near-duplicates.v1", b"news/b", None)
    assert (said.newer.id, said.older.id) == ("b", "a")
    assert said.newer.offset == 5


async def test_the_newer_one_is_so_by_its_time_whichever_came_first() -> None:
    (sent,) = await decided(signed("b", prose(1), 5), signed("a", prose(1)))
    said = event(sent)
    assert isinstance(said, ExactDuplicate)
    assert (sent.key, said.newer.id) == (b"news/b", "b")


async def test_every_relation_goes_to_the_topic_that_the_table_says() -> None:
    text = prose(1)
    page = "https://a.example/x"
    cases: list[tuple[type[Event], str, Signature, Signature]] = [
        (ExactDuplicate, "near-duplicates", signed("a", text), signed("b", text, 1)),
        (NearDuplicate, "near-duplicates", signed("a", text), signed("b", edited(text), 1)),
        (Containment, "containments", signed("a", text), signed("b", f"{text} {prose(2, 600)}", 1)),
        (Version, "versions", signed("a", text, lineage=page), signed("b", edited(text), 1, lineage=page)),
        (Rearranged, "overlaps", signed("a", text), signed("b", swapped(text), 1)),
    ]
    for kind, topic, older, newer in cases:
        (sent,) = await decided(older, newer)
        assert type(event(sent)) is kind
        assert (sent.topic, sent.key) == (f"p.nearstream.{topic}.v1", b"news/b")


async def test_an_event_carries_the_headers_of_cloudevents_and_the_trace() -> None:
    first = record(signed("a", prose(1)), headers=[("traceparent", b"00-1"), ("x", b"y")])
    second = record(signed("b", prose(1), 5), 1, headers=[("traceparent", b"00-2")])
    (sent,) = await matching().decide([first, second])
    headers = dict(sent.headers)
    assert len(headers) == len(sent.headers)
    assert headers["ce_id"] == event(sent).event_id.encode()
    assert headers["ce_type"] == b"nearstream.exact_duplicate.v1"
    assert headers["ce_subject"] == b"b"
    assert headers["traceparent"] == b"00-2"
    assert "x" not in headers


async def test_an_unrelated_document_makes_no_event() -> None:
    assert await decided(signed("a", prose(1)), signed("b", prose(2), 5)) == []


async def test_equal_ids_and_texts_in_two_collections_do_not_meet() -> None:
    ours = signed("a", prose(1))
    theirs = msgspec.structs.replace(ours, collection="mail", observed_at_ms=ours.observed_at_ms + 1)
    assert await decided(ours, theirs) == []


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


async def test_a_document_removed_in_the_batch_that_brought_it_is_named_as_in_smaller_batches() -> None:
    removal = record(None, 2, b"news/a")
    records = [record(signed("a", prose(1))), record(signed("b", prose(1), 1), 1), removal]
    told = await matching().decide(records)
    assert [type(event(sent)) for sent in told] == [ExactDuplicate] + [Retraction] * len(EVENT_TOPICS)
    job = matching()
    assert [sent.value for one in records for sent in await job.decide([one])] == [sent.value for sent in told]


async def test_the_same_removal_delivered_twice_is_one_retraction() -> None:
    job = matching()
    removal = record(None, 1, b"news/a")
    await job.decide([record(signed("a", prose(1)))])
    first, second = await job.decide([removal]), await job.decide([removal])
    assert [sent.value for sent in first] == [sent.value for sent in second]
    assert len(ids(first)) == 1


@pytest.mark.parametrize("key", [b"news/unknown", b"", None])
async def test_the_removal_of_an_unknown_document_says_nothing(key: bytes | None) -> None:
    assert await matching().decide([record(None, key=key)]) == []


async def test_a_removal_without_a_readable_key_is_a_dead_letter() -> None:
    (letter,) = await matching().decide([record(None, key=b"\xff")])
    assert letter.topic == "p.nearstream.dead-letters.v1"
    assert letter.value == b""


@pytest.mark.parametrize("timestamp_ms", [-1, 253_402_300_800_000])
async def test_a_removal_at_a_time_that_no_calendar_holds_is_a_dead_letter(timestamp_ms: int) -> None:
    job = matching()
    await job.decide([record(signed("x", prose(1)))])
    removal = record(None, 1, key=b"news/x")._replace(timestamp_ms=timestamp_ms)
    (letter,) = await job.decide([removal])
    assert header(letter.headers, "nearstream-dead-reason") == b"invalid_signature"


def family(count: int) -> list[ConsumerRecord]:
    """Return documents of one text, each an exact duplicate of all before it."""
    return [record(signed(f"d{number}", prose(1), number), number) for number in range(count)]


def ids(sent: Iterable[ProducerRecord]) -> set[str]:
    return {event(each).event_id for each in sent}


async def test_the_committed_offset_is_asked_once_until_partitions_are_revoked() -> None:
    topic = Topic()
    job = matching(topic)
    records = family(3)
    for one in records[:2]:
        await job.decide([one])
    job.forget_positions()
    await job.decide(records[2:])
    assert topic.asked == [{0}, {0}]


async def caught_up(job: Matching, records: list[ConsumerRecord]) -> list[ProducerRecord]:
    """Return what is delivered if the index is found behind and is caught up."""
    try:
        return await job.decide(records)
    except IndexBehindError as behind:
        lost = Lost(behind.partition, behind.checkpoint, records[0].offset)
        parts = [part async for part in job.catch_up(lost)]
        assert max(map(len, parts), default=0) <= CATCH_UP_BATCH * 21
        return [sent for part in parts for sent in part] + await job.decide(records)


async def test_an_index_that_lost_its_newest_writes_is_given_them_again_with_their_events() -> None:
    records = family(6)
    whole = await matching().decide(records)
    topic = Topic(records, committed_offset=5)
    told = await caught_up(matching(topic), records[5:])
    assert topic.reads == [(0, 0, 5)]
    assert ids(told) == ids(whole)
    assert [sent.value for sent in told] == [sent.value for sent in whole]


async def test_only_what_the_index_misses_is_read_again() -> None:
    records = family(6)
    store = local_store()
    early = await matching(store=store).decide(records[:2])
    topic = Topic(records, committed_offset=5, known={0: 1})
    told = await caught_up(matching(topic, store), records[5:])
    assert topic.reads == [(0, 2, 5)]
    assert ids(early) | ids(told) == ids(await matching().decide(records))


async def test_a_loss_in_the_middle_of_the_run_is_caught_up_too() -> None:
    records = family(6)
    topic, slot = Topic(records), Emptied()
    job = matching(topic, Store(slot, Shape(), IndexLimits()))
    await job.decide(records[:4])
    slot.empty()
    assert ids(await caught_up(job, records[4:])) == ids(await matching().decide(records))
    assert topic.reads == [(0, 0, 4)]


async def test_a_long_gap_is_caught_up_whole() -> None:
    texts = [record(signed(f"d{number}", prose(number % 40, 60), number), number) for number in range(81)]
    told = await caught_up(matching(Topic(texts, committed_offset=80)), texts[80:])
    assert ids(told) == ids(await matching().decide(texts))
    assert len(told) >= 40


async def test_bad_records_in_the_gap_become_the_same_letters_again() -> None:
    records = family(4)
    records[1] = record(b"garbage", 1, b"news/x")
    before = await matching().decide(records)
    after = await caught_up(matching(Topic(records, committed_offset=3)), records[3:])
    letters = [[sent for sent in told if "dead" in sent.topic] for told in (before, after)]
    assert len(letters[0]) == 1
    assert letters[0] == letters[1]


async def test_the_removal_of_a_document_in_the_gap_is_caught_up() -> None:
    records = [*family(2), record(None, 2, b"news/d0"), record(signed("d3", prose(1), 3), 3)]
    told = await caught_up(matching(Topic(records, committed_offset=3)), records[3:])
    named = [said for said in map(event, told) if isinstance(said, ExactDuplicate)]
    assert {(said.newer.id, said.older.id) for said in named} >= {("d3", "d1")}
    assert ("d3", "d0") not in {(said.newer.id, said.older.id) for said in named}
    assert sum(isinstance(event(sent), Retraction) for sent in told) == len(EVENT_TOPICS)


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


async def test_what_another_worker_acknowledged_counts_as_admitted() -> None:
    job = matching(Topic(committed_offset=4))
    assert await job.lost([0, 3]) == [Lost(0, -1, 4), Lost(3, -1, 4)]


async def test_a_partition_that_was_never_read_lost_nothing() -> None:
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
