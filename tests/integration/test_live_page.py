"""The live page in a real browser: what it shows, what it survives, and that ids from outside stay text."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from time import monotonic
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from playwright.async_api import Browser, Page, expect

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS
from nearstream.schemas.documents.document import Document, from_milliseconds
from nearstream.schemas.documents.evidence import Amount, Distance, Interval, ReferenceMatch, SourceRef
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.live.state import WorkerState
from nearstream.workers.config.settings import load
from nearstream.workers.http.live.feed import Feed, Ring
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.pipeline.deployment import Deployment
from tests.devstack.chromium import chromium
from tests.devstack.npm import npm_packages
from tests.devstack.server import free_ports
from tests.support.api import served
from tests.support.deployment import TEXTS
from tests.support.live import HOSTILE_KEY, NOW_MS, alert, dead_letter, live_server, new_feed, removal, verdict

pytestmark = pytest.mark.foreign
SINCE = from_milliseconds(NOW_MS)

REFERENCE = ReferenceMatch(
    collection="good",
    id="known",
    version="31f8d0c4e6b2975a",
    observed_at=from_milliseconds(NOW_MS),
    relation="exact_duplicate",
    resemblance=Interval(value=1.0, low=1.0, high=1.0),
    distance=Distance(value=0, low=0, high=0),
    characters=10,
    family="0" * 32,
)
HOSTILE = '<img src=x onerror="document.title=1">'
BIDI = "a\u202egnp.b"
PATIENCE_MS = 60_000
WIDTH, PHONE = 1280, 340  # in pixels
AXE_VIEWS = (
    *("live", "families", "family/storm", "document/news/twice", "check", "letters", "letters/not_json", "workers"),
    "pair/news/a/b",
)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@asynccontextmanager
async def _opened(browser: Browser, address: str) -> AsyncIterator[Page]:
    """Open the page, and fail if it logs an error or breaks its own policy."""
    expect.set_options(timeout=PATIENCE_MS)
    context = await browser.new_context(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if _is_a_fault(line.type, line.text) else None)
    await page.goto(f"http://{address}/")
    try:
        yield page
        assert faults == []
    finally:
        await context.close()


def _is_a_fault(kind: str, text: str) -> bool:
    is_expected = "Failed to load resource" in text  # while the server is away, or asks for a token
    return (kind == "error" and not is_expected) or "Content Security Policy" in text


def _storm(feed: Feed, founder: str = "first", copies: int = 30) -> None:
    for ordinal in range(2, copies + 2):
        place = {"url": f"https://spam.example/{ordinal}", "sender": founder}
        feed.add(verdict(f"{founder}{ordinal}", "storm", ordinal, founder=founder, **place), NOW_MS)
    feed.alarms.add(alert("storm", founder=founder))


async def test_a_storm_is_explained_in_one_click_and_silenced_and_hostile_ids_stay_text(browser: Browser) -> None:
    feed = new_feed()
    _storm(feed, HOSTILE)
    feed.add(verdict(BIDI), NOW_MS)
    feed.add(removal("../../page/x#y?z%00"), NOW_MS)
    async with live_server(feed) as server, _opened(browser, server.address) as page:
        await expect(page.locator("#link")).to_have_text("live")
        await expect(page.locator("#ticker")).to_contain_text(r"a\u202egnp.b")
        await expect(page.locator("#storm")).to_contain_text(f"30 copies in ten minutes of {HOSTILE}")
        await page.click("#storm")
        marks = page.locator("#marks")
        await expect(marks.locator("li").first).to_contain_text("crawler")
        await expect(marks).to_contain_text(f"sender{HOSTILE}")
        await expect(marks).to_contain_text("spam.example")
        await expect(page.locator("#members tr").first).to_contain_text(f"{HOSTILE}31")
        await page.goto(f"http://{server.address}/#/family/{HOSTILE}/%E0%A4%A")
        await expect(page.locator("#main")).not_to_be_empty()
        await page.goto(f"http://{server.address}/#/live")
        row = page.locator("#alarms .alarm")
        await row.get_by_text("Seen").click()
        await expect(row).to_have_class("alarm silent")
        await row.get_by_text("Take back").click()
        await row.get_by_text("Silent for 4 h").click()
        await expect(row).to_contain_text("silent until 12:30:00")
        assert await page.locator("img").count() == 0
        assert (await page.title()).startswith("nearstream")


async def test_the_live_view_shows_what_arrives(browser: Browser) -> None:
    feed = new_feed()
    async with live_server(feed) as server, _opened(browser, server.address) as page:
        await expect(page.locator("#received")).to_have_text("0")
        await expect(page.locator(".tile", has_text="Time to verdict")).to_contain_text("no verdict in the last minute")
        tabs = await page.locator("#tabs a").count()
        await expect(page.locator(".keys")).to_contain_text(re.compile(rf"Keys: 1\W{tabs} views"))
        for width, columns in ((WIDTH, 6), (1000, 3), (390, 2)):
            await page.set_viewport_size({"width": width, "height": 900})
            places = [await each.bounding_box() for each in await page.locator(".tile").all()]
            assert [place["y"] == places[0]["y"] for place in places if place and places[0]].count(True) == columns
            row, last = await page.locator(".tiles").bounding_box(), places[columns - 1]
            assert row is not None
            assert last is not None
            assert abs(row["x"] + row["width"] - last["x"] - last["width"]) < 1
        await page.set_viewport_size({"width": WIDTH, "height": 900})
        await expect(page.locator("#growing")).to_contain_text("No family has grown")
        feed.add(verdict("alone"), NOW_MS)
        feed.add(verdict("copy", "f", 2), NOW_MS)
        feed.add(removal("alone"), NOW_MS)
        rows = page.locator("#ticker li")
        await expect(rows).to_have_count(3)
        assert [re.sub(r"\s+", " ", text) for text in await rows.all_inner_texts()] == [
            "08:30:00 retraction alonewas removed",
            "08:30:00 near duplicate copyis likefirst 93 % · no. 2",
            "08:30:00 unique alone 93 %",
        ]
        await expect(page.locator(".legend").first).to_contain_text(
            re.compile(r"near duplicate\s*1"), use_inner_text=True
        )
        await expect(page.locator("#growing")).to_contain_text("first")
        await expect(page.locator("#received")).to_have_text("3")


async def test_the_page_says_what_the_server_says_of_itself(browser: Browser) -> None:
    feed = new_feed()
    feed.is_alerting, feed.loading = False, 0.43
    feed.lags[""] = monotonic(), [PartitionLag("documents", 0, 5, 0, 75, 12.0)]
    feed.workers = [
        WorkerState(
            worker="h:1",
            role="sign",
            group="g",
            state="catching_up",
            since=SINCE,
            why="9 records wait",
        )
    ]
    async with live_server(feed) as server, _opened(browser, server.address) as page:
        await expect(page.locator("#unwatched")).to_contain_text("nearstream worker alert")
        await expect(page.locator("#loading")).to_have_text(re.compile(r"reading what was sent before the start: 43.%"))
        await expect(page.locator(".tile", has_text="Lag")).to_contain_text("70records, the oldest for 12 s")
        word = page.locator(".tile .term", has_text="Lag")
        await word.focus()
        await expect(word.locator(".tip")).to_have_text("Records that wait for the workers.")
        await page.keyboard.press("t")
        await page.keyboard.press("6")
        await expect(page.locator("#workers tr").nth(1)).to_contain_text("catching up")
        await page.reload()
        await expect(page.locator("html")).to_have_class("dark")


async def test_axe_finds_nothing_wrong_and_nothing_is_cut_off_at_the_width_of_a_phone(browser: Browser) -> None:
    axe = (npm_packages() / "node_modules/axe-core/axe.min.js").read_text()
    feed, found = new_feed(), []
    _storm(feed)
    feed.add(verdict("twice", kind="version"), NOW_MS)
    feed.add(verdict("x" * 512), NOW_MS)
    feed.letters.add(dead_letter(b"x" * 512))
    feed.lags[""] = monotonic(), [PartitionLag("documents", 0, 5, 0, 75, 12.0)]
    feed.workers = [WorkerState(worker="h:1", role="all", group="g", state="halted", since=SINCE, why="4 in a row")]
    async with live_server(feed) as server, _opened(browser, server.address) as page:
        await page.emulate_media(reduced_motion="reduce")
        for theme, view in product(("light", "dark"), AXE_VIEWS):
            await page.goto(f"http://{server.address}/#/{view}")
            await page.evaluate("dark => document.documentElement.classList.toggle('dark', dark)", theme == "dark")
            await expect(page.locator("main")).not_to_be_empty()
            await expect(page.locator("main")).not_to_contain_text("Looking")
            await page.evaluate(axe)
            told = await page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
            found += [
                f"{theme} {view}: {each['id']} {node['html'][:90]} {node['failureSummary'][:200]}"
                for each in told["violations"]
                for node in each["nodes"]
            ]
            await page.set_viewport_size({"width": PHONE, "height": 900})
            wide = await page.evaluate("() => document.scrollingElement.scrollWidth")
            await page.set_viewport_size({"width": WIDTH, "height": 900})
            found += [f"{view} is {wide} wide"] if wide > PHONE else []
    assert found == []


async def test_what_stands_still_is_red_on_every_view(browser: Browser) -> None:
    feed = new_feed()
    async with live_server(feed) as server, _opened(browser, server.address) as page:
        link, trouble = page.locator("#link"), page.locator("#trouble")
        halted = WorkerState(worker="h:1", role="all", group="g", state="halted", since=SINCE, why=HOSTILE)
        await expect(link).to_have_text("live")
        await expect(trouble).to_be_hidden()
        for view in ("live", "families", "workers"):
            await page.goto(f"http://{server.address}/#/{view}")
            feed.workers = [halted]
            await expect(trouble).to_contain_text(f"is halted since 2026-03-02T08:30:00+00:00: {HOSTILE}: look at")
            await expect(link).to_have_text("standing still")
            await expect(link).to_have_class("link off")
            feed.workers, feed.away["Redis"] = [], "Redis does not answer within 2 s"
            await expect(trouble).to_contain_text("Redis does not answer within 2 s")
            await expect(trouble).to_contain_text("The numbers below are of 08:30:00 UTC.")
            await expect(page.locator("body")).to_have_class("stale")
            await expect(link).to_have_class("link off")
            feed.away.clear()
            await expect(trouble).to_be_hidden()
            await expect(page.locator("body")).to_have_class("")
            await expect(link).to_have_class("link on")


async def test_a_pair_and_a_document_are_drawn_without_their_texts(browser: Browser) -> None:
    deployment, feed = Deployment.of(load({})), new_feed()
    words = [f"word{number}" for number in range(600)]
    texts = {HOSTILE: words, "second": [*words[350:], *words[:350]]}
    states = {
        f"news/{name}": [
            deployment.signer().sign(
                Document(id=name, collection="news", text=" ".join(text), observed_at=from_milliseconds(NOW_MS + place))
            )
        ]
        for place, (name, text) in enumerate(texts.items())
    }

    async def stored(key: str) -> list[Signature]:
        return states.get(key, [])

    new = {"novel": Amount(40, 0, 90), "novel_spans": ((100, 140),), "sources": (SourceRef(HOSTILE, "ab" * 8, 900),)}
    feed.add(replace(verdict("second", kind="rearranged"), **new), NOW_MS)
    async with live_server(feed, states=stored) as server, _opened(browser, server.address) as page:
        await page.goto(f"http://{server.address}/#/pair/news/second/{quote(HOSTILE, safe='')}")
        await expect(page.locator("#pair")).to_contain_text("rearranged")
        await expect(page.locator("#pair")).to_contain_text(HOSTILE)
        assert await page.locator(".bars path.crossing").count() > 0
        await expect(page.locator("#rules tr.decided")).to_contain_text("order gap")
        await page.click('#pair a:has-text("second")')
        await expect(page.locator("#document")).to_contain_text("second")
        await expect(page.locator("#states li")).to_have_count(1)
        await expect(page.locator("#new-text rect title")).to_have_count(2)
        known = await page.locator("#new-text rect title").first.text_content()
        assert known == f"known from {HOSTILE} (900)"
        await expect(page.locator("#new-text rect.span title")).to_have_text("new: 100 to 140")
        await page.goto(f"http://{server.address}/#/pair/news/second/unknown")
        await expect(page.locator("#main")).to_contain_text("cannot be compared")
        await page.keyboard.press("3")
        await page.fill("input[name=id]", "second")
        await page.keyboard.press("Enter")
        await expect(page.locator("#document")).to_contain_text("second")
        await expect(page.locator("input[name=id]")).to_have_value("second")
        assert await page.locator("img").count() == 0


async def test_members_are_read_page_by_page_and_texts_and_ids_searched_in_all_collections(
    browser: Browser, redis_url: str
) -> None:
    async with served(redis_url) as api:
        for collection in ("mail", "news", "web"):
            api.feed.add(verdict("seen", collection=collection), NOW_MS)
        for number in range(103):
            await api.admit(f"m{number}", TEXTS[0], collection="news")
        await api.admit("m7", TEXTS[0], collection="web")
        async with _opened(browser, api.address) as page:
            await page.goto(f"http://{api.address}/#/family/{'0' * 32}/news/m7")
            await expect(page.locator("#before")).to_have_text("100 of 103 are shown. None is labelled.")
            await page.click("#more-members")
            await expect(page.locator("#before")).to_have_text("103 of 103 are shown. None is labelled.")
            await expect(page.locator("#all-members tr")).to_have_count(103)
            await expect(page.locator("#more-members")).to_be_hidden()
            api.feed.add(replace(verdict("asked"), references=(REFERENCE,)), NOW_MS)
            await page.goto(f"http://{api.address}/#/document/news/asked")
            await expect(page.locator(".references")).to_contain_text("exact duplicate of good/known (100")

            await expect(page.locator("#collection option")).to_have_count(4)
            await page.keyboard.press("4")
            await page.fill("textarea", TEXTS[0])
            await page.click("main button")
            await expect(page.locator("#answer .card")).to_have_count(2)
            await expect(page.locator("#answer")).to_contain_text("Answer in news")
            await expect(page.locator("#answer")).to_contain_text("New in mail.")
            await page.goto(f"http://{api.address}/#/document//m7")
            await expect(page.locator("#found #document")).to_have_count(2)
            await page.goto(f"http://{api.address}/#/document//nothing")
            await expect(page.locator("#found")).to_contain_text("There is no such document in mail, news, web.")


async def test_dead_letters_are_shown_in_hex_and_sent_again(browser: Browser) -> None:
    feed, asked = new_feed(), list[tuple[str, bool]]()
    feed.alarms.add(alert("not_json", name="dead_letters", collection=ALL_COLLECTIONS))
    for offset in range(3):
        feed.letters.add(dead_letter(f"<b>{offset}</b>".encode(), offset))

    async def replay(reason: str, is_dry_run: bool) -> Counter[str]:
        asked.append((reason, is_dry_run))
        return Counter({"sent": 2, "too large": 1})

    async with live_server(feed, replay=replay) as server, _opened(browser, server.address) as page:
        await page.click("#alarms a")
        await expect(page.locator("#reasons")).to_contain_text("not json")
        await expect(page.locator("#letters tr")).to_have_count(3)
        await page.click("#replay")
        await expect(page.locator("#replay")).to_have_text("Send 2 again")
        await expect(page.locator("main")).to_contain_text("2 would be sent; skipped: 1 too large.")
        await page.click("#replay")
        await expect(page.locator("main")).to_contain_text("2 were sent; skipped: 1 too large.")
        assert asked == [("not_json", True), ("not_json", False)]
        await page.click("#letters a >> nth=0")
        await expect(page.locator("#hex")).to_contain_text("0000  3c 62 3e 30 3c 2f 62 3e")
        await expect(page.locator("#hex")).to_contain_text("<b>0</b>")
        await expect(page.locator("#letter")).to_contain_text(HOSTILE_KEY.decode("utf-8", "backslashreplace"))
        assert await page.locator("img").count() == 0


async def test_five_hundred_events_a_second_are_all_read_also_by_a_page_that_was_cut_off(browser: Browser) -> None:
    feed, (port,) = new_feed(), free_ports(1)
    address = f"127.0.0.1:{port}"
    async with live_server(feed, address=address) as server:
        pages = _opened(browser, server.address)
        page = await pages.__aenter__()
        await expect(page.locator("#link")).to_have_text("live")
        for step in range(40):
            for number in range(25):
                feed.add(verdict(f"{step}-{number}", url="https://a.example/page"), NOW_MS)
            await asyncio.sleep(0.05)
        await expect(page.locator("#received")).to_have_text("1,000")
        await expect(page.locator("#ticker li").first).to_contain_text("39-24")
        assert await page.locator("#ticker li").count() <= 60
    await expect(page.locator("#link")).to_have_text("no connection")
    kept, feed.ring = feed.ring, Ring()
    for entry in kept.after(0, 2_000)[1]:
        feed.ring.append(entry.event_id, entry.collection, entry.data)
    for number in range(300):
        feed.add(verdict(f"meanwhile {number}"), NOW_MS)
    async with live_server(feed, address=address):
        await expect(page.locator("#received")).to_have_text("1,300")
        await expect(page.locator("#missed")).to_have_text("0")
        await expect(page.locator("#link")).to_have_text("live")
    await pages.__aexit__(None, None, None)


async def test_a_server_that_answers_nothing_more_is_red_until_it_answers(browser: Browser) -> None:
    async with live_server(new_feed()) as server, _opened(browser, server.address) as page:
        link, trouble = page.locator("#link"), page.locator("#trouble")
        await expect(link).to_have_text("live")
        await page.route("**/v1/live?*", lambda _: None)  # the request hangs
        await expect(trouble).to_contain_text("The server does not say how the stream is")
        await expect(link).to_have_class("link off")
        await expect(page.locator("body")).to_have_class("stale")
        await page.unroute("**/v1/live?*")
        await expect(link).to_have_class("link on")
        await expect(trouble).to_be_hidden()


async def test_a_page_asks_for_a_token_and_shows_its_collections(browser: Browser) -> None:
    feed = new_feed()
    feed.add(verdict("of mail", collection="mail"), NOW_MS)
    feed.add(verdict("of news"), NOW_MS)
    async with (
        live_server(feed, "a-token-for-mail-only mail") as server,
        _opened(browser, server.address) as page,
    ):
        await page.fill("#token", "a-wrong-token-at-first")
        await page.click("#ask button")
        await expect(page.locator("#ask")).to_be_visible()
        await page.fill("#token", "a-token-for-mail-only")
        await page.press("#token", "Enter")
        await expect(page.locator("#ticker")).to_contain_text("of mail")
        await expect(page.locator("#collection")).to_have_value("mail")
        assert "of news" not in await page.inner_text("body")
