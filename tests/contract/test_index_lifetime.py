"""Lifetimes in an index: retention, last sighting, room after removals, late states."""

from dataclasses import replace
from random import Random

import pytest

from nearstream.streams.store.limits import BEST, COMMON_READS, Admission, Admitted, IndexLimits
from nearstream.streams.store.registration import Status
from tests.support.index_documents import (
    START_MS,
    AnyIndex,
    Make,
    admission,
    at_offset,
    ids,
    in_order,
    pair,
    removal,
    settlement,
    traffic,
    with_repeats,
)

BRIEF = IndexLimits(candidates=200, retention_seconds=256, documents=6_400)
# Every document enters all its buckets, so that a test can fill them.
ALL_PAIRS = IndexLimits(documents=6_400, events_per_family=0)


async def only(index: AnyIndex, one: object, second: int = 0) -> Admitted:
    (answer,) = await index.admit([one], START_MS + 1_000 * second)  # type: ignore[list-item]
    return answer


async def found(index: AnyIndex, name: str, second: int, band: object = 1) -> list[str]:
    """Return the ids of the candidates of an admission at this second."""
    return ids((await only(index, admission(name, bands=[band]), second)).candidates)


async def test_a_document_seen_again_late_in_its_life_is_kept_for_another(make: Make) -> None:
    index = await make(BRIEF)
    a = admission("a", bands=[1])
    first = await only(index, a)
    assert (await only(index, replace(a), 100)).number == first.number
    again = await only(index, a, 200)
    assert (again.status, again.candidates) == (Status.UNCHANGED, ())
    assert again.number > first.number
    assert again.previous is not None
    assert again.previous.signature == a.signature
    assert (await only(index, a, 210)).number == again.number
    assert await found(index, "b", 400) == ["a"]
    assert await found(index, "c", 470) == ["b"]


async def test_a_replay_names_the_state_of_then_of_a_document_seen_again(make: Make) -> None:
    index = await make(BRIEF)
    a, b, again, c = in_order([admission(each, bands=[1]) for each in ("a", "b", "a", "c")])
    await only(index, a)
    then = await only(index, b, 100)
    await only(index, again, 200)
    assert ids((await only(index, c, 201)).candidates) == ["b", "a"]
    assert await only(index, b, 202) == replace(then, status=Status.REPLAYED)
    assert (await only(index, again, 202)).status is Status.UNCHANGED
    assert (await only(index, a, 202)).status is Status.REPLAYED


async def report_on_a(index: AnyIndex, second: int) -> None:
    """Admit `a`, then admit `b` at this second and send an event about the pair."""
    await only(index, admission("a", bands=[1]))
    other = admission("b", bands=[1])
    answer = await only(index, other, second)
    told = settlement(other, answer, related=[pair(answer.candidates[0], "overlap")])
    (settled,) = await index.settle([told], START_MS + 1_000 * second)
    assert settled.sent == (True,)


async def test_a_confirmed_hit_keeps_the_older_document(make: Make) -> None:
    kept, early = await make(BRIEF), await make(BRIEF)
    await report_on_a(kept, 200)
    await report_on_a(early, 100)
    assert await found(kept, "c", 300) == ["a", "b"]
    assert await found(early, "c", 300) == ["b"]
    assert await found(kept, "d", 440) == ["a", "b", "c"]
    assert await found(kept, "e", 470) == ["c", "d"]


async def test_a_kept_document_is_looked_up_only_as_long_as_it_is_kept(make: Make) -> None:
    index = await make(BRIEF)
    await report_on_a(index, 200)
    keys = admission("x", bands=[1]).keys
    await only(index, admission("other"), 300)
    assert ids(await index.look_up(keys, 9, START_MS + 440_000)) == ["a", "b"]
    assert ids(await index.look_up(keys, 9, START_MS + 470_000)) == []


async def test_a_kept_document_can_be_updated_and_removed(make: Make) -> None:
    index = await make(BRIEF)
    await report_on_a(index, 200)
    update = await only(index, admission("a", bands=[1], text="v2", at=9), 300)
    assert (update.status, ids(update.candidates)) == (Status.UPDATED, ["b"])
    assert update.previous is not None
    assert await found(index, "c", 301) == ["b", "a"]
    gone = await only(index, removal("a"), 302)
    assert gone.found
    assert await found(index, "d", 303) == ["b", "c"]


async def test_a_superseded_document_is_not_kept(make: Make) -> None:
    index = await make(BRIEF)
    await report_on_a(index, 200)
    await only(index, admission("a", bands=[2], text="v2", at=9), 210)
    assert await found(index, "c", 300) == ["b"]


async def test_answers_of_then_name_kept_documents_after_their_time(make: Make) -> None:
    index = await make(BRIEF)
    await report_on_a(index, 200)
    one = at_offset(admission("c", bands=[1]), 0)
    then = await only(index, one, 300)
    assert ids(then.candidates) == ["a", "b"]
    assert await only(index, one, 310) == replace(then, status=Status.REPLAYED)


@pytest.mark.parametrize("kind", ["bands", "anchors"])
async def test_a_removed_document_makes_room_where_it_is_met(make: Make, kind: str) -> None:
    index = await make(replace(ALL_PAIRS, bucket_cap=16, candidates=200))

    async def add(name: str) -> list[str]:
        one = admission(name, bands=["b"]) if kind == "bands" else admission(name, anchors=["b"])
        return ids((await only(index, one)).candidates)

    cap, heads = (12, 6) if kind == "bands" else (16, 12)
    for step in range(30):
        await add(str(step))
    await index.admit([removal(str(step)) for step in range(heads)], START_MS)
    newest = [str(step) for step in range(30 - cap + heads, 30)]
    assert await add("x") == newest
    # `x` dropped the entries that had no record any more, so the next ones displace nothing.
    assert await add("y") == [*newest, "x"][-cap + heads :]
    for step in range(heads - 2):
        await add(f"z{step}")
    assert len(await add("last")) == cap - 1


async def test_late_states_stand_at_their_place(index: AnyIndex) -> None:
    at = {"v4": 40, "v1": 10, "v3": 30, "v2": 20, "v5": 50}
    batch = in_order([admission("a", bands=[each], text=each, at=at[each]) for each in at])
    answers = await index.admit(batch)
    assert [each.status for each in answers] == [Status.NEW, *[Status.UPDATED] * 4]
    seen = [each.previous.signature.observed_at_ms - START_MS for each in answers[1:] if each.previous]
    assert seen == [40] * 4
    assert await index.admit(batch) == [replace(each, status=Status.REPLAYED) for each in answers]
    removed = await only(index, removal("a"))
    assert removed.found
    assert [each.status for each in await index.admit(batch)] == [Status.STALE] * 5


async def test_states_of_one_time_leave_a_full_lineage_bucket_by_id(index: AnyIndex) -> None:
    names = Random(2).sample([f"ü{step:02}" for step in range(20)], 20)
    await index.admit([admission(each, lineage="page") for each in names])
    answer = await only(index, admission("x", lineage="page", at=1))
    assert sorted(ids(answer.candidates)) == [f"ü{step:02}" for step in range(12, 20)]


async def test_small_documents_rank_by_how_much_of_them_is_shared(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, candidates=2))
    await only(index, admission("large1", anchors=range(40)))
    await only(index, admission("large2", anchors=range(41)))
    await only(index, admission("small", anchors=[1, 2, 3, 4, 5, 6]))
    await only(index, admission("smaller", anchors=[1, 2]))
    # The large ones and the small one share 5 anchors each, which are a larger part of the small one.
    answer = await only(index, admission("x", anchors=[2, 3, 4, 5, 6, *(f"x{step}" for step in range(40))]))
    assert (ids(answer.candidates), answer.cut) == (["small", "smaller"], True)


async def test_rare_keys_count_more_than_many_common_ones(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, candidates=1))
    await index.admit([admission(f"crowd{step}", anchors=range(9)) for step in range(20)])
    await only(index, admission("source", anchors=["rare", "other", *range(20, 27)]))
    answer = await only(index, admission("x", anchors=["rare", *range(4), *(f"x{step}" for step in range(40))]))
    assert ids(answer.candidates) == ["source"]


async def test_beyond_the_best_those_that_share_little_are_left_out(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, candidates=30))
    long = [admission(f"long{step}", anchors=["all", *(f"{step} {own}" for own in range(60))]) for step in range(20)]
    await index.admit([*long, admission("short", anchors=["all", "own"])])
    batch = in_order([admission("x", anchors=["all", *(f"x{step}" for step in range(60))])])
    (answer,) = await index.admit(batch)
    assert ids(answer.candidates) == [*(f"long{step}" for step in range(BEST - 1)), "short"]
    assert not answer.cut
    # Fewer documents have that key now, but a replay returns the original answer.
    await index.admit([removal(f"long{step}") for step in range(9, 20)])
    await index.admit([admission(f"y{step}", anchors=["all", step]) for step in range(3)])
    assert await index.admit(batch) == [replace(answer, status=Status.REPLAYED)]


async def test_what_is_not_among_twice_the_limit_by_weight_is_not_ranked(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, candidates=1))
    for step in range(2):
        await only(index, admission(f"large{step}", anchors=range(40)))
    await only(index, admission("small", anchors=[1]))
    answer = await only(index, admission("x", anchors=[*range(6), *(f"x{step}" for step in range(90))]))
    assert (ids(answer.candidates), answer.cut) == (["large0"], True)
    # Now it is the second best by weight, so it is ranked.
    await index.admit([removal("large1"), removal("x")], START_MS)
    answer = await only(index, admission("y", anchors=[*range(6), *(f"y{step}" for step in range(90))]))
    assert ids(answer.candidates) == ["small"]


async def test_of_those_that_share_only_common_text_few_are_read(index: AnyIndex) -> None:
    def page(name: str) -> Admission:
        return admission(name, anchors=[*range(10), *(f"{name} {own}" for own in range(10))])

    await only(index, admission("notice", anchors=range(6)))
    pages = [page(f"page{step}") for step in range(COMMON_READS)]
    before = [(await only(index, one)).candidates for one in pages]
    assert "notice" in ids(before[-1])
    answer = await only(index, page("x"))
    assert "notice" not in ids(answer.candidates)  # all pages share more with this one, and the notice is not read
    assert (answer.may_change, answer.cut) == (True, False)
    await index.admit([removal("page1"), removal("page2")], START_MS)
    assert "notice" in ids((await only(index, page("y"))).candidates)  # removed pages do not count


@pytest.mark.parametrize("seed", [1, 2])
async def test_replays_name_nothing_that_came_later_while_time_passes(make: Make, seed: int) -> None:
    random = Random(seed)
    index = await make(IndexLimits(bucket_cap=14, candidates=8, retention_seconds=4, documents=6_400))
    batch = with_repeats(traffic(random, 500, 40), random)
    answers: list[Admitted] = []
    now_ms = START_MS
    while len(answers) < len(batch):
        part = batch[len(answers) : len(answers) + random.randrange(1, 30)]
        now_ms += random.randrange(150)
        answers += await index.admit(part, now_ms)
        told = [
            settlement(one, answer, related=[pair(older, "overlap") for older in answer.candidates[:2]])
            for one, answer in zip(part, answers[-len(part) :], strict=True)
            if answer.status in {Status.NEW, Status.UPDATED} and random.random() < 0.7
        ]
        await index.settle(told, now_ms)
        for offset in random.sample(range(len(answers)), min(10, len(answers))):
            then, (again,) = answers[offset], await index.admit([batch[offset]], now_ms)
            if again.status is Status.REPLAYED:
                assert again.number == then.number
                earlier = [each for each in again.candidates if each.number < then.number]
                assert list(again.candidates) == ([] if again.decision else earlier)
