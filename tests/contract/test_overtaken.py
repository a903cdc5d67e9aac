"""A document that was sent before its removal but arrives after it, in both kinds of index."""

from random import Random

import pytest

from nearstream.schemas.signature import Origin
from nearstream.streams.store.limits import REMOVAL_MS, Admission, Admitted
from nearstream.streams.store.registration import Status
from tests.support.index_documents import START_MS, AnyIndex, admission, at_offset, ids, in_order, removal, sent_at


async def admit(index: AnyIndex, *batch: Admission, now_ms: int = START_MS) -> list[Admitted]:
    return list(await index.admit(list(batch), now_ms))


async def test_a_document_sent_before_its_removal_stays_removed(index: AnyIndex) -> None:
    document, gone = sent_at(admission("a", bands=[1]), 10), sent_at(removal("a"), 11)
    batch = in_order([document, gone, document, admission("b", bands=[1])])
    answers = await admit(index, *batch)
    assert [answer.status for answer in answers] == [Status.NEW, Status.REMOVED, Status.OVERTAKEN, Status.NEW]
    assert answers[2] == Admitted(Status.OVERTAKEN, removed_by=Origin("documents", 0, 11))
    assert ids(answers[3].candidates) == []


async def test_a_document_sent_again_after_its_removal_is_live(index: AnyIndex) -> None:
    first, gone, again = (
        sent_at(one, offset)
        for offset, one in enumerate((admission("a", bands=[1]), removal("a"), admission("a", bands=[1])))
    )
    *_, late, other = await admit(index, *in_order([first, gone, again, first, admission("b", bands=[1])]))
    assert (late.status, late.found) == (Status.OVERTAKEN, True)
    assert ids(other.candidates) == ["a"]


async def test_a_removal_that_comes_twice_removes_no_later_document(index: AnyIndex) -> None:
    document, gone, again = sent_at(admission("a"), 1), sent_at(removal("a"), 2), sent_at(admission("a"), 3)
    *_, late, other = await admit(index, *in_order([document, gone, again, gone, admission("b", text="x")]))
    assert (late.status, late.found, late.repeated) == (Status.REMOVED, False, True)
    (answer,) = await admit(index, at_offset(sent_at(removal("a"), 4), 5))
    assert (answer.found, answer.repeated) == (True, False)
    assert other.status is Status.NEW


async def test_the_first_removal_of_an_unknown_document_is_no_repeat(index: AnyIndex) -> None:
    (answer,) = await admit(index, at_offset(sent_at(removal("a"), 4), 0))
    assert (answer.status, answer.found, answer.repeated) == (Status.REMOVED, False, False)


@pytest.mark.parametrize("other", [sent_at(admission("a"), 1, partition=3), admission("a")], ids=["partition", "none"])
async def test_positions_that_cannot_be_compared_refuse_nothing(index: AnyIndex, other: Admission) -> None:
    _, answer = await admit(index, *in_order([sent_at(removal("a"), 9), other]))
    assert answer.status is Status.NEW


async def test_a_removal_is_remembered_for_an_hour(index: AnyIndex) -> None:
    gone, late = sent_at(removal("a"), 9), sent_at(admission("a"), 8)
    await admit(index, at_offset(gone, 0))
    (within,) = await admit(index, at_offset(late, 1), now_ms=START_MS + REMOVAL_MS)
    (after,) = await admit(index, at_offset(late, 2), now_ms=START_MS + REMOVAL_MS + 1)
    assert (within.status, after.status) == (Status.OVERTAKEN, Status.NEW)


async def test_a_redelivered_record_is_answered_as_before(index: AnyIndex) -> None:
    batch = in_order([sent_at(admission("a"), 1), sent_at(removal("a"), 2), sent_at(admission("a"), 1)])
    await admit(index, *batch)
    first, gone, late = await admit(index, *batch)
    assert (first.status, gone.status, gone.found) == (Status.STALE, Status.REMOVED, True)
    assert late.status is Status.STALE


async def test_a_removal_of_many_states_is_remembered_when_all_are_gone(index: AnyIndex) -> None:
    states = [sent_at(admission("a", bands=[1], text=number, at=number), number) for number in range(600)]
    for start in range(0, 600, 32):
        await admit(index, *in_order(states[start : start + 32], start))
    gone, late, other = await admit(
        index, *in_order([sent_at(removal("a"), 600), states[599], admission("b", bands=[1])], 600)
    )
    assert (gone.found, late.status, ids(other.candidates)) == (True, Status.OVERTAKEN, [])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_the_order_of_arrival_the_last_position_decides(index: AnyIndex, seed: int) -> None:
    random = Random(seed)
    sent = [removal("a") if random.random() < 0.3 else admission("a", text=random.randrange(4)) for _ in range(60)]
    origins = [sent_at(one, offset) for offset, one in enumerate(sent)]
    arrived = [origins[max(at - random.randrange(6), 0)] for at in range(60)]
    last, live = -1, False
    for record in in_order(arrived):
        (answer,) = await admit(index, record)
        assert record.origin is not None
        offset, is_removal = record.origin.offset, record.signature is None
        assert (answer.status is Status.OVERTAKEN) == (not is_removal and offset <= last)
        if is_removal:
            assert (answer.found, answer.repeated) == (live and offset > last, offset <= last)
            live = live and offset <= last
            last = max(last, offset)
        elif offset > last:
            live = True


@pytest.mark.parametrize(("sent_ms", "status"), [(0, Status.OVERTAKEN), (6000, Status.OVERTAKEN), (6001, Status.NEW)])
async def test_a_document_on_a_topic_made_anew_is_new(index: AnyIndex, sent_ms: int, status: Status) -> None:
    document, gone = sent_at(admission("a", bands=[1]), 1000, ms=1), sent_at(removal("a"), 1001, ms=5000)
    again = sent_at(admission("a", bands=[1]), 3, ms=sent_ms)
    *_, answer, other = await admit(index, *in_order([document, gone, again, admission("b", bands=[1])]))
    assert answer.status is status
    assert answer.removed_by == (Origin("documents", 0, 1001, 5000) if status is Status.OVERTAKEN else None)
    assert ids(other.candidates) == ([] if status is Status.OVERTAKEN else ["a"])


async def test_a_removal_on_a_topic_made_anew_removes(index: AnyIndex) -> None:
    batch = [
        sent_at(admission("a", bands=[1]), 1000, ms=1),
        sent_at(removal("a"), 1001, ms=2),
        sent_at(admission("a", bands=[1]), 3, ms=9000),
        sent_at(removal("a"), 4, ms=9001),
        sent_at(admission("a", bands=[1]), 3, ms=9000),
        admission("b", bands=[1]),
    ]
    *_, gone, late, other = await admit(index, *in_order(batch))
    assert (gone.status, gone.found, gone.repeated) == (Status.REMOVED, True, False)
    assert (late.status, ids(other.candidates)) == (Status.OVERTAKEN, [])
