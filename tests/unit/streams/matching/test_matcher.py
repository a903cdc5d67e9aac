"""The events of documents that arrive one after another."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import UNSET
from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.evidence import DocumentState, event_id
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.verdicts.events import (
    RELATIONS,
    Containment,
    Event,
    ExactDuplicate,
    NearDuplicate,
    Overlap,
    Retraction,
    Version,
    kind_of,
)
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.protocol.tally import RARE_BELOW
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import local_store
from tests.support import made_up
from tests.support.made_up import KEY, NOON, STANDARD, words

TEXT = words(1, 1200)
NEAR = [*TEXT[:600], *words(2, 15), *TEXT[600:]]
PASSAGE = TEXT[200:500]
OTHER = words(3, 1200)


def sign(name: str, text: list[str] | str, minute: int = 0, **fields: str) -> Signature:
    return made_up.sign(text, name, observed_at=NOON + timedelta(minutes=minute), **fields)


LIMITS = IndexLimits(retention_seconds=0)


def matcher(limits: IndexLimits = LIMITS, **options: object) -> Matcher:
    return Matcher(local_store(limits), STANDARD, KEY, **options)


def kinds(events: Sequence[Event]) -> list[str]:
    return sorted(kind_of(event) for event in events)


async def told(signatures: Sequence[Signature], limits: IndexLimits = LIMITS, **options: object) -> list[Event]:
    """Return all events about documents that arrive in this order."""
    one = matcher(limits, **options)
    return [event for signature in signatures for event in (await one.match(signature)).events]


async def test_of_two_states_of_one_moment_the_one_sent_later_is_newer() -> None:
    texts = ([*TEXT, *words(50 + turn, 9)] for turn in range(2))
    sent = [replace_fields(sign("a", text), origin=Origin("documents", 1, 9 + at)) for at, text in enumerate(texts)]
    for arrivals in (sent, sent[::-1]):
        (event,) = await told(arrivals)
        assert isinstance(event, Version)
        assert (event.older.offset, event.newer.offset) == (9, 10)


async def test_an_event_names_both_documents_with_all_evidence() -> None:
    labels = {"lang": "en"}
    older = replace_fields(
        sign("a", TEXT, url="https://a.example/x", source="feed"), labels=labels, origin=Origin("t", 3, 9)
    )
    newer = sign("b", NEAR, 1)
    (event,) = await told([older, newer])
    assert isinstance(event, NearDuplicate)
    assert event.event_id == event_id(
        "near_duplicate",
        DocumentState("default/a", older.version, "3/9"),
        DocumentState("default/b", newer.version),
        STANDARD.name,
    )
    assert (event.older.url, event.older.source, event.older.labels) == ("https://a.example/x", "feed", labels)
    assert (event.older.topic, event.older.partition, event.older.offset) == ("t", 3, 9)
    assert event.newer.observed_at == NOON + timedelta(minutes=1)
    assert event.newer.topic is None
    assert (event.rule, event.thresholds) == ("few_edits", {"distance_ratio_max": 0.15, "symbols_min": 4.0})
    assert event.confidence == 0.99
    keys = event.evidence.keys
    own = STANDARD.keys(newer, KEY)
    assert (keys.bands_of, keys.anchors_newer) == (4, len(own.anchors))
    assert keys.anchors_older == len(STANDARD.keys(older, KEY).anchors)
    assert 0 < keys.anchors <= keys.anchors_older
    inserted = newer.characters - older.characters
    assert event.evidence.distance.low <= inserted <= event.evidence.distance.high
    assert event.evidence.overlap.symbols_newer > event.evidence.overlap.symbols_older
    assert event.evidence.containment.older_in_newer > event.evidence.containment.newer_in_older > 0.8


async def test_arrival_order_never_decides_who_is_newer() -> None:
    pairs = [
        (sign("a", TEXT), sign("b", NEAR, 1)),
        (sign("a", TEXT), sign("b", PASSAGE, 1)),
        (sign("b", TEXT), sign("a", NEAR)),
    ]
    for one, other in pairs:
        first, second = await told([one, other]), await told([other, one])
        # The family is that of the document that arrived last.
        assert [replace_fields(event, family=UNSET) for event in first] == [
            replace_fields(event, family=UNSET) for event in second
        ]
        assert len(first) == 1


async def test_a_containment_says_which_one_lies_inside_and_where() -> None:
    start = len(" ".join(TEXT[:200])) + 1
    for minute, inner in ((1, "newer"), (-1, "older")):
        (event,) = await told([sign("a", TEXT), sign("b", PASSAGE, minute)])
        assert isinstance(event, Containment)
        assert event.inner == inner
        assert event.place == pytest.approx((start, start + len(" ".join(PASSAGE))), abs=80)


async def test_a_verdict_says_where_the_older_document_has_what_the_newer_one_lost() -> None:
    place = len(" ".join(TEXT[:700])), len(" ".join(TEXT[:900]))
    older, newer = sign("a", TEXT, lineage="x"), sign("a", [*TEXT[:700], *TEXT[900:]], 1, lineage="x")
    one = matcher()
    first, second, unchanged, grown = [
        (await one.match(each)).verdict for each in (older, newer, newer, sign("a", TEXT, 2, lineage="x"))
    ]
    for verdict in (first, unchanged):
        assert verdict is not None
        assert verdict.removed_spans is UNSET
    assert second is not None
    assert second.removed_spans is not UNSET
    ((start, end),) = second.removed_spans
    assert (start, end) == pytest.approx(place, abs=40)
    assert start <= place[0] < place[1] <= end
    assert grown is not None
    assert (grown.verdict, grown.removed_spans) == ("version", ())  # text was only put in


async def test_a_new_state_of_a_document_is_a_version_told_once() -> None:
    events = await told(
        [sign("a", TEXT, lineage="x"), sign("a", NEAR, 1, lineage="x"), sign("b", OTHER, 2, lineage="x")]
    )
    versions = [event for event in events if isinstance(event, Version)]
    assert len(versions) == len(events) == 2
    assert [(event.newer.id, event.older.id, event.rule) for event in versions] == [
        ("a", "a", "same_lineage"),
        ("b", "a", "same_lineage"),
    ]
    grown = len(" ".join(NEAR)) - len(" ".join(TEXT))
    assert versions[0].added - versions[0].removed == grown
    assert versions[0].removed == pytest.approx(0, abs=5)
    assert versions[0].confidence == 0.99


def passage(text: list[str], start: int, end: int) -> tuple[int, int]:
    """Return the span of the words from `start` to `end` of a text, in characters."""
    return len(" ".join(text[:start])) + bool(start), len(" ".join(text[:end]))


def holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    """Return whether a span contains another with at most 60 characters around it on each side."""
    return outer[0] <= inner[0] <= outer[0] + 60 and outer[1] - 60 <= inner[1] <= outer[1]


TWO_PASSAGES = [*TEXT[:400], *words(2, 60), *TEXT[400:900], *words(5, 40), *TEXT[900:]]
AROUND = [*words(2, 500), *PASSAGE, *words(5, 700)]
ONE_MOVED = [*TEXT[:200], *TEXT[260:1000], *TEXT[200:260], *TEXT[1000:]]


@pytest.mark.parametrize(
    ("older", "newer", "kind", "new"),
    [
        (TEXT, TWO_PASSAGES, NearDuplicate, [(400, 460), (960, 1000)]),
        (NEAR, TEXT, NearDuplicate, []),
        (PASSAGE, AROUND, Containment, [(0, 500), (800, 1500)]),
        (TEXT, ONE_MOVED, NearDuplicate, []),
    ],
    ids=["two passages", "only lost", "around a copy", "moved"],
)
async def test_an_event_says_where_the_newer_document_has_new_text(
    older: list[str], newer: list[str], kind: type, new: list[tuple[int, int]]
) -> None:
    (event,) = await told([sign("a", older), sign("b", newer, 1)])
    assert isinstance(event, kind)
    assert isinstance(event, NearDuplicate | Containment)
    assert len(event.new_spans) == len(new)
    assert all(holds(span, passage(newer, *place)) for span, place in zip(event.new_spans, new, strict=True))
    assert event.new_spans_omitted == 0


async def test_more_new_passages_than_are_told_are_counted() -> None:
    text = words(11, 4000)
    pieces = [[*text[at : at + 190], *words(50 + at, 20 + at // 190)] for at in range(0, 4000, 190)]
    edited = [word for piece in pieces for word in piece]
    (event,) = await told([sign("a", text, lineage="x"), sign("b", edited, 1, lineage="x")])
    assert isinstance(event, Version)
    assert len(event.new_spans) == 16
    assert event.new_spans_omitted == pytest.approx(len(pieces) - 16, abs=2)
    assert list(event.new_spans) == sorted(event.new_spans)
    assert event.evidence.spans_omitted == pytest.approx(len(pieces) - 16, abs=2)


async def test_a_new_state_without_common_text_is_new_all_over() -> None:
    (event,) = await told([sign("a", TEXT, lineage="x"), sign("b", OTHER, 1, lineage="x")])
    assert isinstance(event, Version)
    assert event.new_spans == ((0, len(" ".join(OTHER))),)


async def test_a_relation_that_is_not_wanted_is_counted_but_not_sent() -> None:
    pair = [sign("a", [*TEXT[:500], *OTHER[:700]]), sign("b", [*words(4, 700), *TEXT[:500]], 1)]
    one = matcher(relations=frozenset(RELATIONS) - {"overlap"})
    assert [(await one.match(signature)).events for signature in pair] == [(), ()]
    assert one.counts.suppressed == {"overlap": 1}
    assert one.counts.candidates == {"looked_up": 1, "verified": 1}
    (event,) = await told(pair)
    assert isinstance(event, Overlap)


async def test_text_that_many_documents_have_is_not_told() -> None:
    frame, one = TEXT[:200], matcher()
    pages = [sign(f"p{n}", [*frame[:120], *words(10 + n, 150), *frame[120:]], n) for n in range(40)]
    said = [await one.match(page) for page in pages]
    verdicts = [each.verdict for each in said if each.verdict]
    assert all(each.events for each in said[1:RARE_BELOW])
    assert sum(len(each.events) for each in said[2 * RARE_BELOW :]) <= 2  # keys at the edges of the frame are rarer
    assert all("common_text" in each.low_confidence for each in verdicts[2 * RARE_BELOW :] if not each.events)
    assert {each.verdict for each in verdicts[1:]} <= {"version", "overlap"}


async def test_text_that_many_documents_have_hides_no_rare_text() -> None:
    """An article from the frame of one site appears in that of another."""
    frame, article = TEXT[:200], words(99, 150)
    one = matcher()
    for n in range(9):
        await one.match(sign(f"p{n}", [*frame, *words(10 + n, 150)], n))
    await one.match(sign("q", [*frame, *article], 9))
    (event,) = (await one.match(sign("r", [*OTHER[:200], *article], 10))).events
    assert isinstance(event, Overlap)
    assert event.older.id == "q"


async def test_a_part_of_common_text_is_told() -> None:
    notice, one = TEXT[:200], matcher()
    for number in range(10):
        await one.match(sign(f"m{number}", [*words(10 + number, 300), *notice], number))
    events = (await one.match(sign("notice", notice, 20))).events
    assert events
    assert all(isinstance(event, Containment) and event.inner == "newer" for event in events)


async def test_the_counterpart_is_the_text_that_comes_as_often() -> None:
    once, one = words(1, 120), matcher()
    for minute, times in enumerate((15, 10, 11)):
        settled = await one.match(sign(str(times), once * times, minute))
    assert settled.verdict is not None
    assert settled.verdict.of is not None
    assert (settled.verdict.verdict, settled.verdict.of.id) == ("near_duplicate", "10")


async def test_a_removal_voids_what_was_said() -> None:
    one = matcher()
    await one.match_all([Arrival("default/a/x", sign("a/x", TEXT))])
    gone = Arrival("default/a/x", None, removed_at_ms=1_772_500_000_123)
    state = DocumentState("default/a/x"), DocumentState(position="1772500000123")
    assert [matched.events for matched in await one.match_all([gone, gone])] == [
        (
            Retraction(
                event_id=event_id("retraction", *state, STANDARD.name),
                collection="default",
                scheme=STANDARD.name,
                document_id="a/x",
                removed_at=datetime(2026, 3, 3, 1, 6, 40, 123_000, tzinfo=UTC),
            ),
        ),
        (),
    ]
    assert (await one.match(sign("b", NEAR, 1))).events == ()


async def test_an_unchanged_document_has_a_verdict_and_no_event_but_another_of_its_lineage_has() -> None:
    one, same = matcher(), sign("b", NEAR)
    await one.match(same)
    matched = await one.match(replace_fields(same, observed_at_ms=same.observed_at_ms + 1))
    assert matched.verdict is not None
    assert (matched.verdict.verdict, matched.events, matched.verdict.redundant) == ("unchanged", (), False)
    assert matched.verdict.of is not None
    assert matched.verdict.of.observed_at == NOON
    (event,) = await told([sign("a", TEXT, lineage="x"), sign("b", TEXT, 1, lineage="x")])
    assert isinstance(event, ExactDuplicate)
    assert event.same_lineage


async def test_what_was_not_whole_is_named() -> None:
    one = matcher(IndexLimits(bucket_cap=12, candidates=1))
    await one.match(replace_fields(sign("near", NEAR), degraded=("z", "charset_replaced")))
    for number in range(12):
        await one.match(sign(f"half {number}", [*TEXT[:800], *words(100 + number, 400)], number))
    before = one.counts.full_buckets
    matched = await one.match(replace_fields(sign("b", TEXT, 20), degraded=("a",)))
    (event,) = matched.events
    assert isinstance(event, NearDuplicate)
    assert event.degraded == ("a", "bucket_overflow", "candidates_capped", "charset_replaced", "z")
    assert event.low_confidence == ("many_siblings",)
    assert matched.verdict is not None
    assert matched.verdict.degraded == event.degraded
    assert one.counts.full_buckets > before
    assert one.counts.cut


async def test_later_neighbours_never_hide_an_earlier_owner() -> None:
    one = matcher()
    await one.match(sign("owner", TEXT))
    for number in range(100):
        await one.match(sign(f"half-{number}", [*TEXT[:800], *words(100 + number, 400)], number))
    events = (await one.match(sign("copy", [*TEXT[:1000], *words(9, 10), *TEXT[1000:]], 200))).events
    assert "owner" in [event.older.id for event in events if isinstance(event, NearDuplicate)]
