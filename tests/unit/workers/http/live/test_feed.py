"""The feed takes each event and each dead letter once, and adds them up."""

import json

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.evidence import Amount
from nearstream.schemas.live.state import LiveState
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.workers.http.live.feed import COLLECTIONS, SLOT_MS, SLOTS, Rates, Ring
from nearstream.workers.http.live.troubles import LETTERS, Letters
from tests.support.live import NOW_MS, dead_letter, new_feed, removal, verdict


def test_an_event_that_is_delivered_again_counts_once() -> None:
    feed = new_feed()
    for _ in range(3):
        feed.add(verdict("a"), NOW_MS)
    assert feed.state("").totals == {"verdict": 1}
    ((entry,),) = (feed.ring.after(0, 10)[1],)
    assert entry.event_id == verdict("a").event_id
    assert json.loads(entry.data)["detected_at"] == "2026-03-02T08:30:00Z"


def test_collections_are_counted_apart_and_together() -> None:
    feed = new_feed()
    feed.add(verdict("a"), NOW_MS)
    feed.add(verdict("b", "f", 2, collection="mail"), NOW_MS)
    feed.add(removal("a"), NOW_MS)
    assert feed.state("").totals == {"verdict": 2, "retraction": 1}
    assert feed.state("mail").totals == {"verdict": 1}
    assert sum(feed.state("mail").verdicts["near_duplicate"]) == 1
    assert feed.state("news").growing == ()
    assert feed.state("").collections == ("mail", "news")
    assert feed.state("unknown").totals == {}


def test_the_number_of_collections_and_the_bytes_in_memory_are_bounded_but_the_newest_event_stays() -> None:
    feed = new_feed()
    for number in range(COLLECTIONS + 20):
        feed.add(verdict("a", collection=f"c{number}"), NOW_MS)
    assert len(feed.state("").collections) == COLLECTIONS
    assert feed.state("").totals == {"verdict": COLLECTIONS + 20}
    ring = Ring(event_bytes=45)
    for number in range(25):
        ring.append(f"e{number}", "news", b"x" * 10)
    assert len(ring.after(0, 100)[1]) == 4
    assert ring.number_of("e20") is None
    ring.append("large", "news", b"x" * 1000)
    assert [entry.event_id for entry in ring.after(0, 100)[1]] == ["large"]


def test_a_state_says_how_long_verdicts_took() -> None:
    feed = new_feed()
    feed.add(verdict("a", at_ms=NOW_MS - 2_000), NOW_MS)
    state = feed.state("")
    assert state.age_p50 is not None
    assert 1.8 < state.age_p50 < 2.2
    assert msgspec.json.decode(msgspec.json.encode(state), type=LiveState) == state


def test_new_text_is_counted_by_collection() -> None:
    feed = new_feed()
    for name, collection, novel in (
        ("a", "news", 1_000),
        ("b", "news", 200),
        ("c", "mail", 5_000),
        ("d", "mail", None),
    ):
        event = verdict(name, collection=collection)
        amount = UNSET if novel is None else Amount(novel, novel, novel)
        feed.add(replace(event, novel=amount), NOW_MS)
    feed.add(replace(verdict("old"), novel=Amount(1, 1, 1)), NOW_MS - 3_700_000)
    found = [(each.collection, each.characters, each.novel) for each in feed.state("").new_text]
    assert found == [("news", 2_000, 1_200), ("mail", 1_000, 1_000)]
    assert [each.collection for each in feed.state("mail").new_text] == ["mail"]
    assert feed.state("unknown").new_text == ()


NOW = 1_772_440_205_000


def test_verdicts_of_the_last_hour_are_counted_in_the_slot_of_their_time() -> None:
    rates = Rates()
    for back, kind in ((0, "unique"), (0, "unique"), (1, "near_duplicate"), (SLOTS - 1, "unique"), (SLOTS, "unique")):
        rates.add(kind, NOW - back * SLOT_MS, 5)
    series = rates.series(NOW)
    assert {len(numbers) for numbers in series.values()} == {SLOTS}
    assert (series["unique"][-1], series["unique"][0], series["near_duplicate"][-2]) == (2, 1, 1)
    assert sum(map(sum, series.values())) == 4
    assert rates.per_second(NOW + SLOT_MS) == 0.05
    for slot in range(4 * SLOTS):
        rates.add("unique", NOW + slot * SLOT_MS, 5)
    assert len(rates._slots) == SLOTS


def test_dead_letters_are_counted_by_reason_once_each() -> None:
    letters = Letters()
    for offset in (0, 1, 1, 0):
        letters.add(dead_letter(b"{", offset))
    letters.add(dead_letter(b"{}", 2, reason=Reason.NO_CONTENT, written_ms=NOW_MS - 60_000))
    letters.add(dead_letter(b"{}", 3, reason=Reason.NO_CONTENT, written_ms=NOW_MS - 3_600_000))
    shown = letters.shown(NOW_MS)
    assert [(each.reason, each.count, sum(each.minutes)) for each in shown.reasons] == [
        ("no_content", 2, 1),
        ("not_json", 2, 2),
    ]
    assert shown.reasons[0].minutes[-2:] == (1, 0)
    assert [letter.offset for letter in shown.letters] == [0, 1, 2, 3]
    assert letters.within_an_hour(NOW_MS) == 3
    assert letters.within_an_hour(NOW_MS + 2 * 3_600_000) == 0


def test_a_letter_shows_the_beginning_of_its_record() -> None:
    letters = Letters()
    stored = dead_letter(bytes(range(256)) * 40)
    letters.add(stored)
    detail = letters.detail(stored.dead_id)
    assert detail is not None
    assert detail.value == (bytes(range(256)) * 16).hex()
    assert (detail.letter.size, detail.payload) == (256 * 40, "full")
    assert detail.key == r"<img src=x onerror=alert(1)>\xff"
    assert detail.headers == (("x", None),)
    assert letters.detail("unknown") is None


def test_letters_have_a_bound() -> None:
    letters = Letters()
    stored = [dead_letter(b"{", offset) for offset in range(LETTERS + 1)]
    for each in stored:
        letters.add(each)
    assert letters.detail(stored[0].dead_id) is None
    shown = letters.shown(NOW_MS)
    assert (len(shown.letters), shown.reasons[0].count) == (LETTERS, LETTERS + 1)
