"""Verdicts and events as a person reads them, and as JSON."""

import json
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event, encode_json, event_headers
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS, DocumentVerdict, FamilyRef
from nearstream.workers.cli.events import arrival_object, line, verdict_line
from nearstream.workers.operations.terminal import print_json
from tests.support.forged import FORGED, dangerous

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"
KINDS = ("verdict", *RELATIONS, "retraction")
DETECTED = datetime(2026, 3, 2, 8, 16, 40, 123000, tzinfo=UTC)
LINES = """\
verdict near_duplicate: c-7730 ~ a-1041  [+36 new, resemblance 0.95 (0.89-0.98), now 3 alike, distance 92]
exact_duplicate  b-2210 equals a-1041  [resemblance 1.00 (0.97-1.00), distance 0]
near_duplicate   c-7730 ~ a-1041  [resemblance 0.95 (0.89-0.98), +33 -59, distance 92]
containment      <77@d.example> lies in <12@a.example>  [at 7209-8227, resemblance 0.04 (0.00-0.11), \
+5 -8729, distance 8734]
version          p-0388 updates p-0312  [resemblance 0.65 (0.56-0.73), same lineage, +62 -12, distance 73]
rearranged       e-3316 ~ a-1041  [resemblance 0.98 (0.94-1.00), distance 3675]
overlap          f-0420 ~ a-1041  [resemblance 0.09 (0.04-0.17), distance 5379]
removed          a-1041: events that name it are void
"""


def example(kind: str) -> Event:
    return decode_event((EXAMPLES / f"{kind}.json").read_bytes())


def verdict(kind: str, **changed: object) -> DocumentVerdict:
    """Return the example with another kind: `c-7730`, the third of the family of `a-1041`."""
    event = example("verdict")
    assert isinstance(event, DocumentVerdict)
    return replace(event, verdict=kind, **changed)


def counterpart(days: int = 0, **changed: object) -> DocumentRef:
    """Return the document that the verdict compares with, observed so many days after the newcomer."""
    event = verdict("unique")
    assert event.of is not None
    moved = {"observed_at": event.observed_at + timedelta(days=days)} if days else {}
    return replace(event.of, **moved, **changed)


def family(**changed: object) -> FamilyRef:
    return replace(verdict("unique").family, **changed)


def named(kind: str, newer_id: str, older_id: str = "") -> Event:
    """Return the example event with these ids, or with one id for both documents."""
    event = example(kind)
    if isinstance(event, Retraction):
        return replace(event, document_id=newer_id)
    if isinstance(event, DocumentVerdict):
        return replace(event, id=newer_id, of=counterpart(id=older_id or newer_id))
    return replace(event, newer=replace(event.newer, id=newer_id), older=replace(event.older, id=older_id or newer_id))


def test_each_example_has_this_line() -> None:
    assert [line(example(kind)) for kind in KINDS] == LINES.splitlines()


def test_a_line_says_what_differs_from_the_usual() -> None:
    weak = replace(example("overlap"), low_confidence=("few_symbols", "near_threshold"))
    for event, told in (
        (replace(example("containment"), inner="older"), "<77@d.example> holds <12@a.example>  [at 7209-8227, "),
        (replace(example("exact_duplicate"), same_lineage=True), "a-1041  [same lineage: unchanged, resemblance 1.00"),
        (weak, "[resemblance 0.09 (0.04-0.17), weak: few_symbols, weak: near_threshold, "),
        (replace(weak, low_confidence=("x\nremoved          victim",)), "weak: x\\u000aremoved "),
    ):
        assert told in line(event)


def test_a_verdict_says_what_the_document_is_to_its_counterpart() -> None:
    alone = family(ordinal=1)
    numberless = {"resemblance": UNSET, "distance": UNSET}
    own = {"family": family(ordinal=1, founder=counterpart(id="c-7730")), **numberless}
    gone = {"of": None, "family": alone, **numberless}
    copy = "exact_duplicate  c-7730 equals a-1041  [now 3 alike"
    for kind, changed, told in (
        ("near_duplicate", {}, LINES.partition(": ")[2].partition("\n")[0]),
        ("exact_duplicate", {}, f"{copy}]"),
        ("exact_duplicate", {"family": family(founder=counterpart(id="z-1"))}, f"{copy}, founded by z-1]"),
        ("exact_duplicate", {"family": family(founder=None)}, f"{copy}]"),
        ("exact_duplicate", {"degraded": ("bucket_overflow",)}, f"{copy}, degraded: bucket_overflow]"),
        ("unique", own, "unique           c-7730"),
        ("unchanged", own, "unchanged        c-7730"),
        ("containment", {"inner": "newer", "of": counterpart(-1)}, "c-7730 lies in a-1041  [+36 new, "),
        ("containment", {"inner": "older", "of": counterpart(-1)}, "c-7730 holds a-1041  ["),
        ("containment", {"inner": "newer", "of": counterpart(1)}, "c-7730 holds a-1041  ["),
        ("containment", {"inner": "older", "of": counterpart(1)}, "c-7730 lies in a-1041  ["),
        ("version", {"of": counterpart(-1)}, "version          c-7730 updates a-1041  ["),
        ("version", {"of": counterpart(1)}, "version          c-7730 precedes a-1041  ["),
        ("near_duplicate", gone, "near_duplicate   c-7730 ~ one that is not in the index now"),
        ("version", gone, "version          c-7730 ~ one that is not in the index now"),
    ):
        text = verdict_line(verdict(kind, **changed))
        assert told in text, text
        assert ("[" in text) == ("[" in told or changed is gone), text


def is_one_line(text: str) -> bool:
    return not dangerous(text) and text.splitlines() == [text]


def all_lines(one: str, other: str, third: str) -> list[str]:
    """Return the line of each kind of event, and both lines of each kind of verdict, about documents of these ids."""
    events = [line(named(kind, one, other)) for kind in KINDS]
    founded = {"id": one, "of": counterpart(id=other), "family": family(founder=counterpart(id=third))}
    verdicts = [verdict(kind, degraded=(third[:64],), **founded) for kind in VERDICT_KINDS]
    return events + [text for each in verdicts for text in (line(each), verdict_line(each))]


def test_s16_a_log_line_cannot_be_forged() -> None:
    for forged in FORGED:
        assert all(map(is_one_line, all_lines(forged, forged, forged))), repr(forged)


ID_TEXTS = st.text(
    st.one_of(
        st.sampled_from(string.printable),
        st.characters(exclude_categories=[]),
        st.sampled_from("日本語한국어\uff21é\u0301"),
    ),
    min_size=1,
    max_size=300,
)


@settings(max_examples=40)
@given(one=ID_TEXTS, other=ID_TEXTS, third=ID_TEXTS)
def test_an_event_is_one_line_whatever_the_ids(one: str, other: str, third: str) -> None:
    assert all(map(is_one_line, all_lines(one, other, third)))


def test_json_is_the_event_with_the_time_of_its_detection(capsys: pytest.CaptureFixture[str]) -> None:
    sent = ConsumerRecord("events", 1, 7, 0, None, None, [])
    for event in map(example, KINDS):
        print_json(arrival_object(sent._replace(headers=event_headers(event, DETECTED)), event))
        (text,) = capsys.readouterr().out.splitlines()
        expected = {**json.loads(encode_json(event)), "detected_at": "2026-03-02T08:16:40.123000Z"}
        assert list(json.loads(text).items()) == list(expected.items())
    for time in (b"", b"yesterday", b"2026-03-02T08:16:40", b"\xff", b"9" * 400):
        assert arrival_object(sent._replace(headers=[("ce_time", time)]), event)["detected_at"] is None
    assert arrival_object(sent, event)["detected_at"] is None
