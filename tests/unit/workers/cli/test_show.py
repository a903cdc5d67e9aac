"""What `show` says of one document, as lines and in JSON."""

import json

import msgspec

from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.protocol.decision import KeyMatch, Pair
from nearstream.streams.store.store import Position
from nearstream.workers.cli.show import document_report
from nearstream.workers.operations.inspection import Inspected
from nearstream.workers.operations.terminal import report_lines
from nearstream.workers.redis.reading.inspect import MemberFacts, StateFacts

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
OBSERVED = "2023-11-14T22:13:20+00:00"
SIGNATURE = Signature(
    "s", "default", "a", b"\1" * 16, b"\1" * 16, NOW_MS, 40, 38, 7, 3, False, b"", 16, b"", b"", b"",
    lineage="of\na", url="https://a.example", origin=Origin("documents", 2, 9), degraded=("charset_replaced",),
)  # fmt: skip
FAMILY = FamilyFacts("fa" * 16, 5, 111, 120, NOW_MS, NOW_MS, (1, 2, 3), "default/o")
MEMBER = MemberFacts(5, 37, FAMILY)
PAIRS = tuple(
    Pair(number, number, relation, is_sent, False, KeyMatch(1, 1))
    for number, relation, is_sent in ((5, "near_duplicate", True), (4, "version", True), (3, "overlap", False))
)
END_MS = NOW_MS + 2 * DAY_MS + 3_600_000
CURRENT = StateFacts(111, Position(3, 17), SIGNATURE, NOW_MS, 0, True, MEMBER, PAIRS, False, END_MS, 300)
FORMER = StateFacts(57, Position(3, 8), SIGNATURE, NOW_MS, 111, True, None, (), True, None, 290)


def test_a_live_document_is_shown_with_all_its_states() -> None:
    told = list(report_lines(document_report(_inspected((CURRENT, FORMER)))))
    assert told[:6] == [
        "document key     default/a\\u000a",
        "status           live",
        "scheme           s",
        "states",
        "  status         live",
        "  number         111",
    ]
    for line in (
        "  position       partition 3, offset 17",
        f"    observed at  {OBSERVED}",
        "    origin       topic documents, partition 2, offset 9",
        "    lineage      of\\u000aa",
        "    joined       hour 1, day 2, week 3",
        "  pairs          number 5, relation near_duplicate, sent yes",
        "  expires at     2023-11-16T23:13:20+00:00",
    ):
        assert told.count(line) == (2 if line.startswith("    ") and "joined" not in line else 1), line


def test_a_document_has_these_fields_in_json() -> None:
    told = json.loads(msgspec.json.encode(document_report(_inspected((CURRENT, FORMER)))))
    assert list(told) == ["document_key", "status", "reason", "scheme", "states", "reached"]
    current, former = told["states"]
    assert current["signature"]["origin"] == {"topic": "documents", "partition": 2, "offset": 9}
    assert current["family"] | {"joined": {"hour": 1, "day": 2, "week": 3}} == current["family"]
    assert current["pairs"][2] == {"number": 3, "relation": "overlap", "sent": False}
    assert (current["status"], current["expires_at_ms"], current["position"]["offset"]) == ("live", END_MS, 17)
    assert (former["status"], former["family"], former["expires_at_ms"]) == ("expired", None, None)


def _inspected(states: tuple[StateFacts, ...]) -> Inspected:
    return Inspected("default/a\n", "live", "", "s", states)
