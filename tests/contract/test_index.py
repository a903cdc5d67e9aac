"""The contract of an index, in memory and in Redis."""

from dataclasses import replace
from random import Random

import pytest

from nearstream.schemas.events import RELATIONS
from nearstream.schemas.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.family import Family, Settlement
from nearstream.streams.signing.scheme import preset
from nearstream.streams.store.limits import Admission, Admitted, IndexBehindError, IndexLimits, IndexState
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
    pairs,
    removal,
    sent_at,
    settlement,
    traffic,
)

# Every document enters all its buckets, so that a test can fill them.
ALL_PAIRS = IndexLimits(bucket_cap=50, candidates=60, documents=6_400, events_per_family=0)
MANY = replace(ALL_PAIRS, candidates=200)
PUT = {Status.NEW, Status.UPDATED}


async def only(index: AnyIndex, one: Admission, now_ms: int | None = None) -> Admitted:
    (answer,) = await index.admit([one], now_ms)
    return answer


async def test_a_twin_in_the_same_batch_is_seen_once(index: AnyIndex) -> None:
    first, second = await index.admit([admission("a", bands=[1]), admission("b", bands=[1])])
    assert (first.status, ids(first.candidates)) == (Status.NEW, [])
    assert (second.status, ids(second.candidates)) == (Status.NEW, ["a"])


async def test_an_empty_batch_is_answered_by_nothing(index: AnyIndex) -> None:
    assert list(await index.admit([])) == []
    assert list(await index.settle([])) == []
    assert list(await index.enter([])) == []
    assert await index.state() is IndexState.READY


async def test_an_unchanged_record_that_was_signed_twice_is_unchanged_again(index: AnyIndex) -> None:
    """Also if the document has another text by then, or has returned to this one."""
    texts = ["t", "t", "u", "u", "t", "t"]
    batch = [sent_at(admission("a", text=text, at=10 * step), step) for step, text in enumerate(texts)]
    told = await index.admit(in_order(batch))
    again = await index.admit(in_order(batch, 6))
    assert [each.status for each in told[1::2]] == [each.status for each in again[1::2]] == [Status.UNCHANGED] * 3
    assert [each.number for each in again] == [each.number for each in told] == [1, 1, 2, 2, 3, 3]


async def test_a_record_that_was_signed_twice_is_answered_as_before(index: AnyIndex) -> None:
    """A signer that was stopped before its commit sends the signature once more, at a new offset."""
    first, then = sent_at(admission("a", bands=[1], text="v1"), 5), sent_at(admission("a", text="v2", at=9), 6)
    other = sent_at(admission("b", bands=[1]), 7)
    told = await index.admit(in_order([first, other, then]))
    again = await index.admit(in_order([first, other, then, first], 3))
    assert [each.status for each in again] == [Status.REPLAYED] * 4
    assert [each.number for each in again] == [each.number for each in (*told, told[0])]
    between = await only(index, at_offset(sent_at(admission("a", text="v3", at=5), 8), 7))
    assert between.number not in {each.number for each in told}


async def test_an_answer_counts_what_is_shared_by_kind(make: Make) -> None:
    index = await make(ALL_PAIRS)
    await only(index, admission("a", bands=[1, 2, 3], anchors=[1, 2, 3, 4], lineage="x", text="same"))
    answer = await only(index, admission("b", bands=[2, 3, 9], anchors=[3], lineage="x", text="same"))
    (found,) = answer.candidates
    assert (found.bands, found.anchors, found.anchor_count) == (2, 1, 4)
    assert (found.by_digest, found.by_lineage, found.in_full_bucket) == (True, True, False)


async def test_kinds_of_keys_never_meet(index: AnyIndex) -> None:
    one = admission("a", bands=[1])
    await only(index, one)
    other = admission("b")
    (band,) = one.keys.bands
    keys = replace(other.keys, digest=band, lineage=band, anchors=(band,))
    assert ids((await only(index, replace(other, keys=keys))).candidates) == []


async def test_an_update_links_its_former_state(index: AnyIndex) -> None:
    one, two = in_order([admission("a", bands=[1, 2], text="v1"), admission("a", bands=[1, 3], text="v2", at=5)])
    await only(index, one)
    answer = await only(index, two)
    assert answer.status is Status.UPDATED
    assert answer.previous is not None
    assert answer.previous.signature == one.signature
    assert (answer.previous.bands, answer.previous.by_lineage) == (1, True)
    assert answer.candidates == ()


async def test_an_unchanged_document_keeps_its_number(index: AnyIndex) -> None:
    one, again = in_order([admission("a", bands=[1]), admission("a", bands=[1], at=7)])
    first = await only(index, one)
    second = await only(index, again)
    assert (second.status, second.number) == (Status.UNCHANGED, first.number)
    assert second.previous is not None
    assert second.previous.signature == one.signature
    assert await only(index, again) == second


async def test_a_former_state_is_seen_by_replays_only(index: AnyIndex) -> None:
    batch = in_order([admission("a", bands=[1], text="v1"), admission("b", bands=[1]), admission("a", text="v2", at=9)])
    answers = await index.admit(batch)
    assert ids((await only(index, admission("c", bands=[1]))).candidates) == ["b"]
    again = await only(index, batch[1])
    assert again == replace(answers[1], status=Status.REPLAYED)
    assert ids(again.candidates) == ["a"]


async def test_a_replayed_old_state_does_not_become_current(index: AnyIndex) -> None:
    batch = in_order([admission("a", bands=[1], text="v1"), admission("a", bands=[2], text="v2", at=9)])
    answers = await index.admit(batch)
    again = await index.admit(batch)
    assert again == [replace(answer, status=Status.REPLAYED) for answer in answers]
    assert ids((await only(index, admission("b", bands=[1]))).candidates) == []
    assert ids((await only(index, admission("c", bands=[2]))).candidates) == ["a"]


async def test_a_late_older_state_does_not_become_current(index: AnyIndex) -> None:
    batch = in_order(
        [
            admission("a", bands=[1], text="v1", at=10),
            admission("a", bands=[3], text="v3", at=30),
            admission("z", bands=[2]),
            admission("a", bands=[2], text="v2", at=20),
            admission("a", bands=[4], text="v4", at=40),
        ]
    )
    answers = await index.admit(batch)
    late = answers[3]
    assert late.status is Status.UPDATED
    assert late.previous is not None
    assert late.previous.signature == batch[1].signature
    assert ids(late.candidates) == ["z"]
    assert answers[4].previous is not None
    assert answers[4].previous.signature == batch[1].signature
    assert await index.admit(batch) == [replace(answer, status=Status.REPLAYED) for answer in answers]
    assert ids((await only(index, admission("b", bands=[1, 2, 3]))).candidates) == ["z"]
    assert ids((await only(index, admission("c", bands=[4]))).candidates) == ["a"]


async def test_a_removed_document_is_never_named_again(index: AnyIndex) -> None:
    batch = in_order(
        [
            admission("a", bands=[1], text="v1"),
            admission("b", bands=[1]),
            admission("a", bands=[1], text="v2", at=1),
            removal("a"),
            admission("c", bands=[1]),
            admission("a", bands=[1], text="v3", at=2),
        ]
    )
    answers = await index.admit(batch)
    assert (answers[3].status, answers[3].found, answers[3].number) == (Status.REMOVED, True, 0)
    assert ids(answers[4].candidates) == ["b"]
    assert (answers[5].status, answers[5].previous) == (Status.NEW, None)
    again = await index.admit(batch)
    assert [one.status for one in again[:3]] == [Status.STALE, Status.REPLAYED, Status.STALE]
    assert ids(again[1].candidates) == []
    assert ids(await index.look_up(batch[0].keys, 9)) == ["b", "c", "a"]


async def test_a_redelivered_removal_answers_the_same(index: AnyIndex) -> None:
    batch = in_order([admission("a", bands=[1]), removal("a"), admission("a")])
    _, answer, _ = await index.admit(batch)
    assert answer.found
    assert await only(index, batch[1]) == answer
    assert (await only(index, admission("a"))).status is Status.UNCHANGED


async def test_the_removal_of_an_unknown_document_is_an_answer(index: AnyIndex) -> None:
    answer = await only(index, removal("nobody"))
    assert (answer.status, answer.found) == (Status.REMOVED, False)


async def test_later_neighbours_never_hide_an_earlier_owner(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, candidates=5))
    await only(index, admission("owner", bands=[1], anchors=[1], text="same"))
    for start in range(0, 90, 30):
        batch = [admission(str(start + step), bands=[1], anchors=[1]) for step in range(30)]
        for answer in await index.admit(batch):
            assert answer.number == 2 or "owner" in ids(answer.candidates)
    answer = await only(index, admission("last", bands=[1], anchors=[1]))
    assert ids(answer.candidates)[0] == "owner"
    assert answer.candidates[0].in_full_bucket
    assert (answer.full_buckets, answer.cut) == (2, True)


async def test_a_full_bucket_keeps_its_oldest_and_its_newest(make: Make) -> None:
    index = await make(MANY)
    await index.admit([admission(str(step), bands=[1]) for step in range(30)])
    await index.admit([admission(f"n{step}", anchors=[1]) for step in range(200)])
    by_band = await only(index, admission("x", bands=[1]))
    by_anchor = await only(index, admission("y", anchors=[1]))
    assert ids(by_band.candidates) == [str(step) for step in (*range(6), *range(24, 30))]
    assert ids(by_anchor.candidates) == [f"n{step}" for step in (*range(12), *range(162, 200))]


async def test_a_lineage_bucket_keeps_the_newest_states(make: Make) -> None:
    index = await make(MANY)
    order = Random(1).sample(range(30), 30)
    await index.admit([admission(str(step), lineage="page", at=step) for step in order])
    answer = await only(index, admission("x", lineage="page", at=99))
    assert sorted(int(each) for each in ids(answer.candidates)) == list(range(22, 30))


async def test_the_limit_spares_digest_and_lineage_matches(make: Make) -> None:
    index = await make(replace(ALL_PAIRS, bucket_cap=100, candidates=2))
    await index.admit([admission(f"copy{step}", text="same") for step in range(4)])
    await index.admit([admission(f"page{step}", lineage="page", bands=["b"]) for step in range(4)])
    own = [[*range(step), *(f"{step} {other}" for other in range(step, 4))] for step in range(4)]
    await index.admit([admission(f"near{step}", bands=["n"], anchors=own[step]) for step in range(4)])
    one = admission("x", text="same", lineage="page", bands=["b", "n"], anchors=range(4))
    answer = await only(index, one)
    assert sorted(ids(answer.candidates)) == sorted(
        [f"copy{step}" for step in range(4)] + [f"page{step}" for step in range(4)] + ["near3", "near2"]
    )
    assert ids(answer.candidates)[-2:] == ["near3", "near2"]
    assert answer.cut
    assert len(await index.look_up(one.keys, 3)) == 3


async def test_more_superseded_neighbours_than_are_read_say_that_the_answer_was_cut(make: Make) -> None:
    index = await make(IndexLimits(bucket_cap=400, documents=6_400))
    await index.admit([admission("page", anchors=["a"], text=step, at=step) for step in range(300)])
    await only(index, admission("other", anchors=["a"]))
    answer = await only(index, admission("x", anchors=["a"]))
    assert (answer.candidates, answer.cut) == ((), True)


async def test_an_id_with_braces_or_newlines_is_only_an_id(index: AnyIndex) -> None:
    names = ["a}{b", "a\n", "a", "{nearstream}m", "\0", "ü/../*?[x]"]
    batch = [replace(admission("some", bands=[1], text=each), document_key=f"default/{each}") for each in names]
    answers = await index.admit(batch)
    assert [answer.status for answer in answers] == [Status.NEW] * len(names)
    assert [len(answer.candidates) for answer in answers] == list(range(len(names)))
    assert (await only(index, replace(removal(""), document_key="default/a\n"))).found
    assert (await only(index, batch[2])).status is Status.UNCHANGED


async def test_s13_two_collections_never_meet(index: AnyIndex) -> None:
    hash_key = HashKey.from_secret(b"test")
    scheme = preset("bands-only", hash_key)
    digest, sketch = b"d" * 16, bytes(range(256)) * (scheme.sketch.slots * scheme.sketch.bits // 8 // 256)
    batch = []
    for collection, name in (("one", "a"), ("two", "a"), ("two", "b")):
        signature = Signature(
            scheme.name,
            collection,
            name,
            digest,
            digest,
            START_MS,
            900,
            900,
            200,
            190,
            False,
            sketch,
            16,
            b"",
            b"",
            b"",
        )
        batch.append(Admission(signature.document_key, scheme.kept(signature), scheme.keys(signature, hash_key)))
    assert [len(answer.candidates) for answer in await index.admit(batch)] == [0, 0, 1]


@pytest.mark.parametrize("at", [-62 * 10**12 - START_MS, -(10**12) - START_MS, 253 * 10**12 - START_MS])
async def test_any_time_of_observation_is_stored(index: AnyIndex, at: int) -> None:
    first, second = in_order([admission("a", text="v1", at=at), admission("a", text="v2", at=0)])
    answers = await index.admit([first, second], START_MS)
    assert answers[1].previous is not None
    assert answers[1].previous.signature == first.signature
    assert ids(await index.look_up(first.keys, 1, START_MS)) == (["a"] if at > 0 else [])


async def test_a_document_without_position_may_come_again(index: AnyIndex) -> None:
    one = admission("a", bands=[1])
    assert [answer.status for answer in await index.admit([one, one])] == [Status.NEW, Status.UNCHANGED]


async def test_a_gap_before_a_batch_is_told(index: AnyIndex) -> None:
    await index.admit(in_order([admission("a"), admission("b")]))
    with pytest.raises(IndexBehindError) as caught:
        await only(index, at_offset(admission("d"), 3))
    assert (caught.value.partition, caught.value.checkpoint) == (0, 1)
    with pytest.raises(IndexBehindError):
        await only(index, at_offset(admission("d"), 7, partition=1))
    answers = await index.admit([at_offset(admission("c"), 2), at_offset(admission("d"), 3)])
    assert [answer.number for answer in answers] == [3, 4]


async def test_expired_documents_are_found_no_more(make: Make) -> None:
    index = await make(IndexLimits(retention_seconds=256, documents=6_400))
    first = in_order([admission("old", bands=[1], text="v")])[0]
    await only(index, first, START_MS)
    assert ids((await only(index, admission("mid", bands=[1]), START_MS + 200_000)).candidates) == ["old"]
    assert ids((await only(index, admission("new", bands=[1]), START_MS + 300_000)).candidates) == ["mid"]
    assert ids(await index.look_up(first.keys, 9, START_MS + 300_000)) == ["mid", "new"]
    assert (await only(index, first, START_MS)).status is Status.STALE
    assert (await only(index, admission("old", text="v"), START_MS)).status is Status.NEW


@pytest.mark.parametrize("kind", ["bands", "anchors"])
async def test_an_expired_head_makes_room(make: Make, kind: str) -> None:
    index = await make(replace(MANY, retention_seconds=256))
    for step in range(80):
        one = admission(str(step), bands=[1]) if kind == "bands" else admission(str(step), anchors=[1])
        await only(index, one, START_MS + 10_000 * step)
    found = sorted(int(each) for each in ids(await index.look_up(one.keys, 200, START_MS + 790_000)))
    if kind == "anchors":
        assert found == list(range(54, 80))
    else:
        assert len(found) == 12
        # Without the entries that are never displaced, only the newest would be left.
        assert 54 <= found[0] < found[5] < 74


async def test_batches_of_1_and_of_32_answer_alike_without_families(make: Make) -> None:
    limits = replace(ALL_PAIRS, bucket_cap=14, candidates=6)
    one_by_one, together = await make(limits), await make(limits)
    batch = traffic(Random(3), 480, 40)
    batch += [batch[step] for step in range(0, 480, 9)]
    for start in range(0, len(batch), 32):
        part = batch[start : start + 32]
        assert [await only(one_by_one, each, START_MS) for each in part] == await together.admit(part, START_MS)


async def test_batches_of_1_and_of_32_answer_alike_if_nobody_settles_in_between(make: Make) -> None:
    limits = IndexLimits(bucket_cap=14, candidates=6, documents=6_400)
    one_by_one, together = await make(limits), await make(limits)
    random, batch = Random(3), traffic(Random(3), 480, 40)
    for start in range(0, len(batch), 32):
        part = batch[start : start + 32]
        answers = await together.admit(part, START_MS)
        assert [await only(one_by_one, each, START_MS) for each in part] == answers
        told = [settled_at_random(*each, random) for each in zip(part, answers, strict=True) if each[1].status in PUT]
        assert [settled for each in told for settled in await one_by_one.settle([each])] == await together.settle(told)


async def test_numbers_are_never_used_twice(index: AnyIndex) -> None:
    batch = traffic(Random(5), 400, 30)
    numbers = [answer.number for answer in await index.admit(batch) if answer.status in {Status.NEW, Status.UPDATED}]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_replays_restate_decisions_under_templates_updates_and_removals(make: Make, seed: int) -> None:
    random = Random(seed)
    index = await make(IndexLimits(bucket_cap=random.choice([12, 16, 50]), candidates=10, documents=6_400))
    batch = traffic(random, 700, 60)
    answers: list[Admitted] = []
    families: dict[int, Family] = {}
    gone: set[int] = set()
    states: dict[str, list[int]] = {}
    while len(answers) < len(batch):
        part = batch[len(answers) : len(answers) + random.randrange(1, 40)]
        fresh = list(zip(part, await index.admit(part, START_MS), strict=True))
        for one, answer in fresh:
            answers.append(answer)
            if answer.status is Status.REMOVED:
                gone.update(states.pop(one.document_key, []))
            elif answer.status is not Status.UNCHANGED:
                states.setdefault(one.document_key, []).append(answer.number)
        told = [settled_at_random(one, answer, random) for one, answer in fresh if answer.status in PUT]
        for step, settled in zip(told, await index.settle(told), strict=True):
            assert settled.family is not None or step.number in gone or settled.follow or settled.is_refused
            if settled.family is not None:
                families[step.number] = settled.family
        for offset in random.sample(range(len(answers)), min(20, len(answers))):
            check_replay(answers[offset], await only(index, batch[offset], START_MS), gone, families)
    assert len(families) > 400


def settled_at_random(one: Admission, answer: Admitted, random: Random) -> Settlement:
    """Join one of the candidates that represent a family, or nobody, with up to three events."""
    heads = [each for each in answer.candidates if each.represents]
    related = random.sample(answer.candidates, min(3, len(answer.candidates)))
    joins = random.choice(heads) if heads and random.random() < 0.5 else None
    return settlement(one, answer, joins, [pair(each, random.choice(RELATIONS)) for each in related])


def check_replay(then: Admitted, again: Admitted, gone: set[int], families: dict[int, Family]) -> None:
    if then.status is Status.REMOVED:
        assert again == then
    elif then.number in gone:
        assert again.status in {Status.STALE, Status.UNCHANGED}  # a later state may have the same text
    elif then.number not in families:
        assert all(each.number != then.number for each in again.candidates)
    elif then.status is not Status.UNCHANGED:
        assert (again.status, again.number) == (Status.REPLAYED, then.number)
        assert again.decision is not None
        said, now = families[then.number], again.decision.family
        assert (now.family_id, now.ordinal, now.first_seen_ms) == (said.family_id, said.ordinal, said.first_seen_ms)
        for each in again.decision.pairs:
            assert (each.candidate is None) == (each.number in gone)
    else:
        assert again.status is Status.UNCHANGED


async def test_an_answer_that_was_lost_is_made_up_for_by_sending_again(make: Make) -> None:
    calm, shaken = await make(MANY), await make(MANY)
    batch = [one for one in traffic(Random(8), 90, 40) if one.signature is not None]  # no bucket becomes full
    batch = in_order(batch)
    expected: set[tuple[str, str]] = set()
    got: set[tuple[str, str]] = set()
    for start in range(0, len(batch), 25):
        part = batch[start : start + 25]
        expected |= pairs(part, await calm.admit(part, START_MS))
        await shaken.admit(part[: start % 11], START_MS)
        await shaken.admit(part, START_MS)
        got |= pairs(part, await shaken.admit(part, START_MS))
    assert got == expected


async def test_a_key_of_zeros_is_a_key(index: AnyIndex) -> None:
    one, two = admission("a"), admission("b")
    answers = await index.admit([replace(each, keys=replace(each.keys, bands=(bytes(8),))) for each in (one, two)])
    assert [len(answer.candidates) for answer in answers] == [0, 1]
