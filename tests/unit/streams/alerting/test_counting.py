"""What happens too often within a window of event time."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.alerts.alert import ORIGIN_CHARACTERS, Alert
from nearstream.schemas.verdicts.verdict import DocumentVerdict, VerdictKind
from nearstream.streams.alerting.counting import (
    KEPT_ALERTS,
    KEPT_LIMITS,
    Arrival,
    Rule,
    Subject,
    Tally,
    alerts_of,
    count,
    end_quiet,
    find_size,
    joined,
    name_origins,
    origins_of,
)
from tests.support.live import ref
from tests.support.live import verdict as shown

TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
START_MS = round(TIME.timestamp() * 1000)
STORM = Rule("duplicate_storm", 4, 10)
FAMILY = Subject("news", "f", "s", "a")


def arrival(second: float, ordinal: int) -> Arrival:
    return Arrival(START_MS + round(1000 * second), ordinal, f"v{ordinal}")


def steady(every: float, number: int, first: float = 0.0, ordinal: int = 2) -> list[Arrival]:
    """Return arrivals at equal intervals in seconds."""
    return [arrival(first + every * place, ordinal + place) for place in range(number)]


def counted(batches: list[list[Arrival]], tally: Tally | None = None, rule: Rule = STORM) -> tuple[Tally, list[Alert]]:
    """Return the last tally and the alerts sent after each batch."""
    tally, sent = tally or Tally(), []
    for batch in batches:
        tally = count(rule, FAMILY, batch, max(each.at_ms for each in batch), tally)
        sent += alerts_of(tally, {each.event_id for each in batch})
    return tally, sent


def seconds(alert: Alert) -> tuple[str, float, float | None]:
    """Return the state of an alert, and when it began and ended, in seconds after the start."""
    until = None if alert.until is None else (alert.until - TIME).total_seconds()
    return alert.state, (alert.since - TIME).total_seconds(), until


def verdict(
    ordinal: int, second: float = 0.0, kind: VerdictKind = "near_duplicate", of: str = "a", name: str = ""
) -> DocumentVerdict:
    said = shown(name or f"d{ordinal}", "f", ordinal, kind=kind, at_ms=START_MS + round(1000 * second))
    family = replace(said.family, first_seen=TIME)
    return replace(said, event_id=f"v{ordinal}", scheme="s", of=ref(of), family=family)


def test_a_storm_of_which_nothing_more_is_heard_ends_by_the_clock_as_it_would_by_the_next_arrival() -> None:
    storm = [[each] for each in steady(1, 6)]
    tally, _ = counted(storm)
    assert end_quiet(STORM, START_MS + 14_999, tally) is tally
    quiet = end_quiet(STORM, START_MS + 15_000, tally)
    assert not quiet.is_sent
    assert quiet.alerts[-1].alert.state == "resolved"
    by_arrival = counted([*storm, [arrival(30, 8)]])[1][-1]
    assert seconds(quiet.alerts[-1].alert) == seconds(by_arrival)
    assert quiet.alerts[-1].alert.event_id == by_arrival.event_id
    assert end_quiet(STORM, START_MS + 99_000, quiet) is quiet


def test_an_arrival_that_is_delivered_again_is_counted_once_and_sends_its_alerts_again() -> None:
    storm = [[each] for each in [*steady(1, 6), arrival(30, 8)]]
    tally, sent = counted(storm)
    again, restated = counted(storm, tally)
    assert restated == sent
    assert again == tally


@given(st.data(), st.lists(st.integers(0, 40_000), min_size=1, max_size=60))
def test_the_alerts_do_not_depend_on_how_a_stream_is_cut_into_batches(data: st.DataObject, times: list[int]) -> None:
    stream = [Arrival(START_MS + at, 2 + place, f"v{place}") for place, at in enumerate(sorted(times))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream)), max_size=5)) | {0, len(stream)})
    batches = [data.draw(st.permutations(stream[start:stop])) for start, stop in pairwise(cuts)]
    one_by_one = counted([[each] for each in stream])[1]
    alerts = [caused.alert for caused in counted(batches)[0].alerts]
    assert alerts == one_by_one[-KEPT_ALERTS:]


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=80))
def test_beginnings_and_ends_take_turns_and_hold_by_a_count_from_the_definition(times: list[int]) -> None:
    stream = [Arrival(START_MS + at, 2 + place, f"v{place}") for place, at in enumerate(sorted(times))]

    def within(at_ms: int) -> int:
        return sum(at_ms - STORM.window_ms < each.at_ms <= at_ms for each in stream)

    _, sent = counted([[each] for each in stream])
    assert [alert.state for alert in sent] == ["firing", "resolved"] * (len(sent) // 2) + ["firing"] * (len(sent) % 2)
    assert len({alert.event_id for alert in sent}) == len(sent)
    for alert in sent:
        assert within(round(alert.since.timestamp() * 1000)) > STORM.limit
        if alert.until is not None:
            until_ms = round(alert.until.timestamp() * 1000)
            assert within(until_ms) <= STORM.limit // 2 < within(until_ms - 1)


def test_a_tally_is_bounded_however_large_the_storm() -> None:
    tally, sent = counted([steady(0.001, 1_000, first=start, ordinal=2 + 1_000 * start) for start in range(9)])
    assert len(tally.arrivals) == KEPT_LIMITS * STORM.limit
    assert len(sent) == 1
    storms = [each for number in range(30) for each in steady(0.1, 9, first=100 * number, ordinal=2 + 9 * number)]
    assert len(counted([[each] for each in storms])[0].alerts) == KEPT_ALERTS


def test_members_that_joined_before_the_window_are_not_counted_again_when_they_change() -> None:
    old = [[each] for each in steady(3, 20)]
    tally, _ = counted(old)
    changed = [arrival(60 + place / 10, 2 + place) for place in range(6)]
    assert counted([changed], tally)[1] == []


def test_dead_letters_are_counted_by_numbers_in_any_order() -> None:
    reason = Subject("*", "not_json", "s")
    tally = Tally()
    for place in range(9):
        letter = Arrival(START_MS + 4_000 * place, 100 - place, f"l{place}")
        tally = count(STORM, reason, [letter], letter.at_ms, tally)
    assert tally.alerts == ()
    burst = [Arrival(START_MS + 60_000 + place, 50 - place, f"b{place}") for place in range(5)]
    (alert,) = alerts_of(count(STORM, reason, burst, START_MS + 60_000, tally), {each.event_id for each in burst})
    assert (alert.subject, alert.value) == ("not_json", 5.0)
    assert not alert.size
    assert not alert.founder


@pytest.mark.parametrize(
    ("given_verdict", "counts"),
    [
        (verdict(2), True),
        (verdict(1), False),
        (verdict(7, kind="unchanged"), False),
        (verdict(7, kind="version", of="d7"), False),
        (verdict(7, kind="version"), True),
    ],
    ids=["a copy", "the founder", "unchanged", "its own next state", "a version of another"],
)
def test_only_a_document_that_joins_is_counted(given_verdict: DocumentVerdict, counts: bool) -> None:
    assert (joined(given_verdict, START_MS + 5_000) is not None) == counts


def test_a_document_dated_in_the_future_counts_at_the_time_of_its_record() -> None:
    found = joined(verdict(2, second=86_000), START_MS + 5_000)
    assert found is not None
    assert found.at_ms == START_MS + 5_000


SIZE = Rule("new_family_of_size", 10, 3_600)


def test_a_new_family_of_a_size_is_sent_once() -> None:
    tally = find_size(SIZE, FAMILY, [verdict(9), verdict(11), verdict(10)], Tally())
    (alert,) = alerts_of(tally, {"v9", "v10", "v11"})
    assert (alert.name, alert.size, alert.events, alert.since) == ("new_family_of_size", 10, ("v10",), TIME)
    assert find_size(SIZE, FAMILY, [verdict(12), verdict(10)], tally) == tally
    assert alerts_of(tally, {"v12"}) == []
    assert alerts_of(tally, {"v10"}) == [alert]
    # The verdict with this ordinal may be missing, and an old family that grows on is not new.
    assert find_size(SIZE, FAMILY, [verdict(109)], Tally()).alerts == ()
    assert find_size(SIZE, FAMILY, [verdict(110)], Tally()).alerts[0].alert.size == 110
    assert find_size(SIZE, FAMILY, [verdict(10, second=3_601)], Tally()).alerts == ()


def test_a_new_family_on_as_many_sites_as_the_limit_is_sent_once() -> None:
    rule = Rule("new_family_on_sites", 3, 3_600)
    on = {}
    for sites in (2, 3, 4):
        one = verdict(20 + sites)
        on[sites] = replace(one, family=replace(one.family, sites=sites))
    assert find_size(rule, FAMILY, [on[2], verdict(900)], Tally()).alerts == ()
    for arrived in ([on[2], on[4], on[3]], [on[3]]):
        tally = find_size(rule, FAMILY, arrived, Tally())
        (alert,) = alerts_of(tally, {"v23"})
        assert (alert.name, alert.value, alert.size, alert.events) == ("new_family_on_sites", 3, 23, ("v23",))
        assert find_size(rule, FAMILY, [on[4]], tally) == tally
    late = replace(on[3], observed_at=TIME + timedelta(seconds=3_601))
    assert find_size(rule, FAMILY, [late], Tally()).alerts == ()


PAIRS = Rule("duplicate_storm", 2, 600)


def test_the_most_frequent_hosts_and_labels_are_named() -> None:
    documents = [shown(f"d{number}", url="https://a.example/x", sender="deals.example") for number in range(3)]
    others = [shown("e", url="https://b.example/"), shown("f", relay="r"), shown("g")]
    assert origins_of([*documents, *others]) == ("host a.example", "sender deals.example", "host b.example")
    assert origins_of([shown("g")]) == ()
    assert [len(each) for each in origins_of([shown("h", sender="s" * 1_000)])] == [ORIGIN_CHARACTERS]


def test_only_what_begins_gets_origins_and_keeps_them() -> None:
    former, arrivals = Tally(), [Arrival(1_000 * number, number, f"v{number}") for number in range(2, 6)]
    begun = name_origins(("host a.example",), former, count(PAIRS, FAMILY, arrivals, 9_000, former))
    assert [each.alert.origins for each in begun.alerts] == [("host a.example",)]
    late = [Arrival(2_000_000, 9, "v9")]
    ended = name_origins(("host b.example",), begun, count(PAIRS, FAMILY, late, 2_000_000, begun))
    assert [(each.alert.state, each.alert.origins) for each in ended.alerts] == [
        ("firing", ("host a.example",)),
        ("resolved", ("host a.example",)),
    ]
    unknown = name_origins((), former, count(PAIRS, FAMILY, arrivals, 9_000, former))
    assert unknown.alerts[0].alert.origins is UNSET
