"""A decision lives as long as the state of the page on which it rests, which is that of the best URL."""

import time
from datetime import timedelta

import pytest

from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.verdicts.events import Retraction
from nearstream.streams.deciding import states
from nearstream.streams.deciding.decider import Said
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.resting import form_of, rank
from nearstream.streams.deciding.states import PageState
from tests.support.memory_decisions import MemoryDecisions
from tests.support.verdicts import COLLECTION, TIME, Pages, ref, verdict

ARTICLE = "https://a.example/articles/7"
PRINT = "https://a.example/print/7"
MIRROR = "https://b.example/mirror/articles/7"


async def crawled(*names: str) -> Pages:
    """Return pages with one text, fetched a minute after each other."""
    pages = Pages()
    for minutes, name in enumerate(names):
        of = ref(names[0], text="a") if minutes else None
        await pages.take(verdict("exact_duplicate" if of else "unique", minutes, of, name=name, text="a"))
    return pages


def resting(pages: Pages, *names: str) -> dict[str, str | None]:
    """Return on which page each skipped page rests, None for one that is not skipped."""
    decisions = {name: pages.of(name) for name in names}
    return {name: each.canonical.url if each.action == "skip" else None for name, each in decisions.items()}


async def test_all_that_rest_on_a_page_are_to_be_fetched_when_it_changes() -> None:
    pages = await crawled(ARTICLE, PRINT, MIRROR)
    assert resting(pages, PRINT, MIRROR) == {PRINT: ARTICLE, MIRROR: ARTICLE}
    change = verdict("version", 20, ref(ARTICLE, text="a"), name=ARTICLE, text="b")
    await pages.take(change)
    for name in (PRINT, MIRROR):
        decision = pages.of(name)
        assert (decision.action, decision.because, decision.event_id) == (
            "refresh",
            "canonical_changed",
            change.event_id,
        )
        assert decision.until == TIME + timedelta(minutes=20)
        assert decision.canonical.id == name
        assert not may_skip(decision, int(TIME.timestamp() * 1000))
    assert pages.said == {name: pages.of(name) for name in (ARTICLE, PRINT, MIRROR)}
    said = pages.said
    await pages.take(change)  # delivered again, because its worker ended before the decisions were sent
    assert pages.said == said


async def test_a_page_that_has_not_changed_leaves_decisions_as_they_are() -> None:
    pages = await crawled(ARTICLE, PRINT)
    await pages.take(verdict("unchanged", 20, name=ARTICLE, text="a"))
    assert resting(pages, PRINT) == {PRINT: ARTICLE}
    assert pages.said.keys() == {ARTICLE}


async def test_all_that_rest_on_a_page_are_to_be_fetched_when_it_is_removed() -> None:
    pages = await crawled(ARTICLE, PRINT)
    removal = Retraction(
        event_id="r" * 32, collection=COLLECTION, scheme="s", document_id=ARTICLE, removed_at=TIME + timedelta(hours=1)
    )
    for _ in range(2):
        pages.heard(await pages.decider.after_removal(removal))
        decision = pages.of(PRINT)
        assert (decision.action, decision.because, decision.until) == ("refresh", "canonical_gone", removal.removed_at)
        assert pages.said[PRINT] == decision
    assert (COLLECTION, ARTICLE) not in pages.store.states


async def test_a_better_page_takes_over_from_an_earlier_one_and_all_that_rest_on_it() -> None:
    pages = await crawled(PRINT, MIRROR, f"{PRINT}?more=1")
    others = (PRINT, MIRROR, f"{PRINT}?more=1")
    assert resting(pages, *others) == {MIRROR: None, PRINT: MIRROR, f"{PRINT}?more=1": MIRROR}
    await pages.take(verdict("exact_duplicate", 9, ref(PRINT, text="a"), name=ARTICLE, text="a"))
    assert resting(pages, ARTICLE, *others) == {ARTICLE: None} | dict.fromkeys(others, ARTICLE)
    assert set(others) <= pages.said.keys()
    await pages.take(verdict("version", 30, ref(ARTICLE, text="a"), name=ARTICLE, text="b"))
    assert resting(pages, *others) == dict.fromkeys(others)


async def test_a_better_page_takes_over_from_one_whose_own_verdict_is_read_later() -> None:
    pages = Pages()
    await pages.take(verdict("exact_duplicate", 9, ref(PRINT, text="a"), name=ARTICLE, text="a"))
    assert resting(pages, ARTICLE, PRINT) == {ARTICLE: None, PRINT: ARTICLE}
    await pages.take(verdict("unique", name=PRINT, text="a"))
    assert resting(pages, ARTICLE, PRINT) == {ARTICLE: None, PRINT: ARTICLE}
    await pages.take(verdict("version", 20, ref(PRINT, text="a"), name=PRINT, text="b"))
    assert pages.of(PRINT).action == "refresh"


async def test_a_declared_page_is_canonical_where_the_texts_agree_and_there_alone() -> None:
    pages = await crawled("https://a.example/x")
    named = "https://a.example/much/longer"
    of = ref("https://a.example/x", text="a")
    await pages.take(verdict("exact_duplicate", 3, of, name=named, text="a"), declared=named)
    assert resting(pages, "https://a.example/x", named) == {"https://a.example/x": named, named: None}
    # All pages of a list name the first one: they have other texts, and pages of their own.
    lists = Pages()
    await lists.take(verdict("unique", name="https://a.example/news", text="a"))
    for minutes in (1, 60 * 24 * 9, 60 * 24 * 20):
        kind = "unique" if minutes == 1 else "unchanged"
        second = verdict(kind, minutes, name="https://a.example/news?page=9", text="b")
        await lists.take(second, declared="https://a.example/news")
    assert (lists.of("https://a.example/news").action, lists.of("https://a.example/news").because) == ("keep", "first")
    assert lists.of("https://a.example/news").until == TIME


async def test_pages_never_rest_on_each_other() -> None:
    pages = await crawled(ARTICLE, PRINT)
    await pages.take(verdict("version", 20, ref(ARTICLE, text="a"), name=ARTICLE, text="b"))
    # The article returns to its former text, which now only the print version has.
    await pages.take(
        verdict("exact_duplicate", 30, ref(PRINT, text="a"), name=ARTICLE, text="a", founder=ref(PRINT, text="a"))
    )
    found = resting(pages, ARTICLE, PRINT)
    assert found == {ARTICLE: None, PRINT: ARTICLE}
    await pages.take(verdict("unchanged", 40, name=PRINT, text="a", founder=ref(ARTICLE, text="a")))
    assert resting(pages, ARTICLE, PRINT) == {ARTICLE: None, PRINT: ARTICLE}


async def test_a_page_whose_canonical_page_has_changed_meanwhile_is_not_skipped() -> None:
    pages = await crawled(ARTICLE)
    await pages.take(verdict("version", 20, ref(ARTICLE, text="a"), name=ARTICLE, text="b"))
    late = await pages.take(verdict("exact_duplicate", 10, ref(ARTICLE, text="a"), name=PRINT, text="a"))
    assert late.action == "keep"


class Raced(MemoryDecisions):
    """A store in which another worker stores a change of the article when a page is listed at it."""

    async def follow(self, collection: str, canonical: str, follower: str) -> bool:
        """List a page, after the other worker has read the list."""
        if canonical == ARTICLE:
            other = Pages(MemoryDecisions(self.states, self.aliases, self.frames, self.errors))
            await other.take(verdict("version", 20, ref(ARTICLE, text="a"), name=ARTICLE, text="b"))
        return await super().follow(collection, canonical, follower)


async def test_a_change_of_the_canonical_page_at_the_same_moment_is_seen() -> None:
    pages = Pages(Raced())
    await pages.take(verdict("unique", name=ARTICLE, text="a"))
    raced = await pages.take(verdict("exact_duplicate", 10, ref(ARTICLE, text="a"), name=PRINT, text="a"))
    assert (raced.action, raced.because) == ("refresh", "canonical_changed")


async def test_a_page_that_finds_no_room_in_the_list_is_skipped_for_an_hour_at_most() -> None:
    pages = await crawled(ARTICLE)
    pages.store.listed[COLLECTION, ARTICLE] = dict.fromkeys(map(str, range(states.FOLLOWERS_MAX)))
    await pages.take(verdict("exact_duplicate", 1, ref(ARTICLE, text="a"), name=PRINT, text="a"))
    days = 60 * 24 * 9
    again = await pages.take(verdict("unchanged", days, name=PRINT, text="a", founder=ref(ARTICLE, text="a")))
    assert (again.action, again.until) == ("skip", again.observed_at + timedelta(hours=1))


async def test_a_page_that_redirects_is_told_too() -> None:
    pages = await crawled(ARTICLE)
    own = {"url": "https://b.example/old/name/of/articles/7", "lineage": MIRROR}
    moved = verdict("exact_duplicate", 1, ref(ARTICLE, text="a"), name=MIRROR, text="a", **own)
    await pages.take(moved)
    assert pages.said == dict.fromkeys(("https://b.example/old/name/of/articles/7", MIRROR), pages.of(MIRROR))
    await pages.take(verdict("version", 20, ref(ARTICLE, text="a"), name=ARTICLE, text="b"))
    for name in ("https://b.example/old/name/of/articles/7", MIRROR):
        state = await pages.store.read_state(COLLECTION, name)
        assert isinstance(state, PageState)
        assert state.decision.because == "canonical_changed"
        assert pages.said[name] == state.decision


async def test_a_document_without_a_lineage_may_be_canonical() -> None:
    pages, report = Pages(), ref("report-7", text="a", lineage="report-7")
    no_page = {"url": None, "lineage": None}
    await pages.take(verdict("exact_duplicate", 1, report, name=MIRROR, text="a"))
    assert resting(pages, MIRROR) == {MIRROR: "report-7"}
    change = verdict("version", 9, report, name="report-7", text="b", **no_page)
    said = await pages.decider.after_verdict(change, PageFacts())
    assert said == [Said(COLLECTION, MIRROR, pages.of(MIRROR))]
    assert pages.of(MIRROR).because == "canonical_changed"


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
    assert rank(ref(better, 9), ()) < rank(ref(worse), ())
    assert rank(ref(worse), {worse}) < rank(ref(better), {worse})  # a declared one comes before all of this


def test_of_equal_forms_the_oldest_is_canonical() -> None:
    assert rank(ref("https://a.example/y"), ()) < rank(ref("https://a.example/x", 1), ())


@pytest.mark.parametrize("name", ["report-7", "http://[::1", "", "https://a.example/?" + "a=1&" * 2_000, "/" * 4_096])
def test_any_text_has_a_form(name: str) -> None:
    began = time.process_time()
    assert form_of(name)[2] >= 0
    assert time.process_time() - began < 1
