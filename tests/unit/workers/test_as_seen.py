"""Mails and pages are read as a person sees them: each way of hiding beside a plain copy."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.notices import split_notices
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.mail.message import THREAD, WHOLE, Mail, MailRules, read_message

KEY = HashKey.from_secret(b"5e" * 16)
RECEIVED = datetime(2026, 3, 2, tzinfo=UTC)
TEXT = "The harbour office will close its north gate on Tuesday because the crane needs a new cable."
JUNK = "ledger violet sparrow candle"


def mail(processes: HtmlProcesses, body: str, kind: str = "text/html", content: str = WHOLE) -> Mail:
    raw = f"From: a@one.example\nSubject: a\nContent-Type: {kind}; charset=utf-8\n\n{body}\n".encode()
    return read_message(raw, RECEIVED, KEY, processes, rules=MailRules(content))


def text(found: Mail) -> str:
    return " ".join((found.document.text or "").split())


STYLES = (
    *("display:none", "DISPLAY : none !important", "visibility:hidden", "opacity:0", "opacity:0.01", "font-size:0"),
    *("font-size:1px", "font-size:.1em", "font:0/0 a", "font:1px/1px Arial", "position:absolute;left:-9999px"),
    *("position:absolute;top:-999em", "margin-left:-5000px", "text-indent:-9999px", "max-height:0;overflow:hidden"),
    *("width:0;height:0;overflow:hidden", "height:1px;overflow:hidden", "color:#fff", "color:white", "color:#fefefe"),
    *("color:transparent", "color:rgba(0,0,0,0)", "color:#336699;background:#336699", "color:rgb(255, 255, 255)"),
    *("transform:scale(0)", "clip:rect(0,0,0,0)", "clip-path:inset(100%)", "visibility:/**/collapse", "mso-hide:all"),
    *("zoom:0", "color: red; DISPLAY : none ;"),
)
HIDDEN = (
    *(f'<p>{TEXT}</p><div style="{style}">{JUNK}</div>' for style in STYLES),
    *(f"<style>.x {{{style}}}</style><p>{TEXT}</p><div class='x'>{JUNK}</div>" for style in STYLES),
    *(f"<p>{TEXT}</p>{junk}" for junk in (f"<div hidden>{JUNK}</div>", f"<title>{JUNK}</title>")),
    f"<style>@media screen {{ div > i {{display:none}} }}</style><p>{TEXT}</p><div><i>{JUNK}</i></div>",
    f"<style>.a p, .x {{display:none}} div {{display:block}}</style><p>{TEXT}</p><div class=x>{JUNK}</div>",
    f"<style>td, i {{color: #FFF}}</style><table><tr><td>{JUNK}</table><p>{TEXT}</p>",
    f"<div style='background:#012'><p style='color:white'>{TEXT}</p><p style='color:#001020'>{JUNK}</p></div>",
    f"<table bgcolor=#eeeeee><tr><td><font color=#eeeeee>{JUNK}</font></table><p>{TEXT}</p>",
    f"<div style='color:#fff'>{JUNK}<p style='color:#000'>{TEXT}</p></div>",
    f"<div style='font-size:0'>{JUNK}<p style='font-size:12px'>{TEXT}</p></div>",
    f"<p>{TEXT.replace('office', 'off<b style=font-size:0>q</b>i<i style=opacity:0>q</i>ce')}</p>",
)


@pytest.mark.parametrize("html", HIDDEN)
def test_hidden_text_is_not_read(html: str, processes: HtmlProcesses) -> None:
    assert text(mail(processes, html)) == TEXT
    assert PageReader(processes=processes).read(html).text == TEXT


SEEN = (
    *("font-size:0.9em", "list-style-display:none", "zoom:1.1", "display:block"),
    *("opacity:0.9", "color:#fff;background:#036", "font-size:12px", "left:10px", "width:0", "font:bold 12px Arial"),
    *("color:#999", "background:url(a.png);color:#fff", "max-height:none", "margin:0 auto", "text-indent:1em"),
    *("line-height:0.9", "background:#000 !important;color:#fff", "width:33.33333%;margin-left:8.33333%"),
    *("max-height:1px", "margin-top:1000px", "margin:0 auto 1200px", "left:-9999px", "position:relative;top:1200px"),
    *("opacity:0;animation:fade 1s forwards", "background-image:var(--x);color:#fff"),
)


@pytest.mark.parametrize(
    "html",
    [
        *(f"<div style='{style}'>{JUNK}</div>" for style in SEEN),
        f"<style>.dark {{background:#000}}</style><div class=dark><p style='color:#fff'>{JUNK}</p></div>",
        f"<style>@media (max-width:9px) {{ p {{opacity:0}} }} @media print {{p {{opacity:0}}}}</style><p>{JUNK}",
        f"<!--[if mso]><style>p {{display:none}}</style><![endif]--><p>{JUNK}</p>",
        f"<style>html {{background:#000; color:#eee}}</style><p style='color:#fff'>{JUNK}</p>",
        f"<style>p.x {{display:block}} .x {{display:none}} #y.x {{display:none}}</style><p class=x>{JUNK}</p>",
        f"<body bgcolor=black text=white><p>{JUNK}</p></body>",
        f"<table bgcolor=black><tr><td><font color=white>{JUNK}</font></table>",
        f"<table background=a.png><tr><td style='color:#fff'>{JUNK}</table>",
        f"<div style='font-size:0'><font size=3>{JUNK}</font></div>",
        f"<div style='visibility:hidden'><p style='visibility:visible'>{JUNK}</p></div>",
    ],
)
def test_text_that_is_seen_is_read(html: str, processes: HtmlProcesses) -> None:
    assert text(mail(processes, f"<p>{TEXT}</p>{html}")) == f"{TEXT} {JUNK}"


def test_text_is_read_if_hardly_a_word_of_many_is_seen(processes: HtmlProcesses) -> None:
    assert text(mail(processes, f"<p>Hello.</p><div style='opacity:0'>{TEXT * 4}</div>")) == f"Hello. {TEXT * 4}"


def test_pages_that_differ_in_what_styles_may_hide_are_not_equal(processes: HtmlProcesses) -> None:
    html = f"<p>{TEXT}</p><div style='opacity:0'>%s</div>"
    reader = PageReader(processes=processes, key=KEY)
    one, other, plain = (
        reader.read(each) for each in (html % JUNK, html % JUNK.upper().replace("LEDGER", "x"), f"<p>{TEXT}</p>")
    )
    assert one.text == other.text == plain.text == TEXT
    assert len({each.surroundings for each in (one, other, plain)}) == 3


def test_a_mail_of_hidden_words_alone_is_read(processes: HtmlProcesses) -> None:
    for hidden in (f"<div style='opacity:0'>{TEXT}</div>", f"<noscript>{TEXT}</noscript>"):
        assert text(mail(processes, hidden)) == TEXT
    assert text(mail(processes, f"<p>{TEXT}</p><noscript><p>{JUNK}</p></noscript>")) == TEXT


def test_styles_of_a_page_with_scripts_may_change(processes: HtmlProcesses) -> None:
    html = f"<script>show()</script><p>{TEXT}</p><div style='opacity:0'>{JUNK}</div>"
    assert PageReader(processes=processes).read(html).text == f"{TEXT}\n{JUNK}"


FOOTER = "You received this message because you are subscribed to the list of the harbour. " * 3
OWN = "Please send me the list of the new lamps for the quay before Friday noon."
SIGNED = (
    f"<div>{OWN}<p></p>\n\n-- <br />\n{FOOTER}<br></div>",
    f'<div>{OWN}<br><div><span class="gmail_signature_prefix">-- </span><br><div>{FOOTER}</div></div></div>',
    f"<table><tr><td>{OWN}</td></tr><tr><td>--</td></tr><tr><td>{FOOTER}</td></tr></table>",
)


@pytest.mark.parametrize("html", SIGNED)
def test_a_signature_of_html_is_found(html: str, processes: HtmlProcesses) -> None:
    split = split_notices(mail(processes, html).document.text or "")
    assert (split.own.split(), split.common.split()) == (OWN.split(), FOOTER.split())


ANSWERS = (
    f'<div>{OWN}</div><div class="gmail_quote"><div>On Tuesday A wrote:</div><blockquote>{TEXT}</blockquote></div>',
    f"<p>{OWN}</p><blockquote type=cite><p>{TEXT}</p><p>{TEXT}</p></blockquote>",
    f"<p>{OWN}</p><div><b>From:</b> A<br><b>Sent:</b> Monday<br><b>To:</b> B<br><b>Subject:</b> c</div><p>{TEXT}</p>",
    f"<p>{OWN}</p><p>-----Urspr\u00fcngliche Nachricht-----<br>Von: A<br>Gesendet: Montag<br>An: B</p>{TEXT}",
)


@pytest.mark.parametrize("html", ANSWERS)
def test_the_answered_message_is_no_own_word_of_a_thread(html: str, processes: HtmlProcesses) -> None:
    assert text(mail(processes, html, content=THREAD)) == OWN
    assert TEXT in text(mail(processes, html))


def multipart(processes: HtmlProcesses, kind: str, *contents: tuple[str, str]) -> Mail:
    body = "".join(f"--=_b\nContent-Type: {head}\n\n{content}\n" for head, content in contents) + "--=_b--\n"
    return mail(processes, body, f'multipart/{kind}; boundary="=_b"')


OWNS = (
    OWN,
    "Could the boat wait until the tide turns, or must it leave at seven?",
    "Thank you for the maps, I have sent them on to the pilots today.",
    "The third buoy is loose again and drifts towards the old stone pier.",
    "We agreed on nine barrels of oil and two coils of the thin rope.",
    "Nobody answered the radio last night between one and three, please check why.",
)


@pytest.mark.parametrize("begin", ["<p></p>\n\n-- <br />\n", '<span class="gmail_signature_prefix">-- </span><br>'])
async def test_short_mails_above_one_footer_are_no_copies(begin: str, processes: HtmlProcesses) -> None:
    scheme, store = preset("mail", KEY), local_store()
    for number, own in enumerate(OWNS):
        html = f"<div>{own}<br>{begin}{FOOTER}<br></div>"
        mails = multipart(processes, "alternative", ("text/plain", f"{own}\n\n-- \n{FOOTER}"), ("text/html", html))
        document = replace(mails.document, id=str(number), labels={})
        verdict = (await Matcher(store, scheme, KEY).match(Signer(scheme, KEY).sign(document))).verdict
        assert verdict is not None
        assert verdict.verdict in ("unique", "overlap")


def test_an_attached_page_and_a_second_text_are_read(processes: HtmlProcesses) -> None:
    for kind in ("text/html", 'application/octet-stream; name="a.html"'):
        attached = (f"{kind}\nContent-Disposition: attachment", f"<p>{TEXT}</p>")
        found = multipart(processes, "mixed", ("text/plain", OWN), ("text/plain", JUNK), attached)
        assert text(found) == f"{OWN} {JUNK} {TEXT}"
        assert "attachments" not in found.document.labels


def test_an_alternative_that_says_other_things_is_told(processes: HtmlProcesses) -> None:
    html, plain = ("text/html", f"<p>{TEXT}</p>"), ("text/plain", TEXT)
    decoy = ("text/plain", "Ledger violet sparrow candle under seven grey stones beside rivers")
    for alternatives, is_told in (((plain, html), False), ((decoy, html), True), ((html, decoy), True)):
        found = multipart(processes, "alternative", *alternatives)
        assert (text(found), "alternatives_differ" in found.degraded) == (TEXT, is_told)


def test_the_sites_of_links_that_are_seen_are_labels(processes: HtmlProcesses) -> None:
    def links(html: str) -> str:
        return mail(processes, f"<p>{TEXT}</p>{html}").document.labels.get("links", "")

    bank = links("<a href='https://www.bank.example/login'>in</a>")
    assert len(bank) == 12
    assert links("<a href='HTTP://id7.Bank.example'><img src=a></a>") == bank
    assert links("https://pay.bank.example/a") == bank
    assert (
        links("<a href='https://bank.example@evil.example/'>in</a>") == links("<a href=//evil.example>in</a>") != bank
    )
    assert links("<a href='https://bank.example/'></a><p hidden><a href=//bank.example>in</a>") == ""
    many = links("".join(f"<a href='https://s{number}.example'>in</a>" for number in range(20)))
    assert (many.count(" "), sorted(many.split())) == (7, many.split())


def test_a_host_for_each_recipient_makes_no_other_short_mail(processes: HtmlProcesses) -> None:
    bodies = (f"Sign here: https://{host}/x" for host in ("a7.shop.example", "b9.shop.example", "evil.example"))
    one, two, other = (text(mail(processes, body, "text/plain")) for body in bodies)
    assert one == two != other
