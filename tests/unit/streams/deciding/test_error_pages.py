"""A page that turns to a text of other pages of its host is an error page until it comes back."""

import pytest

from tests.support.verdicts import COLLECTION, Pages, ref, verdict

NAMES = tuple(f"https://a.example/n/{number}" for number in range(6))
WALL = "We are down for maintenance and will be back soon", "Please try again in a few minutes"


def own(name: str) -> tuple[str, ...]:
    letter = "abcdef"[int(name[-1])]
    return f"Title {letter} of a page", f"Paragraph {letter} with the text that only this page has", f"Level {name[-1]}"


async def grown(names: tuple[str, ...] = NAMES) -> Pages:
    """Return pages that have stayed for a day."""
    pages = Pages()
    for hours in (0, 24):
        for place, name in enumerate(names):
            await pages.fetch(name, hours + place / 60, *own(name), beside=("Menu",))
    return pages


async def walled(pages: Pages, *wall: str, hours: float = 30, names: tuple[str, ...] = NAMES) -> list[str]:
    for place, name in enumerate(names):
        await pages.fetch(name, hours + place / 60, *wall, beside=("Menu",))
    return [pages.of(name).because for name in names]


@pytest.mark.parametrize("wall", [WALL, (*WALL, "Incident 4711 of today")], ids=["plain", "with a number"])
async def test_three_pages_that_turn_to_one_text_make_it_an_error_text_of_their_host(wall: tuple[str, ...]) -> None:
    pages = await grown()
    assert await walled(pages, *wall) == ["error_page"] * 6
    assert [host for host, _ in pages.noticed] == ["a.example"]
    lost = pages.of(NAMES[5])
    assert (lost.action, lost.error_text is not None, lost.interval_seconds) == ("refresh", True, 600)
    assert pages.skips(NAMES[5], 30.2)
    assert not pages.skips(NAMES[5], 30.4)
    # Those that turned first are tried again too.
    assert not pages.skips(NAMES[0], 30.4)


async def test_a_page_that_comes_back_goes_on_as_before() -> None:
    pages = await grown()
    await walled(pages, *WALL)
    for name in NAMES:
        back = await pages.fetch(name, 31, *own(name), beside=("Menu",))
        assert (back.action, back.because, back.unchanged, back.change_share) == ("keep", "unchanged", 2, 0.0)
        assert back.interval_seconds > 6 * 3_600


@pytest.mark.parametrize("place", [1, 2], ids=["title", "first paragraph"])
async def test_a_wall_that_keeps_the_begin_of_each_page_and_has_ids_is_recognised(place: int) -> None:
    pages, rest = await grown(), "and all of the others " * 8
    for hours in (25, 30):
        for number, name in enumerate(NAMES):
            wall = "Not all can be read", f"Name {('3f2a9b1', '77aa00bb12 e1deac31')[number % 2]} to us"
            shown = (*own(name)[:2], own(name)[0] + rest) if hours == 25 else (*own(name)[:place], *wall)
            await pages.fetch(name, hours + number / 60, *shown, beside=("Menu",))
    assert {pages.of(name).because for name in NAMES} == {"error_page"}


async def test_lists_whose_newest_items_are_on_all_of_them_have_not_turned() -> None:
    pages, rows = Pages(), [f"Headline {'abcdefghijklmnopqrst'[number]} of the day" for number in range(18)]
    for hours in range(6):
        for place, name in enumerate(NAMES):
            await pages.fetch(name, hours + place / 60, own(name)[0], *rows[2 * hours : 2 * hours + 6])
    assert not pages.noticed


async def test_an_error_text_that_lasts_is_tried_ever_more_rarely_and_once_a_day_at_least() -> None:
    pages, waits, hours = await grown(), list[int](), 31.0
    await walled(pages, *WALL)
    for _ in range(10):
        waits.append((await pages.fetch(NAMES[5], hours, *WALL, beside=("Menu",))).interval_seconds)
        hours += waits[-1] / 3_600
    assert waits == [min(1_200 << place, 86_400) for place in range(10)]


async def test_a_page_that_is_new_behind_a_known_wall_is_lost_too() -> None:
    pages = await grown()
    await walled(pages, *WALL)
    new = await pages.fetch("https://a.example/n/new", 31, *WALL, beside=("Menu",))
    assert (new.because, new.canonical.id) == ("error_page", "https://a.example/n/new")
    assert (await pages.fetch("https://a.example/n/new", 32, "A page", "with its own text")).because == "first"


async def test_pages_of_one_template_whose_numbers_all_change_have_not_turned() -> None:
    pages = Pages()
    for hours in range(6):
        for place, name in enumerate(NAMES):
            lines = (f"Level {hours * place + line} cm, flow {hours + line} m3/s" for line in range(4))
            await pages.fetch(name, hours + place / 60, "Station", *lines)
    assert {pages.of(name).because for name in NAMES} == {"changed"}
    assert not pages.noticed


async def test_pages_that_turn_to_one_text_over_days_do_not_make_it_an_error_text() -> None:
    pages = await grown()
    for place, name in enumerate(NAMES):
        await pages.fetch(name, 30 + 7 * place, *WALL, beside=("Menu",))
    assert not pages.store.hosts[COLLECTION, "a.example"].texts


@pytest.mark.parametrize("has_title", [False, True])
async def test_pages_behind_a_wall_from_their_first_fetch_on_are_tried_twice_a_day(*, has_title: bool) -> None:
    pages = Pages()
    for hours in (0, 6, 18, 30, 42, 54, 66):
        for place, name in enumerate(NAMES):
            shown = (own(name)[2], *WALL) if has_title else WALL
            found = await pages.fetch(name, hours + place / 60, *shown, beside=("Menu",))
            assert found.because == ("unchanged" if hours else "first")
    assert all(pages.of(name).interval_seconds < 43_200 for name in NAMES)
    real = await pages.fetch(NAMES[0], 78, *own(NAMES[0]))
    assert (real.because, pages.state(NAMES[0]).observed) == ("changed", b"")


async def test_a_wall_is_never_canonical() -> None:
    pages = Pages()
    for place, name in enumerate(NAMES):
        of = ref(NAMES[0], text="\n".join(WALL)) if place else None
        await pages.fetch(name, place / 60, *WALL, of=of)
    assert [pages.of(name).because for name in NAMES[2:]] == ["first"] * 4


async def test_a_page_without_a_host_is_never_lost() -> None:
    found = await Pages().take(verdict("unique", name="report-7", url=None, lineage="report-7"))
    assert (found.because, found.canonical.id) == ("first", "report-7")


async def test_pages_of_one_template_with_texts_of_their_own_are_no_wall() -> None:
    pages = Pages()
    template = [f"Paragraph {chr(97 + place)} of the terms of this harbour, on every page" * 2 for place in range(20)]
    for place, name in enumerate(NAMES):
        await pages.fetch(name, place / 60, f"{name} {'is about a berth of its own ' * 5}", *template, beside=("Menu",))
    assert not any(pages.state(name).is_wall for name in NAMES)
