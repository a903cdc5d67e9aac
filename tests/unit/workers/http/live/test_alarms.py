"""The alerts that the page shows are those that have begun and not ended."""

from itertools import permutations

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS, Silence
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.workers.http.live.troubles import ALERTS, Alarms
from tests.support.live import NOW_MS, alert


def test_the_order_and_repeats_of_alerts_do_not_matter() -> None:
    told = [alert("f"), alert("f", "resolved"), alert("f", since_ms=NOW_MS + 5)]
    for order in permutations([*told, *told]):
        alarms = Alarms()
        for each in order:
            alarms.add(each)
        assert alarms.firing("news", NOW_MS) == (told[2],)
        assert alarms.is_storm("news", "f")
        assert not alarms.is_storm("mail", "f")
        alarms.add(alert("f", "resolved", since_ms=NOW_MS + 5))
        assert not alarms.is_storm("news", "f")
        assert alarms.firing("", NOW_MS) == ()


def test_a_collection_has_its_own_alerts_and_those_about_all() -> None:
    alarms = Alarms()
    letters = alert("not_json", name="dead_letters", collection=ALL_COLLECTIONS, since_ms=NOW_MS + 1)
    mail, news = alert("m", collection="mail"), alert("n", since_ms=NOW_MS + 2)
    for each in (letters, mail, news):
        alarms.add(each)
    assert alarms.firing("", NOW_MS) == (news, letters, mail)
    assert alarms.firing("mail", NOW_MS) == (letters, mail)


def test_a_new_family_is_shown_for_an_hour() -> None:
    alarms = Alarms()
    alarms.add(alert("f", name="new_family_of_size"))
    assert len(alarms.firing("", NOW_MS + 3_599_000)) == 1
    assert alarms.firing("", NOW_MS + 3_600_000) == ()
    assert not alarms.is_storm("news", "f")


def test_alerts_and_silences_have_a_bound() -> None:
    alarms = Alarms()
    for number in range(ALERTS + 3):
        alarms.add(alert(f"f{number}"))
        said = Silence(
            collection="news", name="duplicate_storm", subject=f"f{number}", since=from_milliseconds(NOW_MS), until=None
        )
        alarms.said.say(f"news/duplicate_storm/f{number}".encode(), said)
    firing = alarms.firing("", NOW_MS)
    assert len(firing) == ALERTS
    assert [alarms.is_storm("news", name) for name in ("f2", "f3")] == [False, True]
    silent = {each.subject for each in firing if alarms.said.of(each, NOW_MS)}
    assert silent == {f"f{number}" for number in range(3, ALERTS + 3)}


def test_a_suspended_label_is_shown_until_somebody_decides() -> None:
    alarms = Alarms()
    alarms.add(flood := alert("f", name="label_flood"))
    alarms.add(storm := alert("f", since_ms=NOW_MS + 1))
    assert alarms.floods() == (flood,)
    alarms.decide([flood])
    assert alarms.firing("", NOW_MS) == (storm,)
    assert alarms.floods() == (flood,)
    alarms.decide([])
    assert alarms.firing("", NOW_MS + 7_200_000) == (storm, flood)
