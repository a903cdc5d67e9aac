"""The ring holds the newest events, and each reader goes at its own pace."""

import asyncio

from nearstream.workers.http.live.feed import Ring


def _filled(count: int, **limits: int) -> Ring:
    ring = Ring(**limits)
    for number in range(1, count + 1):
        ring.append(f"e{number}", "news", b"x" * 10)
    return ring


def test_a_reader_gets_events_in_order_and_no_more_than_it_asks_for() -> None:
    ring = _filled(5)
    missed, entries = ring.after(1, 3)
    assert (missed, [entry.event_id for entry in entries]) == (0, ["e2", "e3", "e4"])
    assert ring.after(5, 3) == (0, [])
    assert ring.number_of("e4") == 4


def test_the_number_of_events_is_bounded_and_what_a_reader_missed_is_counted() -> None:
    ring = _filled(25, events=10)
    missed, entries = ring.after(3, 100)
    assert (missed, len(entries), entries[0].event_id) == (12, 10, "e16")
    assert ring.number_of("e15") is None
    assert not ring.holds("e15")
    assert ring.holds("e16")


def test_the_bytes_are_bounded_but_the_newest_event_stays() -> None:
    ring = _filled(25, event_bytes=45)
    assert len(ring.after(0, 100)[1]) == 4
    ring.append("large", "news", b"x" * 1000)
    assert [entry.event_id for entry in ring.after(0, 100)[1]] == ["large"]


async def test_a_reader_that_waits_wakes_up_for_an_event() -> None:
    ring = Ring()
    waiting = asyncio.create_task(ring.wait(0, 60))
    await asyncio.sleep(0)
    ring.append("e1", "news", b"{}")
    assert await waiting
    assert not await ring.wait(1, 0.01)


async def test_a_closed_ring_lets_readers_go() -> None:
    ring = Ring()
    waiting = asyncio.create_task(ring.wait(0, 60))
    await asyncio.sleep(0)
    ring.close()
    assert await waiting
    assert ring.is_closed
