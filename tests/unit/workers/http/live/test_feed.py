"""The feed takes each event once, and adds them up by collection."""

import json

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.evidence import Amount
from nearstream.schemas.live.state import LiveState
from nearstream.workers.http.live.feed import COLLECTIONS
from tests.support.live import NOW_MS, new_feed, removal, verdict


def test_an_event_that_is_delivered_again_counts_once() -> None:
    feed = new_feed()
    for _ in range(3):
        feed.add(verdict("a"), NOW_MS)
    assert feed.state("").totals == {"verdict": 1}
    assert feed.ring.last == 1


def test_an_event_is_kept_as_it_is_with_its_time() -> None:
    feed = new_feed()
    event = verdict("a", "f", 2)
    feed.add(event, NOW_MS)
    ((entry,),) = (feed.ring.after(0, 10)[1],)
    assert json.loads(entry.data) == {
        **msgspec.to_builtins(event, str_keys=True),
        "detected_at": "2026-03-02T08:30:00Z",
        **json.loads(msgspec.json.encode(event)),
    }
    assert b"\n" not in entry.data
    assert entry.event_id == event.event_id


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


def test_the_number_of_collections_is_bounded() -> None:
    feed = new_feed()
    for number in range(COLLECTIONS + 20):
        feed.add(verdict("a", collection=f"c{number}"), NOW_MS)
    assert len(feed.state("").collections) == COLLECTIONS
    assert feed.state("").totals == {"verdict": COLLECTIONS + 20}


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
