"""What a crawler should do with the pages of a lineage, from verdicts."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from nearstream.schemas.decision import Decision
from nearstream.schemas.document import LATEST
from nearstream.schemas.evidence import Distance, DocumentRef, Interval
from nearstream.schemas.verdict import DocumentVerdict, FamilyRef
from nearstream.streams.deciding import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    SKIP_SECONDS,
    PageState,
    decide,
    decide_page,
    may_skip,
    to_compare,
)
from nearstream.streams.estimates.frames import Frame
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.page_parts import pack_parts
from nearstream.streams.ingest.lineage import host_of

TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
PAGE = "https://a.example/x"


def ref(name: str = PAGE, minutes: int = 0, lineage: str | None = None, url: str | None = None) -> DocumentRef:
    return DocumentRef(
        id=name,
        version="0" * 16,
        observed_at=TIME + timedelta(minutes=minutes),
        characters=1_000,
        url=url or name,
        lineage=lineage or name,
    )


def verdict(kind: str, minutes: int = 0, of: DocumentRef | None = None, **fields: Any) -> DocumentVerdict:  # noqa: ANN401
    own = ref(minutes=minutes)
    given: dict[str, Any] = {name: getattr(own, name) for name in DocumentRef.__struct_fields__}
    founder = fields.pop("founder", of or own)
    given |= {
        "event_id": f"{kind}-{minutes}",
        "collection": "news",
        "scheme": "s",
        "verdict": kind,
        "of": of,
        "family": FamilyRef(id="f", ordinal=1, first_seen=TIME, founder=founder),
        "events": 0,
        "degraded": (),
    }
    return DocumentVerdict(**(given | fields))


def decided(*verdicts: DocumentVerdict) -> Decision:
    decision = None
    for each in verdicts:
        decision = decide(decision, each)
    assert decision is not None
    return decision


def test_a_document_without_a_lineage_has_no_decision() -> None:
    assert decide(None, verdict("unique", lineage=None)) is None


def test_the_first_fetch_of_a_page_says_nothing_about_the_next() -> None:
    first = decided(verdict("unique"))
    assert (first.action, first.until, first.unchanged) == ("keep", TIME, 0)
    assert first.canonical == ref()
    assert not may_skip(first, first.observed_at.timestamp().__trunc__() * 1000)


def test_a_copy_of_another_page_is_skipped() -> None:
    other = ref("https://b.example/y")
    for kind in ("exact_duplicate", "near_duplicate"):
        skipped = decided(verdict(kind, minutes=9, of=other))
        assert (skipped.action, skipped.canonical) == ("skip", other)
        assert skipped.until == TIME + timedelta(minutes=9, seconds=SKIP_SECONDS)
        assert may_skip(skipped, int(skipped.until.timestamp() * 1000) - 1)
        assert not may_skip(skipped, int(skipped.until.timestamp() * 1000))
    again = decided(verdict("exact_duplicate", minutes=9, of=other), verdict("unchanged", minutes=19))
    assert (again.action, again.canonical, again.unchanged) == ("skip", other, 1)


def test_the_canonical_page_is_the_first_then_that_of_the_shortest_url() -> None:
    founder, copy = ref("https://b.example/later", minutes=3), ref("https://c.example/1", minutes=1)
    assert decided(verdict("exact_duplicate", 9, copy, founder=founder)).canonical == copy
    founder, copy = ref("https://b.example/long"), ref("https://c.example")
    assert decided(verdict("exact_duplicate", 9, copy, founder=founder)).canonical == copy
    assert decided(verdict("exact_duplicate", 9, copy, founder=None)).canonical == copy


def test_a_page_that_others_have_copied_is_no_copy_of_them() -> None:
    changed = decided(
        verdict("unique"),
        verdict("near_duplicate", 9, ref("https://b.example/y", 3), founder=ref(), distance=distance(50)),
    )
    assert (changed.action, changed.canonical.id, changed.change_share) == ("refresh", PAGE, 0.05)


def test_a_page_of_the_same_lineage_is_not_skipped_for_itself() -> None:
    alias = ref("https://a.example/x?print=1", lineage=PAGE)
    same = decided(verdict("exact_duplicate", 9, alias))
    assert (same.action, same.unchanged) == ("keep", 1)


def test_a_text_that_has_stayed_is_expected_to_stay_for_as_long_again() -> None:
    for minutes in (1, 90, 60 * 24 * 40):
        kept = decided(verdict("unique"), verdict("unchanged", 1), verdict("unchanged", minutes + 1))
        assert (kept.action, kept.unchanged, kept.unchanged_since) == ("keep", 2, TIME)
        assert kept.interval_seconds == min(60 * (minutes + 1), LONGEST_SECONDS)
        assert kept.until == kept.observed_at + timedelta(seconds=kept.interval_seconds)


def test_an_unchanged_page_whose_former_decision_is_lost_says_nothing_about_the_next_fetch() -> None:
    kept = decided(verdict("unchanged", 9))
    assert (kept.action, kept.unchanged, kept.until) == ("keep", 1, kept.observed_at)


def distance(value: int) -> Distance:
    return Distance(value=value, low=value, high=value)


def test_a_page_that_changes_is_fetched_sooner_and_never_skipped() -> None:
    changes = [
        verdict("version", minutes, ref(minutes=minutes - 1), distance=distance(100)) for minutes in range(1, 40)
    ]
    decision = decided(verdict("unique"), *changes)
    assert (decision.action, decision.change_share, decision.unchanged) == ("refresh", 0.1, 0)
    assert decision.interval_seconds == SHORTEST_SECONDS
    days = decided(verdict("unique"), verdict("version", 60 * 48, ref(), distance=distance(100)))
    assert days.interval_seconds == 86_400
    assert not may_skip(decision, int(TIME.timestamp() * 1000))
    kept = decided(verdict("unique"), *changes, verdict("unchanged", 90))
    assert (kept.action, kept.unchanged, kept.change_share) == ("keep", 1, 0.0)


def test_the_share_of_a_change_is_known_as_far_as_the_verdict_knows_it() -> None:
    first, former = verdict("unique"), ref()
    assert decided(first, verdict("unique", 9)).change_share == 1.0
    assert decided(first, verdict("version", 9, former, distance=distance(5_000))).change_share == 1.0
    alike = Interval(value=0.75, low=0.7, high=0.8)
    assert decided(first, verdict("version", 9, former, resemblance=alike)).change_share == 0.25
    # What comes ten times has the shingles of what comes once, so the lengths say how much has changed.
    repeated = verdict("version", 9, former, characters=10_000, resemblance=Interval(value=1.0, low=0.9, high=1.0))
    assert decided(first, repeated).change_share == 0.9
    assert decided(first, verdict("version", 9, former)).change_share == 1.0


def test_a_redelivered_verdict_changes_nothing() -> None:
    verdicts = [
        verdict("unique"),
        verdict("unchanged", 1),
        verdict("version", 2, ref(minutes=1)),
        verdict("unchanged", 3),
    ]
    whole = decided(*verdicts)
    for start in range(4):
        assert decided(*verdicts, *verdicts[start:]) == whole
        assert decide(whole, verdicts[start]) == whole


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_latest_fetch_decides_in_any_order(order: tuple[int, ...]) -> None:
    other = ref("https://b.example/y")
    verdicts = [verdict("unique"), verdict("version", 1, ref()), verdict("exact_duplicate", 2, other)]
    assert decided(*(verdicts[place] for place in order)).action == "skip"


def shown(number: int, fetch: int, price: int = 5) -> bytes:
    """Return the parts of a page with a counter."""
    texts = [f"Article {'abcdefgh'[number]} with a few words", f"Price {price}", f"Read {10 * number + fetch} times"]
    return pack_parts(texts, HashKey.public())


def fetched(number: int, fetch: int) -> DocumentVerdict:
    page = f"{PAGE}/{number}"
    of = ref(page, fetch - 1) if fetch else None
    return verdict("version" if of else "unique", fetch, of, founder=ref(page), lineage=page)


def test_a_page_of_which_only_the_frame_has_changed_has_not_changed() -> None:
    frame: Frame = {}
    states: dict[int, PageState] = {}
    for number in range(8):
        for fetch in range(2):
            state, frame = decide_page(states.get(number), frame, fetched(number, fetch), shown(number, fetch), {})
            assert state is not None
            states[number] = state
    actions = [states[number].decision.action for number in range(8)]
    assert actions == ["refresh"] * 3 + ["keep"] * 5  # four pages teach what the frame is
    assert (states[7].decision.unchanged, states[7].decision.unchanged_since) == (1, TIME)
    dearer, learned = decide_page(states[7], frame, fetched(7, 2), shown(7, 2, price=6), {})
    assert dearer is not None
    assert dearer.decision.action == "refresh"
    # A verdict that is delivered again, or about an earlier fetch, changes nothing and teaches nothing.
    for fetch in range(3):
        assert decide_page(dearer, learned, fetched(7, fetch), shown(7, fetch), {}) == (dearer, learned)


def test_a_page_without_parts_is_judged_by_its_whole_text() -> None:
    first, frame = decide_page(None, {}, fetched(0, 0), shown(0, 0), {})
    second, learned = decide_page(first, frame, fetched(0, 1), b"", {})
    third, _ = decide_page(second, learned, fetched(0, 2), shown(0, 1), {})
    assert [state.decision.action for state in (first, second, third) if state] == ["keep", "refresh", "refresh"]
    assert frame == learned == {}


def copied(kind: str, of: DocumentRef, parts: bytes, alike: dict[str, bytes], **fields: Any) -> Decision:  # noqa: ANN401
    """Return the decision about the first fetch of a page, where the parts of these other pages are known."""
    frame, made = fields.pop("frame", {}), verdict(kind, 9, of, **fields)
    compared = {lineage: alike.get(lineage, b"") for lineage in to_compare(made, host_of)}
    state, _ = decide_page(None, frame, made, parts, compared)
    assert state is not None
    return state.decision


def test_pages_of_a_site_that_share_only_their_frame_are_no_copies() -> None:
    """A frame may be ten times the article, so its pages look like near-duplicates of each other."""
    key = HashKey.public()
    frame = [f"Line {letter} of a frame that is on each page" for letter in "abcdefghij"]
    own, others = (pack_parts([f"Article {name}", *frame], key) for name in ("one", "two"))
    other = ref(f"{PAGE}/other")
    for kind, alike, action in (
        ("near_duplicate", {f"{PAGE}/other": others}, "keep"),
        ("near_duplicate", {}, "keep"),  # not known yet, so it may be another article
        ("near_duplicate", {f"{PAGE}/other": own}, "skip"),
        ("exact_duplicate", {f"{PAGE}/other": others}, "skip"),
    ):
        assert copied(kind, other, own, alike).action == action
    assert copied("near_duplicate", other, b"", {f"{PAGE}/other": others}).action == "keep"
    assert not may_skip(copied("near_duplicate", other, own, {}), int(TIME.timestamp() * 1000) + 540_001)


def test_an_exact_copy_is_not_taken_for_a_copy_of_the_founder_that_has_only_its_frame() -> None:
    founder, equal = ref(f"{PAGE}/founder"), ref(f"{PAGE}/equal", 3)
    assert to_compare(verdict("exact_duplicate", 9, equal, founder=founder), host_of) == {founder.lineage}
    assert copied("exact_duplicate", equal, shown(0, 0), {}, founder=founder).canonical == equal


def test_copies_that_differ_in_the_learned_frame_of_the_site_are_skipped() -> None:
    frame: Frame = {}
    for number in range(4):
        first, _ = decide_page(None, frame, fetched(number, 0), shown(number, 0), {})
        _, frame = decide_page(first, frame, fetched(number, 1), shown(number, 1), {})
    other = ref(f"{PAGE}/7")
    for number, known, action in ((7, frame, "skip"), (7, {}, "keep"), (6, frame, "keep")):
        decision = copied("near_duplicate", other, shown(7, 3), {other.id: shown(number, 0)}, frame=known)
        assert decision.action == action


@pytest.mark.parametrize(
    ("url", "is_compared"),
    [("https://www.a.example/y", True), ("https://a.example:443/y", True), ("https://b.example/y", False)],
)
def test_pages_are_compared_within_a_site(url: str, is_compared: bool) -> None:
    assert to_compare(verdict("near_duplicate", 9, ref(url)), host_of) == ({url} if is_compared else set())
    assert to_compare(verdict("version", 9, ref(url)), host_of) == set()


def test_documents_without_a_site_are_not_compared() -> None:
    assert to_compare(verdict("near_duplicate", 9, ref("b", url="b"), url=None, lineage="a"), host_of) == set()


def test_a_page_of_the_year_9999_is_decided_until_the_end_of_time() -> None:
    former = decide(None, verdict("unique"))
    found = decide(former, verdict("unchanged", observed_at=LATEST - timedelta(seconds=1)))
    assert found is not None
    assert found.until == LATEST
    again = decide(found, verdict("unchanged", observed_at=LATEST))
    assert again is not None
    assert again.until == LATEST
