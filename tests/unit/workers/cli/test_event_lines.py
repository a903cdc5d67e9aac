"""Events as a person reads them, and as JSON."""

import json
import string
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event, encode_json, event_headers
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction, Version
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.events import COLUMNS, arrival_object, line, print_arrival
from nearstream.workers.operations.tail import Arrival, EventFilter
from nearstream.workers.operations.terminal import columns, print_json
from tests.support.forged import FORGED, dangerous

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"
KINDS = ("verdict", *RELATIONS, "retraction")
DETECTED = datetime(2026, 3, 2, 8, 16, 40, 123000, tzinfo=UTC)


def example(kind: str) -> Event:
    return decode_event((EXAMPLES / f"{kind}.json").read_bytes())


def named(kind: str, newer_id: str, older_id: str = "") -> Event:
    """Return the example event with these ids, or with one id for both documents."""
    event = example(kind)
    if isinstance(event, Retraction):
        return msgspec.structs.replace(event, document_id=newer_id)
    if isinstance(event, DocumentVerdict):
        assert event.of is not None
        return msgspec.structs.replace(
            event, id=newer_id, of=msgspec.structs.replace(event.of, id=older_id or newer_id)
        )
    newer = msgspec.structs.replace(event.newer, id=newer_id)
    older = msgspec.structs.replace(event.older, id=older_id or newer_id)
    return msgspec.structs.replace(event, newer=newer, older=older)


def arrival(event: Event) -> Arrival:
    """The event as a worker sends it."""
    record = ConsumerRecord("events", 1, 7, 0, None, encode_json(event), event_headers(event, DETECTED))
    return Arrival(record, event)


def test_s16_a_log_line_cannot_be_forged() -> None:
    for kind in KINDS:
        for document_id in FORGED:
            text = line(named(kind, document_id))
            assert not dangerous(text)
            assert text.splitlines() == [text]


def test_a_line_starts_with_its_type_and_says_who() -> None:
    for kind, starts in (
        ("verdict", "verdict near_duplicate: c-7730 ~ a-1041  [+36 new, resemblance 0.95 (0.89-0.98), no. 3 "),
        ("exact_duplicate", "exact_duplicate  b-2210 equals a-1041  [resemblance 1.00"),
        ("near_duplicate", "near_duplicate   c-7730 ~ a-1041  [resemblance 0.95 (0.89-0.98)"),
        (
            "containment",
            "containment      <77@d.example> lies in <12@a.example>  [at 7209-8227, resemblance 0.04 (0.00-0.11), ",
        ),
        ("version", "version          p-0388 updates p-0312  [resemblance 0.65 (0.56-0.73), same lineage, "),
        ("rearranged", "rearranged       e-3316 ~ a-1041  ["),
        ("overlap", "overlap          f-0420 ~ a-1041  ["),
        ("retraction", "removed          a-1041: events that name it are void"),
    ):
        assert line(example(kind)).startswith(starts)


def test_a_line_says_what_differs_from_the_usual() -> None:
    turned = msgspec.structs.replace(example("containment"), inner="older")
    assert "<77@d.example> holds <12@a.example>  [at 7209-8227, " in line(turned)
    unchanged = msgspec.structs.replace(example("exact_duplicate"), same_lineage=True)
    assert "equals a-1041  [same lineage: unchanged, resemblance 1.00" in line(unchanged)
    weak = msgspec.structs.replace(example("overlap"), low_confidence=("few_symbols", "near_threshold"))
    assert "[resemblance 0.09 (0.04-0.17), weak: few_symbols, weak: near_threshold, " in line(weak)
    foreign = msgspec.structs.replace(weak, low_confidence=("x\nremoved          victim",))
    assert "weak: x\\u000aremoved " in line(foreign)


def test_a_line_says_why_as_far_as_there_is_room() -> None:
    assert line(example("version")) == (
        "version          p-0388 updates p-0312  [resemblance 0.65 (0.56-0.73), same lineage, +62 -12, distance 73]"
    )
    assert line(named("near_duplicate", "a", "b")).endswith(
        "[resemblance 0.95 (0.89-0.98), +33 -59, distance 92, newer in older 0.98, older in newer 0.98]"
    )


UUID = "0d0f4c3a-1111-4222-8333-444455556666"


def test_two_uuids_are_shown_whole() -> None:
    for kind in KINDS[1:]:
        text = line(named(kind, UUID, UUID.replace("0", "9")))
        assert text.count(UUID) == 1
        assert text.count(UUID.replace("0", "9")) == (kind != "retraction")
        assert columns(text) <= COLUMNS


def test_ids_that_are_too_long_lose_their_middle_and_the_first_detail_stays() -> None:
    addresses = [f"https://example.org/news/2026/03/02/flood-in-the-old-town-{number}" for number in (1, 2)]
    text = line(named("near_duplicate", *addresses))
    assert text == (
        "near_duplicate   https://example.org/…d-in-the-old-town-1 ~ https://example.org/…d-in-the-old-town-2"
        "  [resemblance 0.95]"
    )
    assert columns(text) == COLUMNS


ID_TEXTS = st.text(
    st.one_of(
        st.sampled_from(string.printable),
        st.characters(exclude_categories=[]),
        st.sampled_from("日本語한국어\uff21é\u0301"),
    ),
    min_size=1,
    max_size=300,
)


@given(kind=st.sampled_from(KINDS), newer=ID_TEXTS, older=ID_TEXTS)
def test_a_line_fits_120_columns_whatever_the_ids(kind: str, newer: str, older: str) -> None:
    text = line(named(kind, newer, older))
    assert columns(text) <= COLUMNS
    assert not dangerous(text)


def test_an_event_of_a_scheme_without_ld_signature_is_told_without_its_numbers() -> None:
    event = example("version")
    assert isinstance(event, Version)
    bare = {name: msgspec.UNSET for name in ("overlap", "containment", "distance", "distance_ratio", "spans")}
    evidence = msgspec.structs.replace(event.evidence, **bare)
    text = line(msgspec.structs.replace(event, evidence=evidence, added=msgspec.UNSET, removed=msgspec.UNSET))
    assert "distance" not in text
    assert text.endswith("[resemblance 0.65 (0.56-0.73), same lineage, 0 bands and 18 anchors shared]")


def test_json_is_the_event_with_the_time_of_its_detection(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in KINDS:
        print_json(arrival_object(arrival(example(kind))))
        (text,) = capsys.readouterr().out.splitlines()
        expected = {**json.loads(encode_json(example(kind))), "detected_at": "2026-03-02T08:16:40.123000Z"}
        assert json.loads(text) == expected
        assert list(json.loads(text)) == list(expected)


def test_without_a_readable_time_the_detection_is_unknown() -> None:
    for time in (None, b"", b"yesterday", b"2026-03-02T08:16:40", b"\xff", b"9" * 400):
        event = example("version")
        headers = [] if time is None else [("ce_time", time)]
        found = Arrival(ConsumerRecord("events", 1, 7, 0, None, encode_json(event), headers), event)
        assert arrival_object(found)["detected_at"] is None


def test_a_record_that_is_no_event_is_shown_by_its_position(capsys: pytest.CaptureFixture[str]) -> None:
    foreign = Arrival(ConsumerRecord("x" * 249, 1, 7, 0, None, b"no event\x1b[31m", []), None)
    print_arrival(foreign)
    text = capsys.readouterr().out
    assert text.startswith("unknown          xxx")
    assert text.endswith("xxx 1 offset 7 is no event of this release\n")
    assert columns(text.removesuffix("\n")) <= COLUMNS
    assert arrival_object(foreign) == {
        "type": "unknown_record",
        "topic": "x" * 249,
        "partition": 1,
        "offset": 7,
        "detected_at": None,
    }


def test_a_filter_chooses_types_and_a_collection() -> None:
    events = [example(kind) for kind in KINDS]

    def passed(wanted: EventFilter) -> list[str]:
        return [kind for kind, event in zip(KINDS, events, strict=True) if wanted.passes(event)]

    assert passed(EventFilter()) == list(KINDS)
    assert passed(EventFilter(frozenset(["version", "retraction"]))) == ["version", "retraction"]
    assert passed(EventFilter(frozenset(["verdict"]))) == ["verdict"]
    assert passed(EventFilter(collection="mail")) == ["containment"]
    assert passed(EventFilter(frozenset(["version"]), "mail")) == []
    assert EventFilter().passes(None)
    assert not EventFilter(frozenset(["version"])).passes(None)
    assert not EventFilter(collection="mail").passes(None)
