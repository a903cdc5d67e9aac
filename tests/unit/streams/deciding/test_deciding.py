"""What a crawler should do with the pages of a lineage, from verdicts."""

from datetime import timedelta
from itertools import permutations

import pytest
from msgspec.structs import replace

from nearstream.schemas.documents.document import LATEST
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.verdicts.events import Retraction
from nearstream.streams.deciding.host import SHOWN_MAX
from tests.support.verdicts import COLLECTION, PAGE, TIME, Pages, parts, verdict

SHOP = [f"https://shop.example/p/{number}" for number in range(12)]


def described(number: int) -> str:
    return f"A description of product {'abcdefghijklmnopqrst'[number]} with all that there is to say of it"


async def crawled(*rounds: tuple[float, tuple[str, ...], tuple[str, ...]], names: list[str] = SHOP) -> Pages:
    """Return pages that showed these texts in and beside their main content at these hours."""
    pages = Pages()
    for hours, main, beside in rounds:
        for number, name in enumerate(names):
            await pages.fetch(name, hours + number / 60, described(number), *main, beside=beside)
    return pages


def because(pages: Pages, names: list[str] = SHOP) -> list[str]:
    return [pages.of(name).because for name in names]


async def test_the_first_pages_of_a_host_may_be_fetched_again_at_any_time() -> None:
    first = await Pages().fetch(PAGE, 0, described(0))
    assert (first.action, first.because, first.until, first.unchanged) == ("keep", "first", TIME, 0)
    assert first.canonical.id == PAGE


async def test_the_longer_a_page_has_stayed_the_longer_it_waits_and_a_week_at_most() -> None:
    pages, waits, hours = Pages(), list[int](), 0.0
    await pages.fetch(PAGE, 0, described(0))
    for _ in range(12):
        hours += max(waits[-1] / 3_600 if waits else 6, 1)
        kept = await pages.fetch(PAGE, hours, described(0))
        assert (kept.action, kept.because, kept.unchanged_since) == ("keep", "unchanged", TIME)
        assert kept.until == kept.observed_at + timedelta(seconds=kept.interval_seconds)
        waits.append(kept.interval_seconds)
    assert waits[0] <= 18 * 3_600 < 36 * 3_600 < waits[-1] <= 1.2 * 7 * 86_400
    assert kept.unchanged == 12


async def test_a_page_waits_by_what_others_of_its_folder_have_shown_since() -> None:
    pages = Pages()
    for hours in (0, 6):
        for number, name in enumerate(SHOP):
            await pages.fetch(name, hours + number / 60, described(number), f"Price {hours * (number > 0)} EUR")
    asked = await pages.decider.asked(COLLECTION, SHOP[0])
    assert asked is not None
    assert 0 < asked.wait_seconds < 0.8 * pages.of(SHOP[0]).interval_seconds
    assert await pages.decider.asked(COLLECTION, "unknown") is None


async def test_a_page_that_changes_each_hour_is_never_skipped_an_hour_later() -> None:
    pages = Pages()
    for hours in range(24):
        assert not hours or not pages.skips(PAGE, hours)
        found = await pages.fetch(PAGE, hours, "Station", f"Wind {hours} km/h, {3 * hours} degrees")
    assert (found.action, found.because) == ("refresh", "changed")


async def test_a_page_of_a_folder_whose_pages_change_waits_less() -> None:
    async def wait(texts: tuple[str, str]) -> int:
        pages = await crawled((0, (texts[0],), ()), (6, (texts[1],), ()))
        return (await pages.fetch("https://shop.example/p/new", 7, described(15))).interval_seconds

    assert await wait(("Costs 5", "Costs 6")) < 6 * 3_600 < await wait(("Costs 5", "Costs 5"))


async def test_a_price_that_changes_on_all_pages_at_once_is_a_change_on_each() -> None:
    sale = ("Now 5 EUR",), ("Now 4 EUR",)
    pages = await crawled((0, sale[0], ()), (6, sale[0], ()), (12, sale[0], ()), (24, sale[1], ()))
    assert because(pages) == ["changed"] * 12


async def test_a_notice_that_comes_once_on_all_pages_is_a_change_on_each() -> None:
    recall = "Recall: do not use this product because it may catch fire"
    pages = await crawled((0, (), ("Menu",)), (6, (), ("Menu", recall)))
    assert because(pages) == ["changed"] * 12


async def test_what_several_pages_show_in_place_of_something_else_again_and_again_is_frame() -> None:
    teasers = [((), ("Menu", f"Teaser {word} of our site today")) for word in ("one", "two", "three")]
    pages = await crawled((0, *teasers[0]), (6, *teasers[1]), (12, *teasers[2]))
    assert because(pages)[4:] == ["unchanged"] * 8
    # A change of the page itself is seen beside that of the frame.
    sold = await pages.fetch(SHOP[8], 13, described(8), "Sold out", beside=teasers[1][1])
    assert (sold.because, 0 < sold.change_share < 1) == ("changed", True)


async def test_teasers_of_other_pages_count_for_two_days() -> None:
    teasers = [((), ("Menu", f"Teaser {word} of our site today")) for word in ("one", "two", "three")]
    pages = await crawled((0, *teasers[0]), (6, *teasers[1]), (12, *teasers[2]))
    late = await pages.fetch(SHOP[3], 99, described(3), beside=("Menu", "Teaser four of our site today"))
    assert late.because == "changed"
    assert len(pages.store.hosts[COLLECTION, "shop.example"].shown) <= SHOWN_MAX


async def test_a_counter_is_a_change_that_says_nothing_of_the_rate() -> None:
    def counted(fetch: int) -> tuple[str, ...]:
        return ("Menu", f"Read {fetch * 7} times")

    pages = await crawled(*((6.0 * fetch, (), counted(fetch)) for fetch in range(6)), names=SHOP[:4])
    noisy, still = pages.of(SHOP[0]), Pages()
    assert noisy.because == "changed"
    for fetch in range(6):
        await still.fetch(PAGE, 6.0 * fetch, described(0))
    assert 2 * noisy.interval_seconds > still.of(PAGE).interval_seconds / 2


@pytest.mark.parametrize(
    ("main", "beside"),
    [
        (("A title", "Text of the page"), ("Closed today",)),
        (("A title", "Text of the page"), ()),
        (("Another title", "Text of the page"), ("Open today",)),
        (("Text of the page", "A title"), ("Open today",)),
        (("A title", "Text of the page", "Text of the page"), ("Open today",)),
        (("A title", "Text of the page", "@/i/2.jpg"), ("Open today",)),
    ],
    ids=["status", "gone", "title", "order", "row", "image"],
)
async def test_whatever_else_differs_is_a_change(main: tuple[str, ...], beside: tuple[str, ...]) -> None:
    pages = Pages()
    await pages.fetch(PAGE, 0, "A title", "Text of the page", beside=("Open today",))
    assert (await pages.fetch(PAGE, 6, "A title", "Text of the page", beside=("Open today",))).because == "unchanged"
    assert (await pages.fetch(PAGE, 12, *main, beside=beside)).because == "changed"


async def test_a_page_without_parts_is_compared_as_a_whole() -> None:
    pages, shown = Pages(), parts("Text")
    actions = []
    for minutes, text, packed in ((0, "a", b""), (1, "a", b""), (2, "b", b""), (3, "b", shown), (4, "c", b"")):
        actions.append((await pages.take(verdict("unique", minutes, text=text), parts=packed)).because)
    assert actions == ["first", "unchanged", "changed", "unchanged", "changed"]


async def test_a_redelivered_verdict_changes_nothing_and_says_everything_again() -> None:
    verdicts = [verdict("unique", minutes, text=str(minutes)) for minutes in range(4)]
    pages = Pages()
    whole = await pages.take(*verdicts)
    for start in range(4):
        assert await pages.take(*verdicts[start:]) == whole
        assert pages.said == {PAGE: whole}


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_the_latest_fetch_decides_in_any_order(order: tuple[int, ...]) -> None:
    verdicts = [verdict("unique", minutes, text=str(minutes)) for minutes in range(3)]
    found = await Pages().take(*(verdicts[place] for place in order))
    assert found.canonical.version == verdicts[2].version


async def test_what_the_server_says_of_the_latest_fetch_is_kept_for_the_next_one() -> None:
    pages = Pages()
    for minutes, etag in ((0, '"v-1"'), (1, '"v-2"'), (2, "")):
        await pages.decider.after_verdict(verdict("unchanged", minutes), PageFacts(etag=etag, modified=etag))
        assert (pages.state(PAGE).etag, pages.state(PAGE).modified) == (etag, etag)


async def test_a_removed_page_is_forgotten_under_all_names() -> None:
    pages = Pages()
    await pages.take(replace(verdict("unique"), url="https://a.example/old"))
    removal = Retraction(
        event_id="e" * 32, collection=COLLECTION, scheme="s", document_id=PAGE, removed_at=TIME + timedelta(hours=1)
    )
    pages.heard(await pages.decider.after_removal(removal))
    assert pages.said == {PAGE: None, "https://a.example/old": None}
    assert not pages.store.states
    assert await pages.decider.after_removal(removal) == []


async def test_a_name_that_is_removed_ends_alone_and_a_late_fetch_still_gives_its_own() -> None:
    pages, old, older = Pages(), "https://a.example/old", "https://a.example/older"
    await pages.take(replace(verdict("unique", 60), url=older), replace(verdict("unique"), url=old))
    assert pages.said.keys() == {PAGE, old, older}
    at = TIME + timedelta(hours=2)
    removal = Retraction(event_id="e" * 32, collection=COLLECTION, scheme="s", document_id=old, removed_at=at)
    pages.heard(await pages.decider.after_removal(removal))
    assert pages.said == {old: None}
    await pages.take(verdict("unique", 180))
    assert pages.said.keys() == {PAGE, older}


async def test_a_removal_of_a_state_before_the_latest_fetch_changes_nothing() -> None:
    pages = Pages()
    await pages.take(verdict("unique", 120))
    removal = Retraction(event_id="e" * 32, collection=COLLECTION, scheme="s", document_id=PAGE, removed_at=TIME)
    pages.heard(await pages.decider.after_removal(removal))
    assert pages.said == {PAGE: pages.of(PAGE)}


async def test_a_page_of_the_year_9999_is_decided_until_the_end_of_time() -> None:
    pages = Pages()
    for at in (LATEST - timedelta(hours=1), LATEST):
        found = await pages.take(replace(verdict("unique"), observed_at=at))
        assert found.until == LATEST or found.until == at


async def test_a_text_without_a_lineage_has_no_decision() -> None:
    pages = Pages()
    pages.heard(await pages.decider.after_verdict(replace(verdict("unique"), lineage=None), PageFacts()))
    assert pages.said == {}
