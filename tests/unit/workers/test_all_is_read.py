"""Each way of hiding or losing text, and what is read or said of it."""

from datetime import UTC, datetime
from itertools import product

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.notices import split_notices
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import ALL, MAIN, PageReader
from nearstream.workers.mail.message import THREAD, WHOLE, MailRules, read_message

KEY = HashKey.public()
RECEIVED = datetime(2026, 3, 2, tzinfo=UTC)
TEXT = "The harbour office will close its north gate on Tuesday because the crane needs a new cable."
LONG = " ".join([TEXT] * 9)


def mail(body: str, processes: HtmlProcesses, kind: str = "html", content: str = WHOLE) -> str:
    raw = f"Subject: a\nContent-Type: text/{kind}; charset=utf-8\n\n{body}\n".encode()
    found = read_message(raw, RECEIVED, KEY, processes, rules=MailRules(content))
    assert not set(found.degraded) & {"truncated", "extraction_fallback"}
    return found.document.text or ""


SIZE = 2_300_000
BEFORE = {
    "picture": f'<img src="data:image/png;base64,{"iVBORw0KGgo" * (SIZE // 11)}">',
    "picture with tags": f"<img src='data:image/svg+xml,<svg>{'<g>' * (SIZE // 3)}'>",
    "font": f"<style>@font-face {{src: url(data:font/woff2;base64,{'AAAA' * (SIZE // 4)})}}</style>",
    "script": f"<script>let a = '{'<p> x ' * (SIZE // 6)}'</script>",
    "comment": f"<!-- {'<p> - <!-- ' * (SIZE // 11)} -->",
    "drawing": f"<svg><path d='{'M10 20 L30,40 ' * (SIZE // 14)}'/></svg>",
    "blanks": " \n" * (SIZE // 2),
}


@pytest.mark.parametrize("name", BEFORE)
def test_text_behind_much_markup_is_read(name: str, processes: HtmlProcesses) -> None:
    html = f"{BEFORE[name]}<p>{TEXT}</p>"
    page = PageReader(processes=processes).read(html)
    assert (page.text, page.degraded) == (TEXT, ())
    assert mail(html, processes).strip() == TEXT


def test_what_is_too_much_is_said(processes: HtmlProcesses) -> None:
    page = PageReader(processes=processes).read(f"<p>{'word ' * (SIZE // 5)}</p><p>{TEXT}</p>")
    assert page.degraded == ("extraction_fallback", "truncated")


PLACES = (
    *(f"<{name}>{{}}</{name}>" for name in ("label", "button", "textarea", "object", "p", "aside", "h1")),
    *("<select><option>{}</select>", "<select><optgroup label={}></select>", "<svg><text>{}</text></svg>"),
    *("<figure><img src=a><figcaption>{}</figcaption></figure>", "<input value={}>", "<input type=a placeholder={}>"),
    *("<textarea placeholder={}></textarea>", "<iframe srcdoc='<p>{}'></iframe>", "<select><option label={}></select>"),
)
PAGES = ("<nav>Home</nav><p>Closed.</p>{}", f"<nav>Home</nav><article><p>{LONG * 3}</p></article>{{}}")
LABELS: tuple[dict[str, str], ...] = ({}, {f"label-{number}": "x" for number in range(8)})


@pytest.mark.parametrize("content", [MAIN, ALL])
def test_all_words_that_are_seen_on_a_page_are_compared_or_it_says_so(content: str, processes: HtmlProcesses) -> None:
    reader = PageReader(content, processes=processes, key=KEY)

    def told(html: str, labels: dict[str, str]) -> tuple[str, str, bool]:
        found = reader.with_page(Unsigned(Document(id="1", html=html, labels=labels)))[0]
        text, seen = found.document.text or "", found.document.labels.get("surroundings", "")
        return text, seen, "content_unread" in found.degraded

    for place, page, labels in product(PLACES, PAGES, LABELS):
        one, other, again = (told(page.format(place.format(word)), labels) for word in ("north", "south", "north"))
        assert one == again
        assert one[:2] != other[:2] or (labels and one[2]), (place, page)
        assert not (one[2] and not labels)
    assert told("<p>Closed.</p><input type=hidden value=1><button></button>", {}) == ("Closed.", "", False)


SPLIT = ("<span style='font-size:0'>{}</span>", "<b style='display:none'>{}</b>", "<i hidden>{}</i>")
FILLERS = ("\x01", "\x7f", "\x81", "\xad", "\u200b", "\ufff9", "\ufffe", "\ue001\ue002", "\u0378", "\U0010ffff")
SHOWN_IN_MAIL = ("<input value={}>", "<select><option>{}</select>", "<textarea>{}</textarea>")


def test_all_words_that_are_seen_in_a_mail_are_read(processes: HtmlProcesses) -> None:
    for place in (*PLACES[:5], *SHOWN_IN_MAIL, "<svg><text>{}</text></svg>"):
        assert "north" in mail(f"<p>{TEXT[:20]}</p>{place.format('north')}<p>{LONG}</p>", processes).split()[:6], place
    fillers = [place.format(filler) for place, filler in product(SPLIT, ("q", " ", "q q"))] + [*FILLERS]
    for filler in fillers:
        assert mail(f"<p>{LONG.replace('north', f'no{filler}rth')}</p>", processes).split() == LONG.split(), filler
    for filler in FILLERS:
        assert mail(LONG.replace("north", f"no{filler}rth"), processes, "plain").split() == LONG.split(), filler
        assert mail(f"no {filler} rth {LONG}", processes, "plain").split()[:1] == ["no"]


PHRASES = "This message is confidential. It is intended solely for the use of the addressee. Delete it."
HIDING = (
    *(f"-- \n{TEXT}", f"-- \n{LONG[:900]}", f"Hi Anna,\n-- \n{LONG[:900]}", f"\n\n--\n{TEXT}\n-- \n{TEXT}"),
    *(f"{PHRASES} {PHRASES} {PHRASES} {LONG}", f"Hello\n\n{PHRASES} {PHRASES} {PHRASES} {LONG}\n-- \nAnna"),
)


@pytest.mark.parametrize("content", [WHOLE, THREAD])
def test_no_line_keeps_a_text_from_being_compared(content: str, processes: HtmlProcesses) -> None:
    for body in (*HIDING, f"> {TEXT}\n> {TEXT}"):
        text = mail(body, processes, "plain", content)
        assert TEXT in split_notices(text).own, body
    for body in ("-- \nAnna", PHRASES, f"Yes\n\n{PHRASES}\n-- \nAnna Bell\nLong Quay 14"):
        assert mail(body, processes, "plain", content).startswith("short message ")
