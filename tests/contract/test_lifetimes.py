"""How long documents can be found, in memory and on Redis."""

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.registration import Status
from tests.support.made_up import words
from tests.support.matched import found, in_order, matcher, put, sign, verdict
from tests.support.stores import Make, at_time

BRIEF = IndexLimits(retention_seconds=256)
START_MS = 1_790_000_000_000
TEXT = words(1, 80)
SAME = sign("any", TEXT)


async def test_an_expired_document_is_found_no_more(make: Make) -> None:
    store, time = at_time(await make(BRIEF), START_MS)
    one, (old, mid, new) = matcher(store), in_order([put("old", TEXT), put("mid", TEXT, 1), put("new", TEXT, 2)])
    await one.match_all([old])
    time.now_ms = START_MS + 200_000
    (told,) = await one.match_all([mid])
    assert (verdict(told).verdict, verdict(told).of and verdict(told).of.id) == ("exact_duplicate", "old")
    time.now_ms = START_MS + 300_000
    (told,) = await one.match_all([new])
    assert (verdict(told).of and verdict(told).of.id, verdict(told).family.ordinal) == ("mid", 3)
    assert sorted(await found(store, SAME)) == ["mid", "new"]
    (again,) = await one.match_all([old])
    assert (again.verdict, again.registered.status) == (None, Status.OVERTAKEN)
    assert sorted(await found(store, SAME)) == ["mid", "new"]


async def test_an_expired_document_may_come_again(make: Make) -> None:
    store, time = at_time(await make(BRIEF), START_MS)
    one, (first, again) = matcher(store), in_order([put("a", TEXT), put("a", TEXT, 5)])
    await one.match_all([first])
    time.now_ms = START_MS + 300_000
    (told,) = await one.match_all([again])
    assert told.registered.status is Status.NEW
    assert await found(store, SAME) == ["a"]


async def test_without_retention_nothing_expires(make: Make) -> None:
    store, time = at_time(await make(IndexLimits(retention_seconds=0)), START_MS)
    one = matcher(store)
    await one.match_all(in_order([put("a", TEXT)]))
    time.now_ms = START_MS + 10**12
    (told,) = await one.match_all(in_order([put("b", TEXT)], 1))
    assert verdict(told).verdict == "exact_duplicate"


async def test_the_time_of_a_slot_does_not_go_back(make: Make) -> None:
    store, time = at_time(await make(BRIEF), START_MS)
    one = matcher(store)
    await one.match_all(in_order([put("a", TEXT)]))
    time.now_ms = START_MS + 300_000
    await one.match_all(in_order([put("b", TEXT, 1)], 1))
    time.now_ms = START_MS
    assert await found(store, SAME) == ["b"]
    (told,) = await one.match_all(in_order([put("c", TEXT, 2)], 2))
    assert verdict(told).of is not None
    assert verdict(told).of.id == "b"
