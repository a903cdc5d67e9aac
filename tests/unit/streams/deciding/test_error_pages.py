"""A page that turns to the text of other pages of its host is an error page until it comes back."""

from datetime import timedelta

from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import SKIP_SECONDS
from tests.support.verdicts import COLLECTION, TIME, Pages, ref, verdict

NAMES = tuple(f"https://a.example/{number}" for number in range(5))
DAY = 60 * 24


def own(name: str, minutes: float, kind: str = "unchanged") -> DocumentVerdict:
    """Return the verdict about a page with its own text."""
    return verdict(kind, minutes, name=name, text=name[-1], family=f"own {name[-1]}")


def out(name: str, minutes: float, first: str = NAMES[0]) -> DocumentVerdict:
    """Return the verdict about a page with the maintenance text, which a page has shown first."""
    if name == first:
        return verdict("version", minutes, ref(name), name=name, text="out", family="out")
    return verdict("exact_duplicate", minutes, ref(first, text="out"), name=name, text="out", family="out")


async def grown() -> Pages:
    """Return pages that have stayed for a day."""
    pages = Pages()
    for name in NAMES:
        await pages.take(own(name, 0, "unique"), own(name, DAY))
    return pages


async def test_a_page_lost_to_an_outage_is_fetched_again_in_ten_minutes_and_goes_on_as_before() -> None:
    pages = await grown()
    await pages.take(out(NAMES[0], DAY + 1))
    lost = await pages.take(out(NAMES[1], DAY + 2))
    assert (lost.action, lost.because, lost.error_text, lost.change_share) == ("refresh", "error_page", None, 1.0)
    assert lost.until == TIME + timedelta(minutes=DAY + 12)
    assert may_skip(lost, int(lost.until.timestamp() * 1000) - 1)
    assert not may_skip(lost, int(lost.until.timestamp() * 1000))
    back = await pages.take(own(NAMES[1], DAY + 13, "version"))
    assert (back.action, back.unchanged, back.unchanged_since) == ("keep", 2, TIME)
    assert back.interval_seconds == 60 * (DAY + 13)


async def test_three_pages_that_turn_to_one_text_within_an_hour_make_it_an_error_text_of_the_host() -> None:
    pages = await grown()
    await pages.take(out(NAMES[0], DAY + 1), out(NAMES[1], DAY + 20))
    third = out(NAMES[2], DAY + 50)
    await pages.take(third)
    for name in NAMES[:3]:
        decision = pages.of(name)
        assert (decision.because, decision.error_text) == ("error_page", "out"), name
    assert pages.said.keys() == set(NAMES[:3])
    (known,) = pages.store.errors[COLLECTION, "a.example"].texts
    assert (known.family, known.event_id) == ("out", third.event_id)
    # A page that was never fetched before is no copy of an error text, but is lost too.
    new = await pages.take(out("https://a.example/new", DAY + 51))
    assert (new.action, new.because) == ("refresh", "error_page")
    back = await pages.take(own(NAMES[0], DAY + 61, "version"))
    assert (back.action, back.unchanged) == ("keep", 2)


async def test_pages_that_turn_to_one_text_over_days_do_not_make_it_an_error_text() -> None:
    pages = await grown()
    for number in range(4):
        await pages.take(out(NAMES[number], DAY + 45 * number))
    assert not pages.store.errors[COLLECTION, "a.example"].texts


async def test_a_suspected_page_is_tried_after_10_20_and_40_minutes_and_then_believed() -> None:
    pages = await grown()
    await pages.take(out(NAMES[0], DAY + 1))
    minutes, waits = DAY + 2.0, []
    found = await pages.take(out(NAMES[1], minutes))
    while found.because == "error_page":
        waits.append(found.interval_seconds // 60)
        minutes += waits[-1]
        kind = verdict("unchanged", minutes, name=NAMES[1], text="out", family="out", founder=ref(NAMES[0], text="out"))
        found = await pages.take(kind)
    assert waits == [10, 20, 40]
    assert (found.action, found.because, found.interval_seconds) == ("skip", "copy", 3_600)


async def test_an_error_text_that_lasts_is_tried_ever_more_rarely() -> None:
    pages = await grown()
    for number in range(3):
        await pages.take(out(NAMES[number], DAY + 1 + number))
    minutes, waits = DAY + 10.0, []
    for _ in range(14):
        found = await pages.take(verdict("unchanged", minutes, name=NAMES[2], text="out", family="out"))
        waits.append(found.interval_seconds)
        minutes += found.interval_seconds / 60
        assert found.because == "error_page"
    assert waits == [min(1_200 << place, SKIP_SECONDS) for place in range(14)]


async def test_pages_that_rest_on_an_error_page_are_to_be_fetched_again() -> None:
    pages = await grown()
    await pages.take(out(NAMES[0], DAY + 1))
    copy = "https://a.example/copy"
    skipped = await pages.take(out(copy, DAY + 2))  # fetched for the first time, before the text is known as an error
    assert (skipped.action, skipped.canonical.id) == ("skip", NAMES[0])
    await pages.take(out(NAMES[1], DAY + 3), out(NAMES[2], DAY + 4))
    told = pages.of(copy)
    assert (told.action, told.because) == ("refresh", "canonical_gone")
    assert not may_skip(told, int(TIME.timestamp() * 1000))


async def test_a_missing_page_that_never_had_another_text_is_an_ordinary_copy() -> None:
    pages = Pages()
    await pages.take(verdict("unique", name=NAMES[0], text="404", family="404"))
    for number in range(1, 5):
        made = verdict(
            "exact_duplicate", number, ref(NAMES[0], text="404"), name=NAMES[number], text="404", family="404"
        )
        found = await pages.take(made)
        assert (found.action, found.because, found.canonical.id) == ("skip", "copy", NAMES[0])


async def test_a_page_that_becomes_a_copy_of_a_page_of_another_host_is_no_error_page() -> None:
    pages = await grown()
    other = ref("https://b.example/0", text="wire")
    found = await pages.take(verdict("exact_duplicate", DAY + 1, other, name=NAMES[0], text="wire", family="wire"))
    assert (found.action, found.because, found.change_share) == ("skip", "copy", 1.0)
