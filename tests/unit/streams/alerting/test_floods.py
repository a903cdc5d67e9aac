"""A label is suspended when far more matches it than before, and only then."""

import pytest

from nearstream.streams.alerting.counting import LabelledGrowth, Rule, Subject, Tally, find_flood, rate_before
from nearstream.streams.store.limits import DAY_MS, HOUR_MS, SLOT_MS
from tests.support.live import verdict

RULE = Rule("label_flood", 10, 3_600)
SUBJECT = Subject("mail", "ab" * 16, "scheme", "first")
AT_MS = 20_000 * DAY_MS + 10 * HOUR_MS
VERDICT = verdict("copy", "ab" * 16, 300, collection="mail")


def found(growth: LabelledGrowth | None, tally: Tally | None = None) -> Tally:
    return find_flood(RULE, SUBJECT, growth, [VERDICT], Tally() if tally is None else tally)


@pytest.mark.parametrize(
    ("growth", "value", "limit"),
    [
        (LabelledGrowth(before=0, copies=200, senders=1, recipients=1), 200, 200),
        (LabelledGrowth(before=500, copies=5_000, senders=1, recipients=1), 5_000, 5_000),
        (LabelledGrowth(before=3, copies=120, senders=100, recipients=1), 100, 100),
        (LabelledGrowth(before=3, copies=20, senders=1, recipients=256), 256, 100),
    ],
)
def test_many_times_the_rate_before_a_label_begin_an_alert(growth: LabelledGrowth, value: int, limit: int) -> None:
    tally = found(growth)
    (caused,) = tally.alerts
    assert (caused.cause, caused.alert.value, caused.alert.limit) == (VERDICT.event_id, value, limit)
    assert (caused.alert.name, caused.alert.subject, caused.alert.size) == ("label_flood", SUBJECT.name, 300)
    assert found(growth, tally) == tally


@pytest.mark.parametrize(
    "growth",
    [
        None,
        LabelledGrowth(before=0, copies=199, senders=99, recipients=99),
        LabelledGrowth(before=500, copies=4_999, senders=256, recipients=256),
    ],
)
def test_growth_as_before_begins_none(growth: LabelledGrowth | None) -> None:
    assert found(growth).alerts == ()


def test_the_rate_that_was_known_first_counts_until_the_labels_are_gone() -> None:
    tally = found(LabelledGrowth(before=500, copies=600, senders=1, recipients=1))
    later = LabelledGrowth(before=0, copies=600, senders=1, recipients=1)
    assert found(later, tally).alerts == ()
    assert found(None, found(later)) == Tally()


def test_the_rate_before_a_label_is_that_of_the_last_hour_or_of_the_busiest_one() -> None:
    five_minutes = [(AT_MS // SLOT_MS - back, 7) for back in range(-2, 12)]
    assert rate_before(five_minutes, AT_MS) == 11 * 7
    assert rate_before([(AT_MS // SLOT_MS, 30)], AT_MS + SLOT_MS // 3) == 10
    busy = [(AT_MS // SLOT_MS - back, joins) for back, joins in ((-1, 900), (1, 60), (40, 50), (41, 40), (60, 70))]
    assert rate_before(busy, AT_MS) == 90
    assert rate_before([], AT_MS) == 0
