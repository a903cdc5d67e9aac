"""Which state of a document is live, in memory and on Redis: the newest, unless a removal was sent after it."""

from random import Random

import pytest

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.limits import REMOVAL_MS
from nearstream.streams.store.registration import Sent, Status
from nearstream.streams.store.store import Store
from tests.support.families import lines
from tests.support.made_up import words
from tests.support.matched import found, in_order, matcher, neighbours, put, removal, sent_at, sign, verdict
from tests.support.stores import at_time

OFFSETS = (0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**40)
TEXT = words(1, 80)


def state(text: object, minute: float = 0) -> Arrival:
    """Return a state of one document, of which the text says which it is."""
    return put("a", [*TEXT, str(text)], minute)


async def live_version(store: Store) -> str:
    """Return the version of the document's current state."""
    (candidate,) = (await neighbours(store, sign("any", TEXT))).candidates
    return candidate.earlier.version


def version(one: Arrival) -> str:
    assert one.signature is not None
    return one.signature.version


@pytest.mark.parametrize("turn", [1, -1], ids=["as_sent", "last_first"])
async def test_of_two_states_of_one_moment_the_one_sent_later_is_live(store: Store, turn: int) -> None:
    states = [sent_at(state(offset), offset) for offset in OFFSETS]
    await matcher(store).match_all(in_order(states[::turn]))
    assert await live_version(store) == version(states[-1])


@pytest.mark.parametrize("offset", [127, 2**32])
async def test_the_time_comes_before_the_position(store: Store, offset: int) -> None:
    early, late = sent_at(state("v1", 1), offset + 1), sent_at(state("v2", 2), offset)
    await matcher(store).match_all(in_order([late, early]))
    assert await live_version(store) == version(late)


@pytest.mark.parametrize("minute", [-(10**6), 10**6])
async def test_any_time_of_observation_is_stored(store: Store, minute: int) -> None:
    first, second = in_order([state("v1", minute), state("v2")])
    await matcher(store).match_all([first, second])
    assert await live_version(store) == version(max(first, second, key=lambda one: one.signature.observed_at_ms))


async def test_a_late_state_stands_at_its_place(store: Store) -> None:
    minutes = {"v4": 40, "v1": 10, "v3": 30, "v2": 20, "v5": 50}
    batch = in_order([state(text, minute) for text, minute in minutes.items()])
    one = matcher(store)
    found = await one.match_all(batch)
    assert [(each.registered.status, each.registered.is_late) for each in found] == [
        (Status.NEW, text not in ("v4", "v5")) for text in minutes
    ]
    assert [verdict(each).verdict for each in found] == ["unique", *["version"] * 4]
    assert await live_version(store) == version(batch[-1])
    # None of the late ones has become current, and a repeat of one is a repeat.
    repeats = await one.match_all(in_order([sent_at(state(text, minutes[text] + 1), 9) for text in ("v1", "v3")], 5))
    assert [verdict(each).verdict for each in repeats] == ["unchanged"] * 2
    (gone,) = await one.match_all(in_order([removal("a")], 7))
    assert gone.registered.was_known
    again = await one.match_all(batch)
    assert [each.registered.status for each in again] == [Status.OVERTAKEN] * 5


async def test_an_unchanged_record_that_was_signed_twice_is_unchanged_again(store: Store) -> None:
    """Also if the document has another text by then, or has returned to this one."""
    texts, one = ["t", "t", "u", "u", "t", "t"], matcher(store)
    batch = [sent_at(state(text, step), step) for step, text in enumerate(texts)]
    told = await one.match_all(in_order(batch))
    again = await one.match_all(in_order(batch, 6))
    numbers = [[each.registered.number for each in some] for some in (told, again)]
    assert [each.registered.status for each in told[1::2] + again[1::2]] == [Status.UNCHANGED] * 6
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) == 3


async def test_a_record_that_was_signed_twice_is_answered_as_before(store: Store) -> None:
    """A signer that was stopped before its commit sends the signature once more, at a new offset."""
    first, then, other = sent_at(state("v1"), 5), sent_at(state("v2", 9), 6), sent_at(put("b", TEXT), 7)
    one = matcher(store)
    told = await one.match_all(in_order([first, other, then]))
    again = await one.match_all(in_order([first, other, then, first], 3))
    assert [lines(each) for each in again] == [lines(each) for each in (*told, told[0])]
    assert [each.registered.number for each in again] == [each.registered.number for each in (*told, told[0])]


NOW_MS = 1_790_000_000_000


async def match(store: Store, *batch: Arrival, first: int = 0) -> list[Matched]:
    return await matcher(store).match_all(in_order(batch, first))


def statuses(matched: list[Matched]) -> list[Status]:
    return [each.registered.status for each in matched]


async def live(store: Store) -> list[str]:
    """Return the ids of the documents with the text that a look-up finds."""
    return await found(store, sign("any", TEXT))


async def test_a_document_sent_before_its_removal_stays_removed(store: Store) -> None:
    document, gone = sent_at(put("a", TEXT), 10), sent_at(removal("a"), 11)
    matched = await match(store, document, gone, document, put("b", words(2, 80)))
    assert statuses(matched) == [Status.NEW, Status.REMOVED, Status.OVERTAKEN, Status.NEW]
    assert (matched[2].verdict, matched[2].events) == (None, ())
    assert matched[2].registered.removed_by == Sent(0, 11)
    assert await live(store) == []


async def test_a_removal_that_comes_twice_removes_no_later_document(store: Store) -> None:
    document, gone, again = sent_at(put("a", TEXT), 1), sent_at(removal("a"), 2), sent_at(put("a", TEXT), 3)
    *_, late = await match(store, document, gone, again, gone)
    assert late.events == ()
    assert (late.registered.status, late.registered.was_known, late.registered.is_repeated) == (
        *(Status.REMOVED, False, True),
    )
    assert await live(store) == ["a"]
    (last,) = await match(store, sent_at(removal("a"), 4), first=4)
    assert (last.registered.was_known, last.registered.is_repeated, len(last.events)) == (True, False, 1)
    assert await live(store) == []


async def test_a_removal_that_is_delivered_again_is_answered_as_before(store: Store) -> None:
    batch = [put("a", TEXT), removal("a"), put("a", TEXT, 1)]
    told = await match(store, *batch)
    again = await match(store, *batch)
    assert (again[1].events, again[1].registered) == (told[1].events, told[1].registered)
    assert await live(store) == ["a"]


@pytest.mark.parametrize("is_sent", [False, True])
async def test_the_removal_of_an_unknown_document_is_no_repeat(store: Store, is_sent: bool) -> None:
    (told,) = await match(store, sent_at(removal("a"), 4) if is_sent else removal("a"))
    assert (told.registered.status, told.registered.was_known, told.registered.is_repeated) == (
        *(Status.REMOVED, False, False),
    )
    assert told.events == ()


@pytest.mark.parametrize("other", [sent_at(put("a", TEXT), 1, partition=3), put("a", TEXT)], ids=["partition", "none"])
async def test_positions_that_cannot_be_compared_refuse_nothing(store: Store, other: Arrival) -> None:
    assert statuses(await match(store, sent_at(removal("a"), 9), other))[1] is Status.NEW


async def test_a_removal_is_remembered_for_an_hour(store: Store) -> None:
    at_times, time = at_time(store, NOW_MS)
    gone, late = sent_at(removal("a"), 9), sent_at(put("a", TEXT), 8)
    await match(at_times, gone)
    for after_ms, status in ((REMOVAL_MS, Status.OVERTAKEN), (REMOVAL_MS + 1, Status.NEW)):
        time.now_ms = NOW_MS + after_ms
        assert statuses(await match(at_times, late, first=1 + after_ms % 2)) == [status]


async def test_a_removal_takes_all_states_of_a_document(store: Store) -> None:
    states = [sent_at(put("a", [*TEXT, str(number)], number), number) for number in range(70)]
    for start in range(0, 70, 32):
        await match(store, *states[start : start + 32], first=start)
    gone, late = await match(store, sent_at(removal("a"), 70), states[69], first=70)
    assert (gone.registered.was_known, late.registered.status) == (True, Status.OVERTAKEN)
    assert await live(store) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_the_order_of_arrival_the_last_position_decides(store: Store, seed: int) -> None:
    random = Random(seed)
    sent = [removal("a") if random.random() < 0.3 else put("a", [*TEXT, str(random.randrange(4))]) for _ in range(60)]
    origins = [sent_at(one, offset) for offset, one in enumerate(sent)]
    arrived = [(at - random.randrange(6)) for at in range(60)]
    last, is_live = -1, False
    for step, offset in enumerate(max(at, 0) for at in arrived):
        (told,) = await match(store, origins[offset], first=step)
        answer, is_removal = told.registered, origins[offset].signature is None
        assert (answer.status is Status.OVERTAKEN) == (not is_removal and offset <= last)
        if is_removal:
            assert (answer.was_known, answer.is_repeated) == (is_live and offset > last, offset <= last)
            is_live = is_live and offset <= last
            last = max(last, offset)
        elif offset > last:
            is_live = True
        assert bool(await live(store)) == is_live


@pytest.mark.parametrize(("sent_ms", "status"), [(0, Status.OVERTAKEN), (6000, Status.OVERTAKEN), (6001, Status.NEW)])
async def test_a_document_on_a_topic_made_anew_is_new(store: Store, sent_ms: int, status: Status) -> None:
    document, gone = sent_at(put("a", TEXT), 1000, ms=1), sent_at(removal("a"), 1001, ms=5000)
    *_, told = await match(store, document, gone, sent_at(put("a", TEXT), 3, ms=sent_ms))
    assert told.registered.status is status
    assert told.registered.removed_by == (Sent(0, 1001, 5000) if status is Status.OVERTAKEN else Sent())
    assert await live(store) == ([] if status is Status.OVERTAKEN else ["a"])


async def test_a_removal_on_a_topic_made_anew_removes(store: Store) -> None:
    batch = [
        sent_at(put("a", TEXT), 1000, ms=1),
        sent_at(removal("a"), 1001, ms=2),
        sent_at(put("a", TEXT), 3, ms=9000),
        sent_at(removal("a"), 4, ms=9001),
        sent_at(put("a", TEXT), 3, ms=9000),
    ]
    *_, gone, late = await match(store, *batch)
    assert (gone.registered.was_known, gone.registered.is_repeated) == (True, False)
    assert late.registered.status is Status.OVERTAKEN
    assert await live(store) == []
