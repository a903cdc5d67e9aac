"""Web pages become text, whatever is in them, and while the event loop runs on."""

import asyncio
import math
import time
from collections.abc import Iterator
from itertools import product

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.streams.estimates.frames import pack_parts
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import ALL, MAIN, PageReader, decode_page

ARTICLE = "<h1>The flood</h1>" + "".join(
    f"<p>The river rose by {number} metres, and the people of the town carried sand to the old bridge.</p>"
    for number in range(13)
)
FRAME = "<nav>" + "".join(f"<a href='/{number}'>Topic {number} of our site</a>" for number in range(200)) + "</nav>"
PAGE = f"<html><head><title> A \n title </title></head><body>{FRAME}<article>{ARTICLE}</article></body></html>"
SIZE = 1 << 21
BOMBS = {
    "nested": "<div>" * (SIZE // 5),
    "nested, with ends that close nothing": "<div></p>" * (SIZE // 9),
    "attributes": "<a " + " ".join(f"a{number}=1" for number in range(180_000)) + ">link",
    "tag starts": "<" * SIZE,
    "many ends": "<style></style" * (SIZE // 14),
    "too long": "<p>word </p>" * (SIZE // 11),
}
STALL_SECONDS = 0.2
TRIES = 15


def reader(content: str = MAIN, deadline_seconds: float = 60, **given: object) -> PageReader:
    """Return a reader with one process, which a test closes."""
    processes = HtmlProcesses(1, deadline_seconds=deadline_seconds)
    return PageReader(content, processes=processes, key=HashKey.public(), **given)  # type: ignore[arg-type] # any


@pytest.fixture(scope="module")
def pages() -> Iterator[PageReader]:
    made = reader()
    yield made
    made.close()


def test_a_page_gives_its_main_content_and_its_title_apart(pages: PageReader) -> None:
    page = pages.read(PAGE)
    assert (page.title, page.degraded) == ("A title", ())
    assert page.text.startswith("The flood\nThe river rose by 0 metres")
    assert "Topic" not in page.text
    assert "title" not in page.text
    footer = "<p>All rights are reserved, and nothing may be copied from here without our leave.</p>" * 400
    long = pages.read(f"<body><article>{ARTICLE * 2}</article><footer>{footer}</footer>")
    assert ("All rights" in long.text, long.degraded) == (False, ())


STORM = "A storm took the roof of the boat house, and the choir sang at the lantern feast of the fishermen."
SMALL, REPLACED = ("main_content_small",), ("charset_replaced",)
# What a browser shows of templates, of XHTML, and of a page of nothing but captions or buttons.
SHOWN_ALONE = (
    "<x-card><template shadowrootmode=open><p>{}</p></template></x-card>",
    "<template><p>no</p></template><p>{}</p>",
    "<x-card><TEMPLATE class=a shadowRootMode='closed'><style>p {{}}</style><p>{}</p></template></x-card>",
    "<?xml version='1.0'?><html><head><title/><script src='a.js' /></head><body><p>{}</p></body></html>",
    "<iframe srcdoc='&lt;p&gt;{}&lt;/p&gt;'></iframe>",
    "<frameset cols=1><frame src=a><noframes><body><p>{}</p></body></noframes></frameset>",
    "<noscript><p>{}</p></noscript>",
    "<textarea>{}</textarea>",
    "\n<?xml version='1.0'?><html><head/><body><iframe src='a'/><textarea\nid='a'/><p>{}</p></body></html>",
    *(f"<figure><img src=a><{name}>{{}}</{name}></figure>" for name in ("figcaption", "button", "label", "object")),
)
READ = (
    *((page.format(STORM), ("", STORM, ())) for page in SHOWN_ALONE),
    ("<title>Error</title><body><p>Not found", ("Error", "Not found", ())),
    ("<nav><a href='/'>Only a menu</a></nav>", ("", "Only a menu", SMALL)),
    ("<p>Br\ufffdcke", ("", "Br\ufffdcke", REPLACED)),
    ("<p>Br&#xFFFD;cke", ("", "Br\ufffdcke", REPLACED)),
    ("<p>Br\ufffdcke".encode(), ("", "Br\ufffdcke", REPLACED)),
)


def test_a_page_without_a_main_content_gives_all_of_its_text(pages: PageReader) -> None:
    assert pages.read("").text == ""
    for page, told in READ:
        assert pages.read(page)[:3] == told
    short = reader(text_max_bytes=9)
    assert short.read("<p>größer als erlaubt")[:3] == ("", "größer ", ("truncated",))
    short.close()


NEWS = (
    "The ferry to the island runs again, the school has a new head, and the market moves to the lower square.",
    "A storm took the roof of the boat house, the choir sang at the feast, and a whale was seen off the point.",
)
HIDDEN = ("navigation", "banner", "sidebar", "menu-item", "popup", "related", "advert", "cookie", "print-only")


def test_a_notice_is_no_main_content(pages: PageReader) -> None:
    words = ("This site is run by volunteers of the board, who answer letters on Fridays. " * 14).split()
    hiding = ["class='hidden-xs'", *(f"{kind}='{name}'" for kind in ("class", "id") for name in HIDDEN)]
    for notice_words, news_times in [(3, 1), (17, 1), (17, 9), (60, 9), (80, 9)]:
        notice = " ".join(words[:notice_words])
        for attribute, news in product(hiding, NEWS):
            html = f"<div {attribute}><h1>News</h1><p>{news * news_times}</p></div><div><p>{notice}</p></div>"
            page = pages.read(f"<!doctype html><html><body>{html}</body></html>")
            assert (news in page.text, page.degraded) == (True, ("main_content_small",))


@pytest.mark.parametrize(
    "aside", ["<noscript><p>{}</p></noscript>", "<textarea rows=3>{}</textarea>", "<NOSCRIPT>{}</NOSCRIPT>"]
)
def test_a_text_aside_is_read_where_a_page_has_nothing_but_menus_beside(aside: str, pages: PageReader) -> None:
    text = " ".join([STORM] * 2)
    page = pages.read(f"<body>{FRAME}{aside.format(text)}<footer>Imprint</footer>")
    assert (page.text, page.degraded) == (text, ())
    for beside in (aside.format(STORM), f"<article>{ARTICLE}</article>{aside.format(text)}"):
        assert STORM not in pages.read(f"<body>{FRAME}{beside}").text
    notice = f"<noscript><p>JavaScript is off. {text}</p></noscript><textarea hidden>{text}</textarea>"
    assert STORM not in pages.read(f"<body>{FRAME}{notice}").text


def test_short_articles_of_a_site_are_read_without_its_frame(pages: PageReader) -> None:
    footer = (
        f"<footer><p>{'The board answers letters on Fridays, and nothing may be copied from here. ' * 9}</p></footer>"
    )
    for news in (NEWS[0], NEWS[0] * 3):
        marked = pages.read(f"<body>{FRAME}<main><article><h1>x</h1><p>{news}</p></article></main>{footer}")
        assert (marked.text, marked.degraded) == (f"x\n{news}", ())
        assert marked.surroundings
    plain = pages.read(f"<body>{FRAME}<div><h1>x</h1><p>{NEWS[0] * 2}</p></div>")
    assert (plain.text, plain.degraded) == (f"x\n{NEWS[0] * 2}", ())
    heading = pages.read(f"<body>{FRAME}<main><h1>{NEWS[0][:30]}</h1></main>")
    assert ("Topic 7" in heading.text, heading.degraded) == (True, SMALL)
    framed = pages.read(f"<body>{FRAME}<main><iframe srcdoc='&lt;p&gt;{STORM}&lt;/p&gt;'></iframe></main>")
    assert framed.text.endswith(f"\n{STORM}")
    headed = pages.read(f"<body><h1>Harbour</h1><iframe srcdoc='<p>{STORM}</p>'></iframe>")
    assert (headed.text, headed.degraded) == (f"Harbour\n{STORM}", SMALL)


def test_what_a_page_shows_until_its_scripts_run_is_named(pages: PageReader) -> None:
    root = "<div id=root></div><script src=app.js></script>"
    for text in (
        "<p>Loading...</p>",
        "<noscript>You need to enable JavaScript to run this app.</noscript>",
        *("<p>加载中", "<p>Lädt …", "<p>JavaScriptを有効にしてください", "<p>Redirecting...", "<p>Yükleniyor"),
    ):
        assert pages.read(f"<title>App</title><body>{text}{root}").degraded == ("shell",)
    assert pages.read(f"<article>{ARTICLE}<p>Loading trucks wait for JavaScript.</p></article>{root}").degraded == ()
    assert pages.read(f"<p>The unloading of the ferry{root}").degraded == ()


def test_comments_are_no_main_content_and_what_is_not_shown_no_text(pages: PageReader) -> None:
    names = ("id=comments", "class=comments", "class='post comment-list'", "id=disqus_thread", "class=respond")
    for tag, name in product(("section", "div"), names):
        page = pages.read(f"<article>{ARTICLE}<{tag} {name}><p>{STORM}</p></{tag}></article>")
        assert (STORM in page.text, bool(page.surroundings)) == (False, True)
    for name in ("class='post comments-open'", "class=no-comments", "class=respond", "id=comment-page"):
        assert pages.read(f"<body>{FRAME}<div {name}><h1>x</h1><p>{NEWS[0] * 2}</p></div>").text == f"x\n{NEWS[0] * 2}"
    beside = f"<div class=more><p>{NEWS[0] * 3}</p></div>"
    for name in ("class=commentary", "id=commentary-1", "class=Commented-text"):
        assert "people of the town" in pages.read(f"<body>{FRAME}<div {name}>{ARTICLE[18:]}</div>{beside}").text
    words = "<p>漢字の本</p>"
    ruby = "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>の本</p>"
    assert pages.read(ruby) == pages.read(words)
    dialog = f"<article>{ARTICLE}</article><dialog{{}}><p>{STORM}</p></dialog>"
    assert [STORM in pages.read(dialog.format(shown)).text for shown in ("", " open")] == [False, True]
    footers = "<footer>Correction: it rose twice.</footer><footer><a href=/t>Tags</a></footer></article><footer>Imprint"
    text = pages.read(f"<article>{ARTICLE}{footers}").text
    assert [word in text for word in ("Correction", "Tags", "Imprint")] == [True, False, False]


def test_the_words_of_scripts_without_blanks_count(pages: PageReader) -> None:
    for text in ["渡轮再次开往岛上,学校有了新校长,市场搬到了下广场。" * 4, "เรือข้ามฟากไปยังเกาะกลับมาให้บริการอีกครั้ง" * 4]:
        notice = "本网站由港口委员会的志愿者运营,他们每周五回信。"
        page = pages.read(f"<body><div class='sidebar'><p>{text}</p></div><div><p>{notice}</p></div>")
        assert text in page.text
        assert page.degraded == ("main_content_small",)
        long = pages.read(f"<body><nav>{notice * 8}</nav><article><p>{text * 8}</p></article>")
        assert (notice in long.text, long.degraded) == (False, ())


SITE = "<body>{above}<article>" + ARTICLE * 2 + "</article>{below}"
COMMENT = "<p>{0} has moved to the lower square, as the harbour board of the town said on Friday.</p>"


ASIDE = f"<aside>{COMMENT}</aside>"
# Pages with one main content, each of which shows something else around it.
AROUND = {
    "alone": "",
    "menu": "<nav>Home News</nav>",
    "other menu": "<nav>Home Sport</nav>",
    "comment": ASIDE.format("The market"),
    "other comment": ASIDE.format("The school"),
    "price": "<aside>Our price today: 12.90</aside>",
    "button": "<button>Buy for 12.90</button>",
    "option": "<select><option>small<option>large</select>",
    "label": "<select><option label='extra small'></select>",
    "field": "<input value='Your name'>",
    "hint": "<textarea placeholder='Your name, please'></textarea>",
    "picture": "<aside><img src=a.png alt='The bridge'></aside>",
    "title": "<title>The flood</title>",
}


def test_what_is_seen_beside_the_main_content_counts(pages: PageReader) -> None:
    site = SITE.removeprefix("<body>")  # where a title belongs to the head
    read = {name: pages.read(site.format(above=around, below="")) for name, around in AROUND.items()}
    assert len({page.text for page in read.values()}) == 1
    seen = {name: page.surroundings for name, page in read.items()}
    assert (seen["alone"], len({*seen.values()})) == ("", len(AROUND))
    assert len({page.parts for page in read.values()}) == len(AROUND)
    same = pages.read(SITE.format(above="<nav>HOME <b>News</b></nav>", below="<script>let time = 1</script>"))
    assert (same.surroundings, same.parts) == (seen["menu"], read["menu"].parts)


def test_the_label_of_the_surroundings_is_the_readers_own(pages: PageReader) -> None:
    html, forged = SITE.format(above="<nav>Home</nav>", below=""), {"surroundings": "forged"}
    full = {f"label-{number}": "x" for number in range(8)}
    labels = [
        pages.with_page(Unsigned(Document(id="1", html=each, labels=given)))[0].document.labels
        for each, given in ((html, forged), (SITE.format(above="", below=""), forged), (html, full))
    ]
    assert [label.keys() for label in labels] == [{"surroundings"}, set(), full.keys()]
    assert len(labels[0]["surroundings"]) == 32


# What is seen of a page in order, each part with whether it is in the main content.
SHOWN = (
    "<!doctype html><title> The  town </title><nav><a href='/a?visit=1'>Home</a> <a href=#top>Top</a></nav><article>"
    f"<h1>The flood</h1>{ARTICLE}<p>It <b>rose</b>, <a href='/b'>they</a> say.<br>So &lt;it&gt; did"
    "<table><tr><td>c<td>d</table><figure><img src='/i.png?2' alt='A &lt;bridge&gt;'>"
    "<figcaption>The bridge</figcaption></figure>"
    "<label>Size <select><option>small<option>large</select></label><button>Buy &amp; go</button>"
    "<input value='1 > 0'><input type=hidden value=no></article><aside hidden>no</aside><svg><text>Map</text></svg>",
    "- The town|- Home Top|- @/a|+ The flood|+ The flood|{}|+ It rose, they say.|+ @/b|+ So <it> did|+ c d|+ A bridge"
    "|+ @/i.png|+ The bridge|+ Size|+ small large|+ Buy & go|+ 1 > 0|+ Map",
)


def test_the_parts_of_a_page_are_all_that_is_seen_in_order(pages: PageReader) -> None:
    html, told = SHOWN
    paragraphs = "|".join(f"+ {line[2:]}" for line in ARTICLE.replace("</p>", "").split("<")[3:])
    told = told.format(paragraphs).split("|")
    assert pages.read(html).parts == pack_parts([(part[2:], part[0] == "+") for part in told], HashKey.public())


def test_the_text_of_a_page_is_its_paragraphs_headings_and_lines(pages: PageReader) -> None:
    found, facts = pages.with_page(Unsigned(Document(id="1", html="<nav>Menu of the site</nav><p>A notice")))
    assert found.degraded == ("main_content_small",)
    assert facts.parts == pack_parts([("Menu of the site", True), ("A notice", True)], HashKey.public())
    whole = reader(ALL)
    page = whole.read("<h1>The  flood</h1><p>It <b>rose</b>.</p><ul><li>one<li>two</ul>a<br>b<table><tr><td>c<td>d")
    bomb = whole.read("<p class=a>" * (SIZE // 11 + 1) + "deep")
    framed = whole.read(PAGE).text
    whole.close()
    parts = ("The flood", "It rose.", "one", "two", "a", "b", "c d")
    assert (page.text, page.parts) == (
        "\n".join(parts),
        pack_parts([(part, True) for part in parts], HashKey.public()),
    )
    assert bomb.parts == b""
    assert "Topic 7 of our site" in framed
    assert "The river rose by 12 metres" in framed
    # Parts that are missing because a page was cut off would look like a change.
    rose = Unsigned(Document(id="a", html="<p>The river rose."))
    assert pages.with_page(rose)[1].parts
    assert pages.with_page(rose._replace(degraded=("truncated",)))[1].parts == b""


def test_without_the_extra_tags_are_stripped_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(HtmlProcesses, "is_available", lambda *_: False)
    bare = PageReader()
    for _ in range(2):
        page = bare.read(PAGE.encode())
        assert page.degraded == ("extraction_fallback",)
        assert "The river rose by 0 metres" in page.text
    assert caplog.text.count("install nearstream[html]") == 1


def unsigned(number: int, **content: object) -> Unsigned:
    return Unsigned(Document(id=str(number), **content))  # type: ignore[arg-type] # any content


async def test_a_batch_keeps_its_order_and_its_texts(pages: PageReader) -> None:
    batch = [
        unsigned(0, html=PAGE),
        unsigned(1, text="<p>no page"),
        unsigned(2, raw=b"<p>one", content_type="text/html"),
        unsigned(3, html="<p class=a>" * (SIZE // 11 + 1) + "deep"),
        unsigned(4, html="<p>two"),
    ]
    read = [found for found, _ in await pages.with_texts(batch, until=math.inf)]
    assert [item.document.id for item in read] == ["0", "1", "2", "3", "4"]
    texts = [(item.document.text or "").strip()[:9] for item in read]
    assert texts == ["The flood", "<p>no pag", "one", "deep", "two"]
    assert [item.degraded for item in read] == [(), (), (), ("extraction_fallback",), ()]
    for item in read:
        assert (item.document.raw, item.document.html, item.document.content_type) == (None, None, None)


async def test_b47_a_page_that_hangs_a_parser_holds_the_event_loop_only_for_a_moment() -> None:
    hasty = reader(deadline_seconds=0.5)
    hasty.read("<p>started")
    for bomb in BOMBS.values():
        for _ in range(TRIES):  # the system may give the processor to others for a moment
            gaps = [0.0]
            watching = asyncio.create_task(watch(gaps))
            await asyncio.sleep(0)
            ((read, _),) = await hasty.with_texts([unsigned(0, html=bomb + "<p>behind")], until=math.inf)
            await asyncio.sleep(0)
            watching.cancel()
            assert read.document.text is not None
            if max(gaps) < STALL_SECONDS:
                break
        assert max(gaps) < STALL_SECONDS
    assert hasty.read("<p>after").text.strip() == "after"
    hasty.close()


async def watch(gaps: list[float]) -> None:
    """Note how long the event loop does not run."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        gaps.append(time.monotonic() - before - 0.005)


async def test_pages_of_a_batch_that_takes_too_long_get_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearstream.workers.crawl.page._IMPATIENT_SECONDS", 4.0)  # enough on a slow machine
    patient = reader(deadline_seconds=30)
    began = time.monotonic()
    bombs = [unsigned(number, html=BOMBS["attributes"]) for number in range(2)]
    read = await patient.with_texts([*bombs, unsigned(9, html=PAGE)], until=time.monotonic())
    assert [found.degraded for found, _ in read] == [("extraction_fallback",)] * 2 + [()]
    assert time.monotonic() - began < 60
    patient.close()


HEADS = {
    "": "",
    "<link rel='canonical' href='https://a.example/x'>": "https://a.example/x",
    '<LINK HREF="/x?utm_source=a" data-x="1" REL="Canonical" />': "https://a.example/x",
    "<link rel=canonical href='/x?a=1&amp;b=2'>": "https://a.example/x?a=1&b=2",
    "<link rel=canonical href=/x><link rel=canonical href='/x'>": "https://a.example/x",
    "<link rel=canonical href=//m.a.example/x>": "https://m.a.example/x",
    "<link rel=canonical href=/x><link rel=canonical href=/z>": "",
    "<!-- <link rel=canonical href=/template> -->": "",
    "<script>var link = '<link rel=canonical href=/x>'</script>": "",
    "<noscript><!-- --></noscript><style>/* <link rel=canonical href=/x> */</style>": "",
    "<link rel=canonical href='https://b.example/x'>": "",
    "<link rel=canonical href='javascript:x'>": "",
    f"<link rel=canonical href='/{'x' * 5_000}'>": "",
}


def test_a_declared_page_is_read_as_a_browser_reads_the_head(pages: PageReader) -> None:
    for head, declared in HEADS.items():
        html = f"<!doctype html><html><head><title>t</title>{head}</head><body><p>text"
        document = Document(html=html, url="https://a.example/y")
        assert pages.with_page(Unsigned(document))[1].declared == declared, head


def test_links_and_images_are_in_the_text_where_that_is_wanted() -> None:
    """Five lists of equal titles and texts, each with links and pictures of its own."""

    def listed(number: int) -> str:
        items = (
            f"<p><a href='/{number}/{item}'>Title of item {item}</a> and what it is about</p>" for item in range(9)
        )
        return f"<html><body><article>{''.join(items)}<img src='/{number}.png' alt='A picture'></article></body></html>"

    for content, texts in (("main", 1), ("all", 1), ("main-links", 5), ("all-links", 5)):
        made = reader(content)
        found = {made.read(listed(number)).text for number in range(5)}
        assert len(found) == texts, content
        assert all((f"/{number}.png" in "".join(found)) == (texts > 1) for number in range(5))
        made.close()


GERMAN = "<p>Über die Brücke geht es nach Süden, größer wird die Stadt."
JAPANESE = "<p>" + "日本語の文章です。今日は天気が良い。" * 5
RUSSIAN = "<p>" + "Это русский текст, который написан в старой кодировке. " * 5
# A page, the charset that it has, and the content type that its server declares.
DECODED = (
    (GERMAN, "utf-8", "text/html"),
    (GERMAN, "utf-8", "text/html; charset=iso-8859-1"),
    (GERMAN, "cp1252", "text/html; charset=ISO-8859-1"),
    (GERMAN, "cp1252", "text/html;Charset=windows-1252"),
    (RUSSIAN, "koi8-r", ""),
    (f"<meta charset=shift_jis>{JAPANESE}", "shift_jis", "text/html"),
    (f'<?xml version="1.0" encoding="shift_jis"?>{JAPANESE}', "shift_jis", "text/html"),
    (f"<meta charset=iso-8859-5>{GERMAN}", "cp1252", "text/html; charset=cp1252"),
)


def test_a_page_is_decoded_whatever_its_server_says(pages: PageReader) -> None:
    for page, encoding, content_type in DECODED:
        assert decode_page(page.encode(encoding), content_type) == (page, False)
    text = GERMAN.removeprefix("<p>")
    assert pages.read(GERMAN.encode("cp1252"), "text/html; charset=iso-8859-1")[:3] == ("", text, ())
    for charset in ["idna", "punycode", "unicode_escape", "base64", "rot13", "utf-7", "undefined"]:
        assert decode_page(b"<p>+ADw-a\\u0041", f"text/html; charset={charset}") == ("<p>+ADw-a\\u0041", False)
