"""A page rests on another one of its site that has all of its words, or on an equal older one of another site."""

import time

import pytest
from msgspec.structs import replace

from nearstream.streams.deciding.naming import form_of, rank
from nearstream.streams.deciding.states import kept
from tests.support.verdicts import COLLECTION, Pages, parts, ref, verdict

ARTICLE = "https://a.example/articles/7"
PRINT = "https://a.example/print/7"
MIRROR = "https://b.example/x"
TEXT = "An article of more than eight words that two pages show", "A second paragraph of it"
MENU = ("Menu of the site", "All about us")


async def site() -> Pages:
    """Return pages of a site with a menu."""
    pages = Pages()
    for number in range(4):
        await pages.fetch(f"https://a.example/n/{number}", 0, f"Page {'abcd'[number]}", beside=MENU)
    return pages


def canonical(pages: Pages, name: str) -> str | None:
    found = pages.of(name)
    return found.canonical.id if found.because == "copy" else None


async def test_a_page_whose_words_are_all_in_a_better_page_of_its_site_is_a_copy() -> None:
    pages = await site()
    await pages.fetch(ARTICLE, 1, *TEXT, beside=MENU)
    found = await pages.fetch(PRINT, 1, *TEXT, of=ref(ARTICLE))
    assert (found.action, found.because, found.canonical.id) == ("skip", "copy", ARTICLE)
    assert canonical(pages, ARTICLE) is None


async def test_a_better_page_that_comes_later_takes_over() -> None:
    pages = await site()
    await pages.fetch(PRINT, 1, *TEXT)
    await pages.fetch(ARTICLE, 2, *TEXT, beside=MENU, of=ref(PRINT))
    assert (canonical(pages, ARTICLE), canonical(pages, PRINT)) == (None, ARTICLE)
    assert pages.said.keys() == {ARTICLE, PRINT}
    said = pages.said
    again = replace(verdict("exact_duplicate", 120, ref(PRINT), name=ARTICLE), labels={})
    await pages.take(again)  # delivered again, because its worker ended before the decisions were sent
    assert pages.said == said


async def test_a_page_with_words_of_its_own_is_no_copy() -> None:
    for beside in (("Now 5 EUR",), (*MENU, "Correction: the minister has resigned")):
        pages = await site()
        await pages.fetch(ARTICLE, 1, *TEXT, beside=MENU)
        await pages.fetch(PRINT, 1, *TEXT, beside=beside, of=ref(ARTICLE))
        assert canonical(pages, PRINT) is None


async def test_a_few_words_make_no_copy() -> None:
    pages = Pages()
    await pages.fetch(ARTICLE, 1, "Loading")
    await pages.fetch(PRINT, 1, "Loading", of=ref(ARTICLE))
    assert canonical(pages, PRINT) is None


async def test_a_copy_waits_by_its_own_rate_and_nothing_falls_when_its_canonical_page_changes() -> None:
    pages = await site()
    await pages.fetch(ARTICLE, 1, *TEXT, beside=MENU)
    before = await pages.fetch(PRINT, 1, *TEXT, of=ref(ARTICLE))
    await pages.fetch(ARTICLE, 9, "An article with another text of more than eight words", beside=MENU)
    assert pages.said.keys() == {ARTICLE}
    assert pages.of(PRINT) == before
    kept_now = await pages.fetch(PRINT, 10, *TEXT, of=ref(ARTICLE))
    assert (kept_now.because, kept_now.unchanged) == ("unchanged", 1)


async def test_pages_never_rest_on_each_other() -> None:
    pages = await site()
    await pages.fetch(ARTICLE, 1, *TEXT, beside=MENU)
    await pages.fetch(PRINT, 1, *TEXT, of=ref(ARTICLE))
    await pages.fetch(ARTICLE, 9, "Another text of more than eight words in an article", beside=MENU)
    await pages.fetch(ARTICLE, 20, *TEXT, beside=MENU, of=ref(PRINT))
    assert (canonical(pages, ARTICLE), canonical(pages, PRINT)) == (None, ARTICLE)


async def test_a_copy_of_a_copy_rests_on_the_page_behind() -> None:
    pages, session = await site(), f"{ARTICLE}?sid=7"
    await pages.fetch(ARTICLE, 1, *TEXT, beside=MENU)
    await pages.fetch(PRINT, 1, *TEXT, of=ref(ARTICLE))
    await pages.fetch(session, 1, *TEXT, beside=MENU, of=ref(PRINT))
    assert canonical(pages, session) == ARTICLE


async def test_a_declared_page_is_canonical_where_the_words_agree_and_there_alone() -> None:
    pages, named = Pages(), "https://a.example/much/longer/name"
    await pages.fetch("https://a.example/x", 1, *TEXT)
    made = verdict("exact_duplicate", 90, ref("https://a.example/x"), name=named, text="t")
    await pages.take(made, parts=parts(*TEXT), declared=named)
    assert canonical(pages, "https://a.example/x") == named
    lists = Pages()
    await lists.fetch("https://a.example/news", 1, *TEXT)
    other = verdict("near_duplicate", 90, ref("https://a.example/news"), name="https://a.example/news?page=9", text="t")
    await lists.take(other, parts=parts(*TEXT, "Next page of it"), declared="https://a.example/news")
    assert canonical(lists, "https://a.example/news?page=9") is None


async def test_between_sites_the_older_of_two_pages_that_are_equal_in_all_is_canonical() -> None:
    pages = Pages()
    first, second = (verdict("unique", 0, name=ARTICLE), verdict("exact_duplicate", 60, ref(ARTICLE), name=MIRROR))
    await pages.take(first, parts=parts(*TEXT))
    await pages.take(second, parts=parts(*TEXT), declared=MIRROR)
    assert (canonical(pages, MIRROR), canonical(pages, ARTICLE)) == (ARTICLE, None)
    await pages.take(verdict("unchanged", 600, name=ARTICLE, founder=ref(MIRROR, 60)), parts=parts(*TEXT))
    assert canonical(pages, ARTICLE) is None


async def test_between_sites_nothing_rests_that_differs_beside_the_main_content() -> None:
    pages, labels = Pages(), ({"surroundings": "a"}, {"surroundings": "b"})
    await pages.take(verdict("unique", 0, name=ARTICLE, labels=labels[0]), parts=parts(*TEXT, beside=("499 EUR",)))
    of = replace(ref(ARTICLE), labels=labels[0])
    made = verdict("exact_duplicate", 60, of, name=MIRROR, labels=labels[1])
    await pages.take(made, parts=parts(*TEXT, beside=("299 EUR",)))
    assert canonical(pages, MIRROR) is None


async def test_a_url_that_redirects_to_a_page_is_withdrawn() -> None:
    pages, old = Pages(), "https://a.example/o"
    await pages.fetch(old, 1, *TEXT)
    moved = verdict("exact_duplicate", 90, ref(old), name=ARTICLE, url=old, lineage=ARTICLE)
    await pages.take(moved, parts=parts(*TEXT))
    assert canonical(pages, ARTICLE) is None
    assert (COLLECTION, old) not in pages.store.states
    assert pages.said == dict.fromkeys((ARTICLE, old), pages.of(ARTICLE))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("https://a.example/articles/7", "https://a.example/print/7"),
        ("https://a.example/articles/7", "https://a.example/articles/7/amp"),
        ("https://a.example/articles/7", "https://m.a.example/a/7"),
        ("https://a.example/articles/7.html", "https://a.example/7.print.html"),
        ("https://a.example/articles/7?print=1", "https://a.example/a/7?sid=9"),
        ("https://a.example/articles/7?page=2", "https://a.example/a/7?x=8f14e45fceea167a5a36dedd"),
        ("https://a.example/articles/7", "https://a.example/a/(S(lit3py55t21z5v55vlm25s55))/7"),
        ("https://a.example/articles/7", "https://a.example/articles/7?from=start"),
        ("https://a.example/articles/7", "https://a.example/mirror/articles/7"),
        ("https://a.example/product?id=red", "https://a.example/product?id=red&tab=1"),
        ("https://a.example/printing-history", "https://a.example/print/x"),
    ],
)
def test_the_better_form_of_a_url_is_canonical(better: str, worse: str) -> None:
    assert form_of(better) < form_of(worse)
    assert rank(kept(ref(better)), 9, ()) < rank(kept(ref(worse)), 0, ())
    assert rank(kept(ref(worse)), 0, {worse}) < rank(kept(ref(better)), 0, {worse})


def test_of_equal_forms_the_oldest_is_canonical() -> None:
    assert rank(kept(ref("https://a.example/y")), 0, ()) < rank(kept(ref("https://a.example/x")), 1, ())


@pytest.mark.parametrize("name", ["report-7", "http://[::1", "", "https://a.example/?" + "a=1&" * 2_000, "/" * 4_096])
def test_any_text_has_a_form(name: str) -> None:
    began = time.process_time()
    assert form_of(name)[2] >= 0
    assert time.process_time() - began < 1


@pytest.mark.parametrize(("first", "second"), [(ARTICLE, PRINT), (PRINT, ARTICLE)])
async def test_the_verdict_about_a_copy_may_be_read_before_that_about_its_original(first: str, second: str) -> None:
    pages = Pages()
    original = verdict("unique", 1, name=first, text="t")
    copy = verdict("exact_duplicate", 2, ref(first, 1, "t"), name=second, text="t")
    await pages.take(copy, parts=parts(*TEXT))
    await pages.take(original, parts=parts(*TEXT))
    assert (canonical(pages, ARTICLE), canonical(pages, PRINT)) == (None, ARTICLE)
    assert pages.of(PRINT).interval_seconds == 3_600  # of a new host, whose other pages may be fetched at any time
    assert pages.said.keys() >= {first}


async def test_another_text_of_the_site_whose_verdict_is_not_read_yet_says_nothing() -> None:
    pages = Pages()
    await pages.take(verdict("near_duplicate", 2, ref(ARTICLE, 1, "other"), name=PRINT, text="t"), parts=parts(*TEXT))
    assert (pages.of(PRINT).because, list(pages.store.states)) == ("first", [(COLLECTION, PRINT)])
