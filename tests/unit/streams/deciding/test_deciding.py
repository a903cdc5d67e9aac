"""What a crawler should do with the pages of a lineage, from verdicts."""

from datetime import timedelta
from itertools import permutations

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.document import LATEST
from nearstream.schemas.documents.evidence import Distance, DocumentRef, Interval
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import LONGEST_SECONDS, SHORTEST_SECONDS, SKIP_SECONDS
from nearstream.streams.estimates.frames import pack_parts
from nearstream.streams.fingerprints.hashing import HashKey
from tests.support.verdicts import PAGE, TIME, Pages, ref, verdict

OTHER = "https://b.example/x"


def distance(value: int) -> Distance:
    return Distance(value=value, low=value, high=value)


def ends(decision: Decision) -> float:
    return (decision.until - TIME).total_seconds() / 60


async def test_a_first_page_says_nothing_about_the_next() -> None:
    first = await Pages().take(verdict("unique"))
    assert (first.action, first.because, first.until, first.unchanged) == ("keep", "first", TIME, 0)
    assert first.canonical == ref()
    assert not may_skip(first, int(TIME.timestamp() * 1000))


async def test_a_copy_is_skipped_for_an_hour_and_then_for_twice_as_long_up_to_a_week() -> None:
    pages, other = Pages(), ref(OTHER, -1)
    skipped = await pages.take(verdict("exact_duplicate", of=other))
    assert (skipped.action, skipped.because, skipped.canonical) == ("skip", "copy", other)
    assert may_skip(skipped, int(skipped.until.timestamp() * 1000) - 1)
    assert not may_skip(skipped, int(skipped.until.timestamp() * 1000))
    intervals = [skipped.interval_seconds]
    while len(intervals) < 10:
        skipped = await pages.take(verdict("unchanged", ends(skipped), founder=other))
        assert (skipped.action, skipped.unchanged, skipped.unchanged_since) == ("skip", len(intervals), TIME)
        intervals.append(skipped.interval_seconds)
    assert intervals == [min(SHORTEST_SECONDS << place, SKIP_SECONDS) for place in range(10)]


async def test_a_page_that_has_stayed_is_skipped_for_as_long_again() -> None:
    pages = Pages()
    await pages.take(verdict("unique"), verdict("unchanged", 60 * 24))
    skipped = await pages.take(verdict("unchanged", 60 * 48, founder=ref(OTHER)))
    assert (skipped.action, skipped.interval_seconds) == ("skip", 2 * 86_400)


async def test_a_page_is_not_skipped_for_longer_than_its_canonical_page_stays_in_the_index() -> None:
    pages = Pages(kept_seconds=86_400)
    await pages.take(verdict("unique", name=OTHER))
    skipped = await pages.take(verdict("exact_duplicate", 60 * 23 + 30, ref(OTHER)))
    assert ends(skipped) == 60 * 24


async def test_only_what_is_redundant_is_skipped() -> None:
    """A near-duplicate may hold a sentence that is nowhere else."""
    for kind, redundant, action in (
        ("exact_duplicate", UNSET, "skip"),  # a verdict of a former release
        ("near_duplicate", True, "skip"),
        ("near_duplicate", False, "keep"),
        ("near_duplicate", UNSET, "keep"),
        ("containment", False, "keep"),
    ):
        text = "" if kind == "exact_duplicate" else "other"
        found = await Pages().take(verdict(kind, 9, ref(OTHER), text=text, redundant=redundant))
        assert found.action == action, kind


async def test_a_page_of_the_same_lineage_is_not_skipped_for_itself() -> None:
    same = await Pages().take(verdict("exact_duplicate", 9, ref("https://a.example/old", lineage=PAGE)))
    assert (same.action, same.unchanged) == ("keep", 1)


async def test_a_text_that_has_stayed_is_expected_to_stay_for_as_long_again() -> None:
    for minutes in (1, 90, 60 * 24 * 40):
        kept = await Pages().take(verdict("unique"), verdict("unchanged", 1), verdict("unchanged", minutes + 1))
        assert (kept.action, kept.because, kept.unchanged, kept.unchanged_since) == ("keep", "unchanged", 2, TIME)
        assert kept.interval_seconds == min(60 * (minutes + 1), LONGEST_SECONDS)
        assert kept.until == kept.observed_at + timedelta(seconds=kept.interval_seconds)


async def test_an_unchanged_page_whose_former_decision_is_lost_says_nothing_about_the_next_fetch() -> None:
    kept = await Pages().take(verdict("unchanged", 9))
    assert (kept.action, kept.unchanged, kept.until) == ("keep", 1, kept.observed_at)


def changed(minutes: float, text: str, value: int = 100) -> DocumentVerdict:
    return verdict("version", minutes, ref(minutes=minutes - 1), text=text, distance=distance(value))


async def test_a_page_that_changes_is_fetched_sooner_and_never_skipped() -> None:
    pages = Pages()
    changes = [changed(minutes, str(minutes)) for minutes in range(1, 40)]
    decision = await pages.take(verdict("unique"), *changes)
    assert (decision.action, decision.because, decision.change_share) == ("refresh", "changed", 0.1)
    assert decision.interval_seconds == SHORTEST_SECONDS
    assert not may_skip(decision, int(TIME.timestamp() * 1000))
    kept = await pages.take(verdict("unchanged", 90, text="39"))
    assert (kept.action, kept.unchanged, kept.change_share) == ("keep", 1, 0.0)
    days = await Pages().take(verdict("unique"), changed(60 * 48, "b"))
    assert days.interval_seconds == 86_400


async def test_the_share_of_a_change_is_known_as_far_as_the_verdict_knows_it() -> None:
    async def share(second: DocumentVerdict) -> float:
        return (await Pages().take(verdict("unique"), second)).change_share

    former, alike = ref(), Interval(value=0.75, low=0.7, high=0.8)
    assert await share(verdict("unique", 9, text="b")) == 1.0
    assert await share(verdict("version", 9, former, text="b", distance=distance(5_000))) == 1.0
    assert await share(verdict("version", 9, former, text="b", resemblance=alike)) == 0.25
    # What comes ten times has the shingles of what comes once, so the lengths say how much has changed.
    whole = Interval(value=1.0, low=0.9, high=1.0)
    assert await share(verdict("version", 9, former, text="b", characters=10_000, resemblance=whole)) == 0.9
    assert await share(verdict("version", 9, former, text="b")) == 1.0


async def test_a_page_that_has_become_a_copy_says_how_much_of_it_has_changed() -> None:
    pages = Pages()
    before, now = (packed(*lines, "A line that stays") for lines in (["Half of it"], ["Other half of it"]))
    await pages.take(verdict("unique"), parts=before)
    skipped = await pages.take(verdict("exact_duplicate", 9, ref(OTHER, text="b"), text="b"), parts=now)
    assert (skipped.action, skipped.change_share) == ("skip", 0.5)


async def test_a_redelivered_verdict_changes_nothing_and_says_everything_again() -> None:
    verdicts = [verdict("unique"), verdict("unchanged", 1), changed(2, "b"), verdict("unchanged", 3, text="b")]
    pages = Pages()
    whole = await pages.take(*verdicts)
    for start in range(4):
        assert await pages.take(*verdicts[start:]) == whole
        assert pages.said == {PAGE: whole}


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_the_latest_fetch_decides_in_any_order(order: tuple[int, ...]) -> None:
    last = verdict("exact_duplicate", 2, ref(OTHER, text="c"), text="c")
    verdicts = [verdict("unique"), changed(1, "b"), last]
    assert (await Pages().take(*(verdicts[place] for place in order))).action == "skip"


def shown(number: int, fetch: int, price: int = 5) -> bytes:
    """Return the parts of a page with a counter."""
    texts = [f"Article {'abcdefgh'[number]} with a few words", f"Price {price}", f"Read {10 * number + fetch} times"]
    return packed(*texts)


def packed(*texts: str) -> bytes:
    """Return the parts of a page with these texts in its main content."""
    return pack_parts([(text, True) for text in texts], HashKey.public())


def fetched(number: int, fetch: int, price: int = 5) -> DocumentVerdict:
    page = f"{PAGE}/{number}"
    of = ref(page, fetch - 1) if fetch else None
    kind = "version" if of else "unique"
    return verdict(kind, fetch, of, founder=ref(page), name=page, text=f"{number}{fetch}{price}")


async def test_a_page_of_which_only_the_frame_has_changed_has_not_changed() -> None:
    pages = Pages()
    for number in range(8):
        for fetch in range(2):
            await pages.take(fetched(number, fetch), parts=shown(number, fetch))
    decisions = [pages.of(f"{PAGE}/{number}") for number in range(8)]
    assert [each.action for each in decisions] == ["refresh"] * 3 + ["keep"] * 5  # four pages teach what the frame is
    assert (decisions[7].unchanged, decisions[7].unchanged_since, decisions[7].change_share) == (1, TIME, 0.0)
    dearer = await pages.take(fetched(7, 2, price=6), parts=shown(7, 2, price=6))
    assert dearer.action == "refresh"
    frames = dict(pages.store.frames)
    for fetch in range(3):  # a verdict that is delivered again, or about an earlier fetch, changes and teaches nothing
        assert await pages.take(fetched(7, fetch), parts=shown(7, fetch)) == dearer
    assert pages.store.frames == frames


@pytest.mark.parametrize(
    ("before", "now", "action"),
    [
        (["Article"], ["Article"], "keep"),  # what has changed is no sentence
        (["Article", "A notice of the board"], ["Article", "Another notice of the board"], "refresh"),
        ([], [], "refresh"),  # it is not known what has changed
    ],
)
async def test_a_page_with_other_surroundings_is_unchanged_only_if_its_sentences_are(
    before: list[str], now: list[str], action: str
) -> None:
    pages = Pages()
    await pages.take(verdict("unique", labels={"surroundings": "1f"}), parts=packed(*before))
    again = verdict("unchanged", 9, labels={"surroundings": "2e"})
    assert (await pages.take(again, parts=packed(*now))).action == action


async def test_a_page_without_parts_is_judged_by_its_whole_text() -> None:
    pages, actions = Pages(), []
    for fetch, parts in enumerate((shown(0, 0), b"", shown(0, 1))):
        actions.append((await pages.take(fetched(0, fetch), parts=parts)).action)
    assert actions == ["keep", "refresh", "refresh"]
    assert not any(pages.store.frames.values())


async def copied(kind: str, of: DocumentRef, parts: bytes, others: bytes | None, text: str = "") -> Decision:
    """Return the decision about the first fetch of a page, where the parts of the other page may be known."""
    pages = Pages()
    if others is not None:
        await pages.take(verdict("unique", name=of.id), parts=others)
    return await pages.take(verdict(kind, 9, of, text=text, distance=distance(9)), parts=parts)


async def test_pages_of_a_site_that_share_only_their_frame_are_no_copies() -> None:
    """A frame may be ten times the article, so its pages look like near-duplicates of each other."""
    frame = [f"Line {letter} of a frame that is on each page" for letter in "abcdefghij"]
    own, others = (packed(f"Article {name}", *frame) for name in ("one", "two"))
    other = ref("https://a.example/y")
    for kind, text, known, action in (
        ("near_duplicate", "b", others, "keep"),
        ("near_duplicate", "b", None, "keep"),  # not known yet, so it may be another article
        ("near_duplicate", "b", own, "skip"),
        ("exact_duplicate", "", others, "skip"),
    ):
        assert (await copied(kind, other, own, known, text)).action == action


async def test_a_page_of_the_year_9999_is_decided_until_the_end_of_time() -> None:
    pages = Pages()
    for at in (LATEST - timedelta(seconds=1), LATEST):
        await pages.take(verdict("unique"))
        found = await pages.take(replace(verdict("unchanged", 1), observed_at=at))
        assert found.until == LATEST
