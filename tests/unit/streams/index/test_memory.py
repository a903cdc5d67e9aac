"""Behaviour that only the index in memory has."""

import pickle

from nearstream.streams.store.limits import IndexLimits, IndexState
from nearstream.streams.store.local import local_store
from nearstream.streams.store.registration import Status
from tests.support.index_documents import START_MS, admission, ids, in_order, pair, removal, settlement

RETENTION = IndexLimits(retention_seconds=256)


async def test_time_is_the_largest_observed_so_far() -> None:
    index = local_store(RETENTION)
    await index.admit([admission("a", bands=[1])])
    await index.admit([admission("b", at=300_000)])
    (answer,) = await index.admit([admission("c", bands=[1], at=1)])
    assert ids(answer.candidates) == []


async def test_within_a_batch_each_document_has_its_own_time() -> None:
    index = local_store(RETENTION)
    batch = [admission("a", bands=[1]), admission("b", bands=[1]), admission("c", bands=[1], at=300_000)]
    assert [len(answer.candidates) for answer in await index.admit(batch)] == [0, 1, 0]


async def test_a_given_time_does_not_go_back() -> None:
    index = local_store(RETENTION)
    await index.admit([admission("a", bands=[1])], START_MS)
    await index.admit([admission("b", bands=[1])], START_MS + 300_000)
    (answer,) = await index.admit([admission("c", bands=[1])], START_MS)
    assert ids(answer.candidates) == ["b"]


async def test_without_retention_nothing_expires() -> None:
    index = local_store(IndexLimits(retention_seconds=0))
    await index.admit([admission("a", bands=[1])])
    (answer,) = await index.admit([admission("b", bands=[1], at=10**13)])
    assert ids(answer.candidates) == ["a"]


async def test_what_expired_takes_no_memory() -> None:
    index = local_store(RETENTION)
    sizes = []
    for step in range(6_000):
        one = admission(f"{step}", bands=[step // 3], anchors=["hot"], lineage=f"{step % 99}", at=1_000 * step)
        page = admission("page", text=step, at=1_000 * step)
        await index.admit([one, page, removal(str(step - 3))])
        if step % 2_000 == 1_999:
            sizes.append(len(pickle.dumps(index)))
    assert sizes[-1] < 1.1 * sizes[0]


async def test_an_expired_answer_names_no_expired_document() -> None:
    index = local_store(RETENTION)
    batch = in_order([admission(str(step), bands=[1], at=20_000 * step) for step in range(20)])
    answers = await index.admit(batch)
    (again,) = await index.admit([batch[15]])
    assert again.status is Status.REPLAYED
    assert set(ids(again.candidates)) < set(ids(answers[15].candidates))
    assert "0" not in ids(again.candidates)


async def test_it_is_always_ready() -> None:
    assert await local_store().state() is IndexState.READY


async def test_answers_to_removals_are_kept_for_a_week() -> None:
    index = local_store(IndexLimits(retention_seconds=0))
    week_ms = 7 * 86_400_000
    batch = in_order([admission("a"), removal("a"), admission("b", at=week_ms), removal("b")])
    await index.admit(batch)
    assert [answer.status for answer in await index.admit(batch[1:2])] == [Status.REMOVED]
    await index.admit(in_order([admission("c", at=week_ms + 1), removal("c")], 4))
    assert [answer.status for answer in await index.admit([batch[1], batch[3]])] == [Status.STALE, Status.REMOVED]


async def test_families_that_expired_take_no_memory() -> None:
    index = local_store(RETENTION)
    sizes = []
    for step in range(3_000):
        words = [f"{step // 300} {word}" for word in range(12)]
        one = admission(f"{step}", anchors=[*words, step], at=1_000 * step, text="same" if step % 9 == 0 else None)
        (answer,) = await index.admit([one])
        heads = [each for each in answer.candidates if each.represents]
        await index.settle([settlement(one, answer, heads[0] if heads else None, [pair(each) for each in heads])])
        if step % 5 == 0:
            await index.admit([removal(str(step - step % 20))])
        if step % 1_000 == 999:
            sizes.append(len(pickle.dumps(index)))
    assert sizes[-1] < 1.1 * sizes[0]
    assert len(await index.families()) < 9
