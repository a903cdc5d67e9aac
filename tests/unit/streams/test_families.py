"""Verdicts and families of documents with real signatures: the laws of the design."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace as with_fields

from nearstream.schemas.events import PairEvent
from nearstream.schemas.signature import Signature
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.matcher import Arrival, Matched, Matcher
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store
from nearstream.streams.store.registration import Status
from tests.support.families import (
    BODY,
    Interleaved,
    Shaky,
    arrivals,
    campaign,
    edited,
    family_of,
    lines,
    partition,
    real_traffic,
    rewritten,
    until_done,
)
from tests.support.matching import KEY, SCHEME, prose, signed

FOR_EVER = IndexLimits(retention_seconds=0)
FOUR_HOURS = IndexLimits(retention_seconds=4 * 3600)
COPIES = ("exact_duplicate", "near_duplicate")


def matcher(limits: IndexLimits = FOR_EVER) -> Matcher:
    return Matcher(local_store(limits), SCHEME, KEY)


def gone(name: str) -> Arrival:
    return Arrival(f"news/{name}", None, removed_at_ms=1_790_000_000_000)


def verdict(matched: Matched) -> DocumentVerdict:
    assert matched.verdict is not None
    return matched.verdict


def pair_events(matched: Sequence[Matched]) -> list[PairEvent]:
    return [event for each in matched for event in each.events if isinstance(event, PairEvent)]


async def one_by_one(one: Matcher, signatures: Sequence[Signature]) -> list[Matched]:
    return [await one.match(each) for each in signatures]


async def test_a_document_like_no_other_is_unique_and_founds_a_family() -> None:
    (found,) = await one_by_one(matcher(), [signed("a", BODY)])
    said = verdict(found)
    assert (said.verdict, said.of, said.events, found.events) == ("unique", None, 0, ())
    assert said.family.ordinal == 1
    assert said.family.founder is not None
    assert said.family.founder.id == "a"


async def test_copies_join_the_family_of_the_first_in_order() -> None:
    found = await one_by_one(matcher(), [*campaign(4), signed("last", BODY, 9)])
    assert {verdict(each).family.id for each in found} == {verdict(found[0]).family.id}
    assert [verdict(each).family.ordinal for each in found] == [1, 2, 3, 4, 5]
    assert [len(each.events) for each in found] == [0, 1, 1, 1, 1]
    assert {event.older.id for event in pair_events(found)} == {"m0"}
    assert {event.family for event in pair_events(found)} == {verdict(found[0]).family.id}


@pytest.mark.parametrize("seed", range(4))
async def test_every_state_has_one_verdict(seed: int) -> None:
    random = Random(seed)
    records = arrivals(real_traffic(random, 120, 30))
    one, ids = matcher(), Counter[str]()
    while records:
        part, records = records[: (size := random.randrange(1, 9))], records[size:]
        removed_here = {each.document_key for each in part if each.signature is None}
        for arrival, found in zip(part, await one.match_all(part), strict=True):
            if found.verdict is None:
                # A document that is removed within its batch is gone before it is settled.
                assert arrival.signature is None or arrival.document_key in removed_here
            else:
                assert found.verdict.id == arrival.document_key.removeprefix("news/")
                assert found.verdict.events == len(found.events)
                ids[found.verdict.event_id] += 1
    assert len(ids) > 80
    assert set(ids.values()) == {1}


def without_the_removed(matched: Matched, keys: set[str]) -> tuple[DocumentVerdict, set[bytes]]:
    """Return a verdict that names no removed document, and the events about others."""
    said, names = verdict(matched), {key.removeprefix("news/") for key in keys}
    founder = said.family.founder
    if founder is not None and founder.id in names:
        said = with_fields(said, family=with_fields(said.family, founder=None))
    kept = [event for event in pair_events([matched]) if not {event.newer.id, event.older.id} & names]
    return said, set(lines(Matched(None, tuple(kept), matched.admitted)))


@pytest.mark.parametrize("seed", range(8))
async def test_a_replay_restates_the_verdict_byte_for_byte(seed: int) -> None:
    """Answers get lost after the index has done what was asked, and any record is delivered again."""
    random = Random(seed)
    records = arrivals(real_traffic(random, 120, 30))
    shaky = Shaky(local_store(FOR_EVER), random, 0.25)
    one, first, removed, done = Matcher(shaky, SCHEME, KEY), dict[int, Matched](), set[str](), 0
    while done < len(records):
        part = records[done : done + random.choice((1, 1, 2, 4, 8, 16))]
        for at, found in enumerate(await until_done(lambda part=part: one.match_all(part)), done):
            first[at] = found
        done += len(part)
        removed |= {each.document_key for each in part if each.signature is None}
        for at in random.sample(range(done), min(10, done)):
            (again,) = await until_done(lambda at=at: one.match_all([records[at]]))
            check_replay(records[at], first[at], again, removed)
    assert shaky.lost > 20


def check_replay(arrival: Arrival, then: Matched, again: Matched, removed: set[str]) -> None:
    if arrival.document_key in removed or then.verdict is None:
        return
    named = [then.verdict.of, then.verdict.family.founder]
    named += [ref for event in pair_events([then]) for ref in (event.newer, event.older)]
    if not {f"news/{ref.id}" for ref in named if ref} & removed:
        assert lines(again) == lines(then)
        return
    said, events = without_the_removed(then, removed)
    now, told = without_the_removed(again, removed)
    assert told == events
    assert (now.event_id, now.verdict, now.events, now.family) == (
        said.event_id,
        said.verdict,
        said.events,
        said.family,
    )


@pytest.mark.parametrize("seed", range(12))
async def test_an_answer_lost_anywhere_changes_no_family(seed: int) -> None:
    """The batch is sent again after some of its calls were done. Only another counterpart may be named."""
    records = arrivals([each for each in real_traffic(Random(5), 60, 20) if isinstance(each, Signature)])
    calm = await matcher().match_all(records)
    told = await matcher(IndexLimits(retention_seconds=0, events_per_family=0)).match_all(records)
    shaky = Shaky(local_store(FOR_EVER), Random(seed), 0.4)
    one = Matcher(shaky, SCHEME, KEY)
    found = await until_done(lambda: one.match_all(records))
    assert [verdict(each).event_id for each in found] == [verdict(each).event_id for each in calm]
    assert [verdict(each).family for each in found] == [verdict(each).family for each in calm]
    assert [verdict(each).verdict for each in found] == [verdict(each).verdict for each in calm]
    assert {event.event_id for event in pair_events(found)} <= {event.event_id for event in pair_events(told)}


async def test_an_unchanged_record_has_the_family_of_its_state() -> None:
    copy = signed("b", edited(BODY, 3), 1)
    again = with_fields(copy, observed_at_ms=copy.observed_at_ms + 1)
    for batched in (True, False):
        one, batch = matcher(), arrivals([signed("a", BODY), copy, again, again])
        found = await one.match_all(batch) if batched else [(await one.match_all([each]))[0] for each in batch]
        assert [verdict(each).verdict for each in found] == ["unique", "near_duplicate", "unchanged", "unchanged"]
        assert [verdict(each).family.ordinal for each in found] == [1, 2, 2, 2]
        assert {verdict(each).family.id for each in found} == {verdict(found[0]).family.id}


async def test_the_cost_of_a_copy_does_not_grow() -> None:
    one, looked_up, events = matcher(), list[int](), 0
    for each in campaign(150):
        found = await one.match(each)
        looked_up.append(one.counts.candidates["looked_up"])
        events += len(found.events)
    assert max(after - before for before, after in pairwise(looked_up)) <= 2
    assert events == 149


async def test_a_storm_fills_no_bucket() -> None:
    index = local_store(IndexLimits(retention_seconds=0, bucket_cap=12))
    one = Matcher(index, SCHEME, KEY)
    random, most = Random(2), 0
    for number in range(240):
        body = prose(random.randrange(8))
        text = body if random.random() < 0.2 else edited(body, number)
        found = await one.match(signed(f"m{number}", text, number))
        most = max(most, found.admitted.full_buckets)
        assert not found.admitted.cut
    assert most == 0
    assert sorted(each.size for each in await index.families()) == sorted(
        Counter(family_of(index, {str(number): number for number in range(1, 241)}).values()).values()
    )
    assert len(await index.families()) == 8


async def test_a_storm_of_updates_fills_no_bucket() -> None:
    index = local_store(IndexLimits(retention_seconds=0, bucket_cap=12))
    one = Matcher(index, SCHEME, KEY)
    for number in range(40):
        await one.match(signed(f"m{number}", prose(100 + number), number))
    body = prose(0)
    found = [await one.match(signed(f"m{number}", edited(body, number), 100 + number)) for number in range(40)]
    found += [await one.match(signed(f"m{number}", edited(body, 50 + number), 200 + number)) for number in range(40)]
    found += [await one.match(signed(f"m{number}", body, 300 + number)) for number in range(40)]
    assert max(each.admitted.full_buckets for each in found) == 0
    assert [verdict(each).family.ordinal for each in found] == 3 * list(range(1, 41))
    assert [each.size for each in await index.families()] == [40]


@pytest.mark.parametrize("edits", [42, 46])
async def test_an_update_that_keeps_its_family_does_not_rely_on_the_buckets_of_another(edits: int) -> None:
    """The update lies between its former state and the founder of another family, and is a copy of both."""
    words, index = BODY.split(), local_store(FOR_EVER)
    one = Matcher(index, SCHEME, KEY)
    former = " ".join([*prose(200).split()[:edits], *words[edits:]])
    other = rewritten(BODY, 2, edits)
    before = await one_by_one(one, [signed("own", former, 1), signed("other", other, 2), signed("more", other, 3)])
    update = await one.match(signed("own", BODY, 4))
    assert update.admitted.presumed == before[1].admitted.number
    assert verdict(update).family.id == verdict(before[0]).family.id != verdict(before[1]).family.id
    await one.match_all([gone("other"), gone("more")])
    copy = await one.match(signed("copy", edited(BODY, 3), 5))
    assert verdict(copy).verdict in COPIES
    assert verdict(copy).family.id == verdict(update).family.id


async def race(index: Store, signatures: Sequence[Signature], random: Random, workers: int) -> list[Matched]:
    """Match documents with several workers whose calls of the index interleave."""
    found: list[Matched] = []

    async def work(part: Sequence[Signature]) -> None:
        one, done = Matcher(Interleaved(index, random), SCHEME, KEY), 0
        while done < len(part):
            batch = part[done : done + random.choice((1, 1, 2, 3, 5))]
            done += len(batch)
            found.extend(await one.match_all([Arrival(each.document_key, each) for each in batch]))

    await asyncio.gather(*[work(signatures[own::workers]) for own in range(workers)])
    return found


@pytest.mark.parametrize("seed", range(20))
async def test_racing_copies_end_in_one_family(seed: int) -> None:
    random = Random(seed)
    texts = [
        (f"{body}-{number}", edited(prose(body), 9 * body + number % random.choice((3, 99)), random.choice((1, 2, 4))))
        for body in range(3)
        for number in range(14)
    ]
    random.shuffle(texts)
    signatures = [signed(name, text, minute) for minute, (name, text) in enumerate(texts)]
    index = local_store(FOR_EVER)
    found = await race(index, signatures, random, workers=4)
    numbers = {verdict(each).id: each.admitted.number for each in found}
    assert partition(family_of(index, numbers)) == partition({name: int(name[0]) for name, _ in texts})
    assert sorted(each.size for each in await index.families()) == [14, 14, 14]
    related = {verdict(each).id for each in found if verdict(each).verdict in COPIES}
    assert len(related) >= len(texts) - 3
    assert all(verdict(each).events == len(each.events) for each in found)


@pytest.mark.parametrize("twins", [1, 2, 4])
async def test_copies_that_saw_each_other_before_all_were_denied_end_in_one_family(twins: int) -> None:
    """All share most anchors with a document of which they are no copies, since its parts are in another order.

    One of them is a near-duplicate of the others, whose texts are equal.
    """
    parts, denied = [prose(10 + part) for part in range(3)], 0
    for seed in range(60):
        index, body = local_store(FOR_EVER), " ".join(parts[::-1])
        await Matcher(index, SCHEME, KEY).match(signed("other", " ".join(parts), 0))
        texts = [edited(body, 1_000 + seed, 2), *[edited(body, 2_000 + seed, 2)] * twins]
        copies = [signed(f"m{minute}", text, minute) for minute, text in enumerate(texts, start=1)]
        found = await race(index, copies, Random(seed), workers=len(copies))
        denied += all(each.admitted.presumed for each in found)
        assert len({index.family_of(each.admitted.number) for each in found}) == 1
        assert [facts.size for facts in await index.families()] == [len(copies)]
    assert denied


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(3))
async def test_a_removed_founder_loses_nobody(seed: int, exact: bool) -> None:
    """Whoever represents the family is removed again and again, and documents also expire."""
    random, index = Random(seed), local_store(FOUR_HOURS)
    one, living = Matcher(index, SCHEME, KEY), dict[str, int]()
    for minute in range(600):
        heads = {facts.representative for facts in await index.families()}
        if living and random.random() < 0.3:
            victim = random.choice([name for name in living if living[name] in heads] or list(living))
            del living[victim]
            await one.match_all([gone(victim)])
        elif random.random() < 0.6:
            text = BODY if exact and random.random() < 0.6 else edited(BODY, minute)
            found = await one.match(signed(f"m{minute}", text, minute))
            living = {name: number for name, number in living.items() if minute - int(name[1:]) < 230}
            assert verdict(found).verdict in COPIES or not living
            living[f"m{minute}"] = found.admitted.number


async def test_an_updated_representative_loses_nobody() -> None:
    index = local_store(FOR_EVER)
    one = Matcher(index, SCHEME, KEY)
    first = await one_by_one(one, campaign(3))
    family = verdict(first[0]).family.id
    # A copy of the former state stays, with its ordinal. Another text leaves.
    kept = await one.match(signed("m0", edited(BODY, 777), 10))
    assert (verdict(kept).family.id, verdict(kept).family.ordinal) == (family, 1)
    left = await one.match(signed("m0", prose(50), 11))
    assert verdict(left).verdict == "version"
    assert verdict(left).family.id != family
    assert verdict(left).family.ordinal == 1
    (facts,) = await index.families()
    assert (facts.size, facts.joined) == (2, (2, 2, 2))
    for minute in range(12, 20):
        after = await one.match(signed(f"n{minute}", edited(BODY, minute), minute))
        assert (verdict(after).verdict, verdict(after).family.id) == ("near_duplicate", family)
    assert verdict(after).family.ordinal == 11


@pytest.mark.parametrize("size", [1, 3, 32])
@pytest.mark.parametrize("copies", [0, 2, 3])
async def test_a_founder_updated_in_the_batch_of_its_copies_loses_nobody(copies: int, size: int) -> None:
    mails = campaign(9)
    update = signed(mails[0].id, prose(9), 60)
    records = arrivals([*mails[: copies + 1], update, *mails[copies + 1 :]])
    job, told = matcher(), list[Matched]()
    for start in range(0, len(records), size):
        told += await job.match_all(records[start : start + size])
    told.pop(copies + 1)
    living = [verdict(each).family.id for each in told[1:]]
    assert len(set(living[:copies])) <= 1
    assert len(set(living[copies:])) == 1
    assert not copies or len(set(living)) == 1


@pytest.mark.parametrize("exact", [False, True])
async def test_an_expired_representative_was_replaced_in_time(exact: bool) -> None:
    """A campaign lasts four retentions, and a copy comes every half an hour."""
    index = local_store(FOUR_HOURS)
    one, heads, ids = Matcher(index, SCHEME, KEY), set[int](), set[str]()
    for minute in range(0, 16 * 60, 30):
        found = await one.match(signed(f"m{minute}", BODY if exact else edited(BODY, minute), minute))
        ids.add(verdict(found).family.id)
        assert verdict(found).verdict == ("unique" if not minute else COPIES[not exact])
        heads |= {each.representative for each in await index.families()}
    assert len(ids) == 1
    assert len(heads) > 3


async def test_a_document_seen_again_late_in_its_life_stays_in_its_family() -> None:
    one = matcher(FOUR_HOURS)
    member = signed("m1", edited(BODY, 1), 1)
    first = await one_by_one(one, [signed("m0", BODY), member])
    for minute in (130, 260, 390):
        found = await one.match(with_fields(member, observed_at_ms=member.observed_at_ms + 60_000 * minute))
        assert verdict(found).verdict == "unchanged"
        assert verdict(found).family.id == verdict(first[0]).family.id
        assert verdict(found).family.ordinal == 2
    late = await one.match(signed("m2", edited(BODY, 2), 400))
    assert verdict(late).family.id == verdict(first[0]).family.id
    assert verdict(late).family.ordinal == 3


async def test_families_do_not_chain() -> None:
    texts, index = [BODY], local_store(FOR_EVER)
    for step in range(12):
        words = texts[-1].split()
        words[30 * step : 30 * (step + 1)] = prose(200 + step).split()[:30]
        texts.append(" ".join(words))
    one = Matcher(index, SCHEME, KEY)
    signatures = [signed(f"s{step}", text, step) for step, text in enumerate(texts)]
    found = await one_by_one(one, signatures)
    families = {each.id: verdict(at).family.id for each, at in zip(signatures, found, strict=True)}
    assert 2 < len(set(families.values())) < 10
    for each, at in zip(signatures, found, strict=True):
        founder = verdict(at).family.founder
        assert founder is not None
        founded = next(other for other in signatures if other.id == founder.id)
        assert founded is each or one.compare(each, founded).verdict.relation in COPIES
    # A copy of a member that is no copy of the founder founds its own family, and its verdict names the member.
    assert any(
        verdict(at).family.ordinal == 1 and verdict(at).of is not None and verdict(at).verdict == "near_duplicate"
        for at in found
    )


async def test_a_false_presumption_is_undone() -> None:
    """Two states share most anchors, but one has much new text: no copy, so it enters all its buckets."""
    index = local_store(FOR_EVER)
    one = Matcher(index, SCHEME, KEY)
    page = [f"{BODY} {prose(60 + number, 130)}" for number in range(3)]
    found = await one_by_one(one, [signed(f"p{number}", text, number) for number, text in enumerate(page)])
    denied = [each for each in found if each.admitted.presumed and verdict(each).family.ordinal == 1]
    assert denied
    # What it shares with later documents is found by its own keys.
    for each in denied:
        number = int(verdict(each).id[1:])
        copy = await one.match(signed(f"c{number}", edited(page[number], number), 20 + number))
        assert verdict(copy).family.id == verdict(each).family.id
        part = await one.match(signed(f"q{number}", " ".join(page[number].split()[:300]), 30 + number))
        assert verdict(part).verdict == "containment"


@pytest.mark.parametrize("seed", range(4))
async def test_no_event_that_all_pairs_would_not_send(seed: int) -> None:
    random = Random(seed)
    records = real_traffic(random, 110, 60)
    every, few = matcher(IndexLimits(retention_seconds=0, events_per_family=0)), matcher()
    thinned: list[PairEvent] = []
    rest = arrivals(records)
    told = [event for each in rest for event in pair_events(await every.match_all([each]))]
    while rest:
        part, rest = rest[: (size := random.randrange(1, 9))], rest[size:]
        thinned += pair_events(await few.match_all(part))
    assert 20 < len(thinned) < len(told)
    assert {event.event_id for event in thinned} <= {event.event_id for event in told}


async def test_the_former_state_of_a_lineage_always_has_its_event() -> None:
    states = [signed(f"s{step}", edited(BODY, step, 60), step, lineage="page") for step in range(6)]
    found = await one_by_one(matcher(), states)
    for step, each in enumerate(found[1:], 1):
        assert f"s{step - 1}" in {event.older.id for event in pair_events([each])}


@pytest.mark.parametrize("seed", range(3))
async def test_counts_of_a_family_are_exact_under_redelivery(seed: int) -> None:
    random = Random(seed)
    index = local_store(FOR_EVER)
    shaky = Shaky(index, random, 0.3)
    one, batch = Matcher(shaky, SCHEME, KEY), arrivals(campaign(60))
    done = 0
    while done < len(batch):
        size = random.randrange(1, 12)
        again = batch[max(0, done - 5) : done]
        await until_done(lambda done=done, size=size, again=again: one.match_all([*again, *batch[done : done + size]]))
        done += size
    (facts,) = await index.families()
    assert (facts.size, facts.joined) == (60, (59, 59, 59))
    found = await until_done(lambda: one.match_all(batch))
    assert [verdict(each).family.ordinal for each in found] == list(range(1, 61))
    assert {each.admitted.status for each in found} == {Status.REPLAYED}


@pytest.mark.parametrize("seed", range(4))
async def test_members_are_copies_of_the_one_that_represented_them(seed: int) -> None:
    """Whatever happens to a family, who joins was related to a member, and most are copies of the founder."""
    random = Random(seed)
    index, documents = local_store(FOR_EVER), real_traffic(random, 160, 50)
    one, current = Matcher(index, SCHEME, KEY), dict[int, Signature]()
    for each in documents:
        heads = {facts.family_id: facts.representative for facts in await index.families()}
        (found,) = await one.match_all([gone(each) if isinstance(each, str) else Arrival(each.document_key, each)])
        if not isinstance(each, str):
            current[found.admitted.number] = each
            said = verdict(found)
            joins = found.admitted.status is Status.NEW and said.family.ordinal > 1
            if joins and heads.get(said.family.id):
                head_text = current[heads[said.family.id]]
                is_copy = one.compare(with_fields(each, lineage=None), with_fields(head_text, lineage=None))
                twins = [other for other in current.values() if other.digest == each.digest and other is not each]
                assert is_copy.verdict.relation in COPIES or twins
