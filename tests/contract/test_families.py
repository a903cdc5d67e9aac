"""Families in an index, in memory and in Redis: who joins, who represents, what is sent and counted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nearstream.schemas.events import RELATIONS
from nearstream.streams.estimates.comparing import Unpacked
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import HOUR_MS, Family, FamilyFacts, Pair, Sending, Settled
from nearstream.streams.store.limits import Admission, Admitted, IndexLimits
from nearstream.streams.store.registration import Status
from tests.support.index_documents import (
    START_MS,
    AnyIndex,
    Make,
    admission,
    at_offset,
    facts_of_families,
    ids,
    in_order,
    pair,
    removal,
    settlement,
)

WORDS = range(20)
BRIEF = IndexLimits(candidates=200, retention_seconds=256, documents=6_400)


def copy_of(words: Sequence[object], name: str, own: int = 2, at: int = 0) -> Admission:
    """Return a document that has all these words as keys, but for a few of its own at the end."""
    keys = [*list(words)[: len(words) - own], *(f"{name} {number}" for number in range(own))]
    return admission(name, bands=keys[-6:], anchors=keys, at=at)


async def only(index: AnyIndex, one: Admission, second: float = 0) -> Admitted:
    (answer,) = await index.admit([one], START_MS + int(1_000 * second))
    return answer


async def told(
    index: AnyIndex,
    one: Admission,
    answer: Admitted,
    joins: Candidate | None = None,
    related: Sequence[Pair] = (),
    *,
    is_exact: bool = False,
    keeps: bool = False,
    second: float = 0,
) -> Settled:
    one_settlement = settlement(one, answer, joins, related, is_exact=is_exact, keeps=keeps)
    (settled,) = await index.settle([one_settlement], START_MS + int(1_000 * second))
    return settled


def family(settled: Settled) -> Family:
    assert settled.family is not None
    return settled.family


def named(answer: Admitted, name: str) -> Candidate:
    (found,) = [each for each in answer.candidates if each.signature.id == name]
    return found


async def joined(index: AnyIndex, one: Admission, second: float = 0) -> tuple[Admitted, Family | None]:
    """Admit a copy, and let it join the family that it is presumed to belong to."""
    answer = await only(index, one, second)
    heads = [each for each in answer.candidates if each.number == answer.presumed or each.represents]
    if not heads:
        return answer, None
    is_exact = one.signature is not None and heads[0].signature.digest == one.signature.digest
    settled = await told(index, one, answer, heads[0], [pair(heads[0])], is_exact=is_exact, second=second)
    return answer, settled.family


async def only_family(index: AnyIndex, second: float = 0) -> FamilyFacts:
    (facts,) = await facts_of_families(index, START_MS + int(1_000 * second))
    return facts


async def test_a_near_copy_is_presumed_to_belong_to_the_representative(index: AnyIndex) -> None:
    first, second = await index.admit([copy_of(WORDS, "a", 0), copy_of(WORDS, "b")], START_MS)
    assert (first.presumed, second.presumed) == (0, first.number)
    other = await only(index, copy_of(WORDS, "c", 7))
    assert (other.presumed, ids(other.candidates)[0]) == (0, "a")


async def test_an_equal_text_meets_its_twin_and_its_lineage_only(index: AnyIndex) -> None:
    await index.admit([admission("a", anchors=WORDS, text="same"), admission("x", anchors=range(9))], START_MS)
    await only(index, admission("page", lineage="p"))
    answer = await only(index, admission("b", anchors=WORDS, bands=[1], text="same", lineage="p"))
    assert sorted(ids(answer.candidates)) == ["a", "page"]
    assert named(answer, "a").by_digest
    assert (named(answer, "a").anchors, named(answer, "a").bands) == (len(WORDS), 1)
    assert answer.presumed == named(answer, "a").number
    assert ids(await index.look_up(admission("q", bands=[1]).keys, 9, START_MS)) == []


async def test_ordinals_follow_the_order_of_joining_and_a_replay_restates_them(index: AnyIndex) -> None:
    batch = in_order([copy_of(WORDS, "a", 0), *(copy_of(WORDS, f"c{number}") for number in range(4))])
    members = [await joined(index, one) for one in batch]
    assert [each.ordinal for _, each in members[1:] if each] == [2, 3, 4, 5]
    for one, (answer, said) in zip(batch[1:], members[1:], strict=True):
        again = await only(index, one)
        assert (again.status, again.number, again.candidates) == (Status.REPLAYED, answer.number, ())
        assert again.decision is not None
        assert again.decision.family == said
        assert [(each.relation, bool(each.sending)) for each in again.decision.pairs] == [("near_duplicate", True)]
    facts = await only_family(index)
    assert (facts.size, facts.representative, facts.joined) == (5, members[0][0].number, (4, 4, 4))


async def test_a_decision_is_recorded_once(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    one = copy_of(WORDS, "b")
    answer = await only(index, one)
    head = named(answer, "a")
    first = await told(index, one, answer, head, [pair(head)])
    for other in (None, head):
        assert family(await told(index, one, answer, other, [pair(head)])) == family(first)
    assert (await told(index, one, answer, head, [pair(head, "overlap")])).sent == (False,)
    facts = await only_family(index)
    assert (facts.size, facts.joined) == (2, (1, 1, 1))


async def test_joins_are_counted_by_the_hour_the_day_and_the_week(make: Make) -> None:
    index = await make(IndexLimits(retention_seconds=0, documents=6_400))
    await only(index, copy_of(WORDS, "a", 0))
    for number, hours in enumerate((1, 30, 47.9, 48.8, 49)):
        await joined(index, copy_of(WORDS, f"c{number}"), 3600 * hours)
    facts = await only_family(index, 3600 * 49)
    assert (facts.size, facts.joined) == (6, (2, 4, 5))
    assert facts.last_joined_ms >= START_MS + 48 * HOUR_MS


@pytest.mark.parametrize("exact", [False, True])
async def test_a_storm_fills_no_bucket(make: Make, exact: bool) -> None:
    index = await make(IndexLimits(bucket_cap=12, documents=6_400))
    for number in range(60):
        one = (
            admission(f"c{number}", bands=WORDS, anchors=WORDS, text="same") if exact else copy_of(WORDS, f"c{number}")
        )
        answer, _ = await joined(index, one)
        assert (answer.full_buckets, answer.cut) == (0, False)
        assert len(answer.candidates) <= 2
    assert (await only_family(index)).size == 60


async def test_two_candidates_of_a_family_are_named_and_its_representative_is_one(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    for number in range(5):
        await joined(index, admission(f"c{number}", bands=["x"], anchors=[*list(WORDS)[:18], "x", number]))
    answer = await only(index, admission("q", bands=["x"], anchors=[*list(WORDS)[:6], "x"]))
    assert len(answer.candidates) == 2
    assert named(answer, "a").represents


@pytest.mark.parametrize("exact", [False, True])
async def test_a_removed_representative_hands_the_family_on(index: AnyIndex, exact: bool) -> None:
    def document(name: str) -> Admission:
        return admission(name, bands=WORDS, anchors=WORDS, text="same") if exact else copy_of(WORDS, name)

    await only(index, document("a"))
    for name in "bcd":
        await joined(index, document(name))
    for step, name in enumerate("abcd"):
        before = await only_family(index)
        await only(index, removal(name))
        answer, now = await joined(index, document(f"n{step}"))
        assert answer.candidates
        assert now is not None
        assert now.family_id == before.family_id
        assert now.ordinal == 5 + step
        assert now.founder is None
    assert (await only_family(index)).size == 4


async def test_a_family_without_a_living_member_cannot_be_joined(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    batch = [copy_of(WORDS, "b", 1), copy_of(WORDS, "c", 1)]
    answers = await index.admit(batch, START_MS)
    await only(index, removal("a"))
    for one, answer in zip(batch, answers, strict=True):
        settled = await told(index, one, answer, named(answer, "a"), [pair(named(answer, "a"))])
        assert (settled.family, settled.follow, settled.is_refused) == (None, None, True)
    # Both left out the buckets of the removed one, so they find each other only now.
    missed = [(await index.enter([(answer.number, one)]))[0] for one, answer in zip(batch, answers, strict=True)]
    assert [ids(each) for each in missed] == [[], ["b"]]


async def test_many_documents_that_enter_at_once_find_those_that_entered_before(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    batch = [copy_of(WORDS, f"b{number:02}", 1) for number in range(40)]
    answers = await index.admit(batch, START_MS)
    await only(index, removal("a"))
    missed = await index.enter([(answer.number, one) for one, answer in zip(batch, answers, strict=True)])
    assert [sorted(ids(each)) for each in missed] == [
        [one.document_key.partition("/")[2] for one in batch[:number]] for number in range(40)
    ]


async def test_a_denied_presumption_is_undone_and_may_be_undone_again(index: AnyIndex) -> None:
    first, one, later = in_order([copy_of(WORDS, "a", 0), copy_of(WORDS, "b"), copy_of(WORDS, "c", 10)])
    await only(index, first)
    answer = await only(index, one)
    assert ids((await only(index, later)).candidates) == ["a"]
    for expected in (["a", "c"], ["c"]):
        (missed,) = await index.enter([(answer.number, one)])
        assert ids(missed) == expected
        again = await only(index, one)
        assert (again.status, again.presumed, again.may_change) == (Status.REPLAYED, 0, True)
        assert {"a", "c"} <= set(ids(again.candidates))
    assert family(await told(index, one, answer)).ordinal == 1
    assert (await only(index, one)).candidates == ()
    found = await only(index, copy_of(WORDS, "q", 5))
    assert named(found, "b").represents


async def test_a_copy_of_a_member_is_led_to_the_representative(index: AnyIndex) -> None:
    """The member was still in flight when its copy saw it."""
    await only(index, copy_of(WORDS, "a", 0))
    middle, copy = admission("m", anchors=[*range(9, 20), *range(90, 99)]), admission("c", anchors=[*range(88, 99)])
    seen_middle = await only(index, middle)
    seen_copy = await only(index, copy)
    await told(index, middle, seen_middle, named(seen_middle, "a"))
    settled = await told(index, copy, seen_copy, named(seen_copy, "m"))
    assert settled.family is None
    assert settled.follow is not None
    assert settled.follow.signature.id == "a"
    assert family(await told(index, copy, seen_copy)).ordinal == 1


async def test_who_was_joined_in_flight_brings_the_others_along(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    middle, copy = in_order(
        [admission("m", anchors=[*range(9, 20), *range(90, 99)]), admission("c", anchors=range(80, 99))]
    )
    seen_middle, seen_copy = await index.admit([middle, copy], START_MS)
    said = family(await told(index, copy, seen_copy, named(seen_copy, "m")))
    assert (said.number, said.ordinal) == (seen_middle.number, 2)
    head = named(seen_middle, "a")
    settled = await told(index, middle, seen_middle, head, [pair(head)])
    assert (family(settled).number, family(settled).ordinal, settled.sent) == (head.number, 2, (True,))
    facts = await only_family(index)
    assert (facts.number, facts.size, facts.joined) == (head.number, 3, (2, 2, 2))
    again = await only(index, copy)
    assert again.decision is not None
    assert again.decision.family == replace(said, number=head.number)
    await only(index, removal("c"))
    assert (await only_family(index)).size == 2


async def test_two_that_join_each_other_are_one_family(index: AnyIndex) -> None:
    first, second = copy_of(WORDS, "a", 8), copy_of(WORDS, "b", 8)
    seen = await index.admit([first, second], START_MS)
    back = replace(named(seen[1], "a"), number=seen[1].number, earlier=Unpacked(second.signature))
    assert family(await told(index, first, seen[0], back)).ordinal == 2
    assert (await told(index, second, seen[1], named(seen[1], "a"))).is_refused
    founder = family(await told(index, second, seen[1]))
    assert (founder.number, founder.ordinal) == (seen[1].number, 1)
    assert (await only_family(index)).size == 2


async def test_who_joins_a_presumed_copy_is_not_presumed_with_it(index: AnyIndex) -> None:
    """The second joins the first, which is presumed a copy of the founder. Those after it join the first too."""
    await only(index, copy_of(WORDS, "a", 0))
    first, second, third = copy_of(WORDS, "b", 8), copy_of(WORDS, "c", 8), copy_of(WORDS, "d", 8)
    seen = await index.admit([first, second, third], START_MS)
    await index.enter([(seen[1].number, second)])
    back = replace(named(seen[1], "a"), number=seen[0].number, earlier=Unpacked(first.signature))
    assert family(await told(index, second, seen[1], back)).ordinal == 2
    through = replace(back, number=seen[1].number, earlier=Unpacked(second.signature))
    follow = (await told(index, third, seen[2], through)).follow
    assert follow is not None
    assert follow.number == seen[0].number
    assert family(await told(index, third, seen[2], follow)).ordinal == 3
    await index.enter([(seen[0].number, first)])
    assert family(await told(index, first, seen[0])).number == seen[0].number
    assert (await only_family(index)).size == 3


async def test_another_state_that_is_a_copy_keeps_its_place(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    for name in "bc":
        await joined(index, copy_of(WORDS, name))
    before = await only_family(index)
    update = replace(copy_of(WORDS, "a", 1, at=5), document_key="default/a")
    answer = await only(index, update)
    assert (answer.status, answer.presumed) == (Status.UPDATED, 0)
    assert answer.previous is not None
    kept = family(await told(index, update, answer, answer.previous, keeps=True))
    assert (kept.family_id, kept.ordinal) == (before.family_id, 1)
    assert replace(await only_family(index), representative=0) == replace(before, representative=0)
    left = admission("a", anchors=["other"], at=9)
    answer = await only(index, left)
    gone = family(await told(index, left, answer))
    assert gone.family_id != before.family_id
    assert (await only_family(index)).size == 2


async def test_an_update_that_is_a_copy_leaves_out_the_buckets_of_its_family(make: Make) -> None:
    index = await make(IndexLimits(bucket_cap=12, documents=6_400))
    await joined(index, copy_of(WORDS, "a", 0))
    for name in "bcd":
        await joined(index, copy_of(WORDS, name))
    before = await only_family(index)
    for at in range(1, 20):
        update = replace(copy_of(WORDS, f"b{at}", 1, at=at), document_key="default/b")
        answer = await only(index, update)
        assert answer.previous is not None
        assert (answer.presumed, answer.full_buckets) == (before.representative, 0)
        kept = family(await told(index, update, answer, answer.previous, keeps=True))
        assert (kept.family_id, kept.ordinal) == (before.family_id, 2)
    assert await only_family(index) == before


async def test_an_update_that_relies_on_another_family_cannot_keep_its_own(index: AnyIndex) -> None:
    others = [f"other {number}" for number in range(20)]
    for words, names in ((others, "xy"), (WORDS, "ab")):
        for name in names:
            await joined(index, copy_of(words, name, 0 if name in "xa" else 2))
    (own, _) = await facts_of_families(index, START_MS)
    update = replace(copy_of(WORDS, "y", 1, at=5), document_key="default/y")
    answer = await only(index, update)
    assert answer.previous is not None
    assert answer.presumed > 0
    refused = await told(index, update, answer, answer.previous, keeps=True)
    assert (refused.family, refused.is_refused) == (None, True)
    await index.enter([(answer.number, update)])
    kept = family(await told(index, update, answer, answer.previous, keeps=True))
    assert (kept.family_id, kept.ordinal) == (own.family_id, 2)


async def test_a_state_superseded_in_flight_can_still_be_joined(index: AnyIndex) -> None:
    await only(index, copy_of(WORDS, "a", 0))
    one, update = copy_of(WORDS, "b"), replace(copy_of(WORDS, "a", 1, at=5), document_key="default/a")
    seen, answer = await index.admit([one, update], START_MS)
    said = family(await told(index, one, seen, named(seen, "a")))
    assert said.ordinal == 2
    assert answer.previous is not None
    kept = family(await told(index, update, answer, answer.previous, keeps=True))
    assert (kept.family_id, kept.ordinal) == (said.family_id, 1)
    assert (await only_family(index)).size == 2


async def test_a_copy_late_in_the_life_of_the_representative_takes_its_place(make: Make) -> None:
    index = await make(BRIEF)
    await only(index, copy_of(WORDS, "a", 0))
    heads = set[int]()
    for second in range(30, 1_200, 30):
        answer, said = await joined(index, copy_of(WORDS, f"c{second}"), second)
        assert answer.candidates
        assert said is not None
        assert said.ordinal == 1 + second // 30
        heads.add((await only_family(index, second)).representative)
    assert len(heads) > 4


@pytest.mark.parametrize(("limit", "sent"), [(1, [True, False, False]), (2, [True, True, False]), (0, [True] * 3)])
async def test_events_with_another_family_are_limited(make: Make, limit: int, sent: list[bool]) -> None:
    index = await make(IndexLimits(documents=6_400, events_per_family=limit))
    await only(index, copy_of(WORDS, "a", 0))
    others = [copy_of(WORDS, name) for name in "bc"]
    for one in others:
        await joined(index, one)
    q = admission("q", bands=["q"], anchors=["q"])
    answer = await only(index, q)
    numbers = {name: (await only(index, one)).number for name, one in (("b", others[0]), ("c", others[1]))}
    head = await index.look_up(copy_of(WORDS, "a", 0).keys, 1, START_MS)
    related = [pair(replace(head[0], number=number), "overlap") for number in (head[0].number, *numbers.values())]
    assert list((await told(index, q, answer, None, related)).sent) == sent


async def test_the_former_state_is_always_sent_and_a_relation_not_asked_for_never(index: AnyIndex) -> None:
    batch = [admission(name, bands=[1]) for name in "abcd"]
    answers = await index.admit(batch, START_MS)
    found = answers[3].candidates
    related = [pair(found[0], "version", Sending.ALWAYS), pair(found[1], "overlap", Sending.NEVER), pair(found[2])]
    settled = await told(index, batch[3], answers[3], None, related)
    assert settled.sent == (True, False, True)


async def test_members_repeat_no_relation_between_two_families(index: AnyIndex) -> None:
    away = admission("away", bands=["far"], anchors=["far"])
    await only(index, away)
    (far,) = await index.look_up(away.keys, 1, START_MS)
    sent = []
    for number in range(4):
        one = copy_of(WORDS, f"c{number}")
        answer = await only(index, one)
        head = [each for each in answer.candidates if each.number == answer.presumed]
        relation = "overlap" if number < 3 else "containment"
        settled = await told(index, one, answer, head[0] if head else None, [*map(pair, head), pair(far, relation)])
        sent.append(settled.sent[-1])
    assert sent == [True, False, False, True]


async def test_a_pair_with_a_removed_document_is_not_sent(index: AnyIndex) -> None:
    batch = [admission(name, bands=[1]) for name in "abc"]
    answers = await index.admit(batch, START_MS)
    await only(index, removal("a"))
    related = [pair(each, relation) for each, relation in zip(answers[2].candidates, RELATIONS, strict=False)]
    assert (await told(index, batch[2], answers[2], None, related)).sent == (False, True)
    await only(index, removal("c"))
    assert await told(index, batch[2], answers[2], None, related) == Settled(None, (False, False))


async def test_an_unchanged_record_names_the_family_of_its_state(index: AnyIndex) -> None:
    first, copy, same = in_order([copy_of(WORDS, "a", 0), copy_of(WORDS, "b"), copy_of(WORDS, "b", at=7)])
    await only(index, first)
    _, said = await joined(index, copy)
    for _ in range(2):
        answer = await only(index, same)
        assert (answer.status, answer.candidates) == (Status.UNCHANGED, ())
        assert answer.decision is not None
        assert answer.decision.family == said
    assert (await only(index, at_offset(replace(same), 3))).status is Status.UNCHANGED
