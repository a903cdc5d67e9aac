"""An alert says where the documents come from that begin it, and says it again as it did."""

from msgspec import UNSET

from nearstream.schemas.alerts.alert import ORIGIN_CHARACTERS
from nearstream.streams.alerting.counting import Arrival, Rule, Subject, Tally, count, name_origins, origins_of
from tests.support.live import verdict

STORM, FAMILY = Rule("duplicate_storm", 2, 600), Subject("news", "f", "s", "a")


def test_the_most_frequent_hosts_and_labels_are_named() -> None:
    documents = [verdict(f"d{number}", url="https://a.example/x", sender="deals.example") for number in range(3)]
    others = [verdict("e", url="https://b.example/"), verdict("f", relay="r"), verdict("g")]
    assert origins_of([*documents, *others]) == ("host a.example", "sender deals.example", "host b.example")
    assert origins_of([verdict("g")]) == ()
    assert [len(each) for each in origins_of([verdict("h", sender="s" * 1_000)])] == [ORIGIN_CHARACTERS]


def test_only_what_begins_gets_origins_and_keeps_them() -> None:
    former, arrivals = Tally(), [Arrival(1_000 * number, number, f"v{number}") for number in range(2, 6)]
    begun = name_origins(("host a.example",), former, count(STORM, FAMILY, arrivals, 9_000, former))
    assert [each.alert.origins for each in begun.alerts] == [("host a.example",)]
    late = [Arrival(2_000_000, 9, "v9")]
    ended = name_origins(("host b.example",), begun, count(STORM, FAMILY, late, 2_000_000, begun))
    assert [(each.alert.state, each.alert.origins) for each in ended.alerts] == [
        ("firing", ("host a.example",)),
        ("resolved", ("host a.example",)),
    ]
    unknown = name_origins((), former, count(STORM, FAMILY, arrivals, 9_000, former))
    assert unknown.alerts[0].alert.origins is UNSET
