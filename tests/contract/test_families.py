"""Families of documents with real signatures, in memory and on Redis: who joins, who represents, what is counted."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import kind_of
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.families import Growth
from nearstream.streams.store.limits import HOUR_MS, IndexLimits
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Store
from tests.support.families import (
    BODY,
    COPIES,
    arrivals,
    campaign,
    edited,
    gone,
    pair_events,
    real_traffic,
    rewritten,
)
from tests.support.matched import verdict
from tests.support.matching import KEY, SCHEME, TIME, prose, signed
from tests.support.stores import Interleaved, Make, at_time, growths, through

FOR_EVER = IndexLimits(retention_seconds=0)
FOUR_HOURS = IndexLimits(retention_seconds=4 * 3600)
START_MS = to_milliseconds(TIME)
MINUTE_MS = 60_000


def matcher(store: Store) -> Matcher:
    return Matcher(store, SCHEME, KEY)


async def one_by_one(one: Matcher, signatures: Sequence[Signature]) -> list[Matched]:
    return [await one.match(each) for each in signatures]


async def families(store: Store, matched: Sequence[Matched]) -> list[Growth]:
    """Return the families of more than one document."""
    return await growths(store, [each.registered.number for each in matched])


async def test_a_document_like_no_other_is_unique_and_founds_a_family(store: Store) -> None:
    found = await matcher(store).match(signed("a", BODY))
    said = verdict(found)
    assert (said.verdict, said.of, said.events, found.events) == ("unique", None, 0, ())
    assert said.family.ordinal == 1
    assert said.family.founder is not None
    assert said.family.founder.id == "a"


async def test_copies_join_the_family_of_the_first_in_order(store: Store) -> None:
    found = await one_by_one(matcher(store), [*campaign(4), signed("last", BODY, 9)])
    assert {verdict(each).family.id for each in found} == {verdict(found[0]).family.id}
    assert [verdict(each).family.ordinal for each in found] == [1, 2, 3, 4, 5]
    assert [len(each.events) for each in found] == [0, 1, 1, 1, 1]
    assert {event.older.id for event in pair_events(found)} == {"m0"}
    assert {event.family for event in pair_events(found)} == {verdict(found[0]).family.id}


async def test_families_do_not_depend_on_the_size_of_a_batch(make: Make) -> None:
    """A state that is superseded in a batch is alive to those before its successor, as it is in smaller batches."""
    batch = arrivals([each for each in real_traffic(Random(1), 80, 25) if isinstance(each, Signature)])
    said = []
    for size in (1, 3, 32):
        one = matcher(await make(FOR_EVER))
        told = [each for at in range(0, len(batch), size) for each in await one.match_all(batch[at : at + size])]
        said.append([(verdict(each).event_id, verdict(each).verdict, verdict(each).family.id) for each in told])
    assert said[1:] == said[:1] * 2


async def test_joins_are_counted_by_the_hour_the_day_and_the_week(make: Make) -> None:
    store, time = at_time(await make(FOR_EVER), START_MS)
    one, mails, found = matcher(store), campaign(6), list[Matched]()
    for mail, hours in zip(mails, (0, 1, 30, 47.9, 48.8, 49), strict=True):
        time.now_ms = START_MS + int(hours * HOUR_MS)
        found.append(await one.match(mail))
    (family,) = await families(store, found)
    assert (family.size, family.joined) == (6, (2, 4, 5))
    assert family.last_ms == time.now_ms


@pytest.mark.parametrize("exact", [False, True])
async def test_the_cost_of_a_copy_does_not_grow(store: Store, exact: bool) -> None:
    one, looked_up, events = matcher(store), list[int](), 0
    for number in range(60):
        text = BODY if exact else rewritten(BODY, number, 2)
        found = await one.match(signed(f"m{number}", text, number))
        looked_up.append(one.counts.candidates["looked_up"])
        events += len(found.events)
        assert verdict(found).low_confidence == verdict(found).degraded == ()
    assert max(after - before for before, after in pairwise(looked_up)) <= (3 if exact else 2)
    assert events == 59


async def race(store: Store, signatures: Sequence[Signature], random: Random, lanes: int) -> list[Matched]:
    """Match documents with several lanes, of a partition each, whose calls interleave."""
    found: list[Matched] = []

    async def work(lane: int) -> None:
        one = matcher(through(store, lambda transport: Interleaved(transport, random)))
        left = arrivals(signatures[lane::lanes], partition=lane)
        while left:
            batch, left = left[: (size := random.choice((1, 1, 2, 3, 5)))], left[size:]
            found.extend(await one.match_all(batch))

    await asyncio.gather(*map(work, range(lanes)))
    return found


@pytest.mark.parametrize("twins", [1, 3])
async def test_racing_copies_that_share_most_words_with_another_document_end_in_one_family(
    make: Make, twins: int
) -> None:
    """They are no copies of that one, since its parts are in another order.

    One of them is a near-duplicate of the others, whose texts are equal.
    """
    parts = [prose(10 + part) for part in range(3)]
    body = " ".join(parts[::-1])
    for seed in range(8):
        store = await make(FOR_EVER)
        await matcher(store).match_all(arrivals([signed("other", " ".join(parts), 0)], first=1_000))
        texts = [edited(body, 1_000 + seed, 2), *[edited(body, 2_000 + seed, 2)] * twins]
        copies = [signed(f"m{minute}", text, minute) for minute, text in enumerate(texts, start=1)]
        found = await race(store, copies, Random(seed), lanes=len(copies))
        assert [each.size for each in await families(store, found)] == [len(copies)]


async def test_a_removed_representative_hands_its_family_on(store: Store) -> None:
    one, mails = matcher(store), campaign(4)
    found = await one_by_one(one, mails)
    for step, mail in enumerate(mails):
        await one.match_all([gone(mail.id)])
        found.append(await one.match(signed(f"n{step}", edited(BODY, 300 + step), 10 + step)))
        said = verdict(found[-1])
        assert (said.family.id, said.family.ordinal) == (verdict(found[0]).family.id, 5 + step)
        assert said.family.founder is None
    assert [each.size for each in await families(store, found)] == [4]


async def test_who_comes_after_all_members_were_removed_founds_a_family(store: Store) -> None:
    one, mails = matcher(store), campaign(4)
    first = await one_by_one(one, mails[:2])
    await one.match_all([gone("m0"), gone("m1")])
    third, last = await one_by_one(one, mails[2:])
    assert (verdict(third).verdict, verdict(third).family.ordinal) == ("unique", 1)
    assert verdict(third).family.id == verdict(last).family.id != verdict(first[0]).family.id


async def test_an_updated_representative_loses_nobody(store: Store) -> None:
    one = matcher(store)
    first = await one_by_one(one, campaign(3))
    family = verdict(first[0]).family.id
    # A copy of the former state stays, with its ordinal. Another text leaves.
    kept = await one.match(signed("m0", edited(BODY, 777), 10))
    assert (verdict(kept).family.id, verdict(kept).family.ordinal) == (family, 1)
    left = await one.match(signed("m0", prose(50), 11))
    assert verdict(left).verdict == "version"
    assert verdict(left).family.id != family
    assert verdict(left).family.ordinal == 1
    (growth,) = await families(store, first)
    assert (growth.size, growth.joined) == (2, (2, 2, 2))
    for minute in range(12, 20):
        after = await one.match(signed(f"n{minute}", edited(BODY, minute), minute))
        assert (verdict(after).verdict, verdict(after).family.id) == ("near_duplicate", family)
    assert verdict(after).family.ordinal == 11


@pytest.mark.parametrize("size", [1, 32])
@pytest.mark.parametrize("copies", [0, 3])
async def test_a_founder_updated_in_the_batch_of_its_copies_loses_nobody(store: Store, copies: int, size: int) -> None:
    mails, one, told = campaign(9), matcher(store), list[Matched]()
    update = signed(mails[0].id, prose(9), 60)
    records = arrivals([*mails[: copies + 1], update, *mails[copies + 1 :]])
    for start in range(0, len(records), size):
        told += await one.match_all(records[start : start + size])
    told.pop(copies + 1)
    living = [verdict(each).family.id for each in told[1:]]
    assert len(set(living[:copies])) <= 1
    assert len(set(living[copies:])) == 1
    assert not copies or len(set(living)) == 1


async def test_a_document_seen_again_late_in_its_life_stays_in_its_family(make: Make) -> None:
    store, time = at_time(await make(FOUR_HOURS), START_MS)
    one, member = matcher(store), signed("m1", edited(BODY, 1), 1)
    first = await one_by_one(one, [signed("m0", BODY), member])
    for minute in (130, 260, 390):
        time.now_ms = START_MS + minute * MINUTE_MS
        found = await one.match(with_fields(member, observed_at_ms=member.observed_at_ms + 60_000 * minute))
        assert verdict(found).verdict == "unchanged"
        assert verdict(found).family.id == verdict(first[0]).family.id
        assert verdict(found).family.ordinal == 2
    late = await one.match(signed("m2", edited(BODY, 2), 400))
    assert verdict(late).family.id == verdict(first[0]).family.id
    assert verdict(late).family.ordinal == 3


async def test_families_do_not_chain(store: Store) -> None:
    texts = [BODY]
    for step in range(12):
        words = texts[-1].split()
        words[30 * step : 30 * (step + 1)] = prose(200 + step).split()[:30]
        texts.append(" ".join(words))
    one = matcher(store)
    signatures = [signed(f"s{step}", text, step) for step, text in enumerate(texts)]
    found = await one_by_one(one, signatures)
    assert 2 < len({verdict(at).family.id for at in found}) < 10
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


async def test_a_page_with_most_words_of_another_one_is_found_by_all_its_words(store: Store) -> None:
    """They share most anchors, but have much text of their own: no copies."""
    one, page = matcher(store), [f"{BODY} {prose(60 + number, 130)}" for number in range(3)]
    found = await one_by_one(one, [signed(f"p{number}", text, number) for number, text in enumerate(page)])
    founding = [number for number, each in enumerate(found) if verdict(each).family.ordinal == 1]
    assert len(founding) > 1
    for number in founding:
        copy = await one.match(signed(f"c{number}", edited(page[number], number), 20 + number))
        assert verdict(copy).family.id == verdict(found[number]).family.id
        part = await one.match(signed(f"q{number}", " ".join(page[number].split()[-130:]), 30 + number))
        assert (verdict(part).verdict, verdict(part).of and verdict(part).of.id) == ("containment", f"p{number}")


async def test_a_document_has_one_event_with_another_family(make: Make) -> None:
    one = matcher(await make(FOR_EVER))
    await one_by_one(one, campaign(4))
    found = await one.match(signed("q", f"{' '.join(BODY.split()[:150])} {prose(70)}", 9))
    assert [type(event).__name__ for event in found.events] == ["Overlap"]


async def test_members_repeat_no_relation_between_two_families(store: Store) -> None:
    one, passage = matcher(store), " ".join(BODY.split()[100:250])
    await one.match(signed("away", f"{prose(70)} {passage}"))
    found = await one_by_one(one, campaign(4))
    assert [[type(event).__name__ for event in each.events] for each in found] == [
        ["Overlap"],
        *[["NearDuplicate"]] * 3,
    ]


async def test_the_former_state_of_a_lineage_always_has_its_event(store: Store) -> None:
    states = [signed(f"s{step}", edited(BODY, step, 60), step, lineage="page") for step in range(3)]
    found = await one_by_one(matcher(store), states)
    for step, each in enumerate(found[1:], 1):
        assert f"s{step - 1}" in {event.older.id for event in pair_events([each])}


@pytest.mark.parametrize("seed", range(2))
async def test_every_event_is_what_its_two_documents_are_to_each_other(make: Make, seed: int) -> None:
    random, one, told = Random(seed), matcher(await make(FOR_EVER)), 0
    rest = arrivals(real_traffic(random, 110, 60))
    states = {(each.signature.id, each.signature.version): each.signature for each in rest if each.signature}
    while rest:
        part, rest = rest[: (size := random.randrange(1, 9))], rest[size:]
        for event in pair_events(await one.match_all(part)):
            newer, older = (states[ref.id, ref.version] for ref in (event.newer, event.older))
            assert one.compare(newer, older).verdict.relation == kind_of(event)
            told += 1
    assert told > 20


@pytest.mark.parametrize("seed", range(2))
async def test_members_are_copies_of_the_one_that_represented_them(make: Make, seed: int) -> None:
    """Whatever happens to a family, who joins is a copy of who represents it, or has the text of a member."""
    random, store = Random(seed), await make(FOR_EVER)
    one, current = matcher(store), dict[int, Signature]()
    for each in real_traffic(random, 120, 40):
        heads = {family.family_id.hex(): family.representative for family in await growths(store, current)}
        (found,) = await one.match_all([gone(each) if isinstance(each, str) else Arrival(each.document_key, each)])
        if not isinstance(each, str):
            current[found.registered.number] = each
            said = verdict(found)
            joins = found.registered.status is Status.NEW and not found.registered.former and said.family.ordinal > 1
            if joins and heads.get(said.family.id):
                head = current[heads[said.family.id]]
                pair = one.compare(with_fields(each, lineage=None), with_fields(head, lineage=None))
                twins = [other for other in current.values() if other.digest == each.digest and other is not each]
                assert pair.verdict.relation in COPIES or twins
