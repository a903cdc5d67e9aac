"""Which state of a document is the newest, in memory and on Redis."""

from random import Random

import pytest

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Store
from tests.support.made_up import words
from tests.support.matched import in_order, matcher, neighbours, put, removal, sent_at, sign, verdict
from tests.support.stores import Make

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


@pytest.mark.parametrize("offset", OFFSETS)
async def test_the_time_comes_before_the_position(store: Store, offset: int) -> None:
    early, late = sent_at(state("v1", 1), offset + 1), sent_at(state("v2", 2), offset)
    await matcher(store).match_all(in_order([late, early]))
    assert await live_version(store) == version(late)


@pytest.mark.parametrize("minute", [-(10**6), 10**6])
async def test_any_time_of_observation_is_stored(store: Store, minute: int) -> None:
    first, second = in_order([state("v1", minute), state("v2")])
    await matcher(store).match_all([first, second])
    assert await live_version(store) == version(max(first, second, key=lambda one: one.signature.observed_at_ms))


@pytest.mark.parametrize("seed", range(3))
async def test_states_have_one_order_however_they_arrive(make: Make, seed: int) -> None:
    random = Random(seed)
    states = [
        sent_at(one, random.choice(OFFSETS), random.choice([0, 1, 300])) if random.random() < 0.8 else one
        for one in (state(number, random.randrange(2)) for number in range(12))
    ]
    live = set()
    for _ in range(4):
        store = await make()
        await matcher(store).match_all(in_order(random.sample(states, len(states))))
        live.add(await live_version(store))
    assert len(live) == 1


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


async def test_an_old_state_that_is_delivered_again_does_not_become_current(store: Store) -> None:
    one, batch = matcher(store), in_order([state("v1"), state("v2", 9)])
    await one.match_all(batch)
    again = await one.match_all(batch)
    assert [each.registered.status for each in again] == [Status.KNOWN] * 2
    assert await live_version(store) == version(batch[1])


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
    assert [verdict(each).event_id for each in again] == [verdict(each).event_id for each in (*told, told[0])]
    assert [each.registered.number for each in again] == [each.registered.number for each in (*told, told[0])]
