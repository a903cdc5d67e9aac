"""Two days of made-up mail: waves of spam in many dresses, and ham of many kinds, all of which is known."""

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.header import Header
from html import escape

from benchmarks.mail.languages import LANGUAGES, Language

_NAMES = "Anna Bernd Carla David Elif Frank Greta Hugo Ida Jana Karin Louis Maria Nils Olga Paul Rosa Sven Tina Yusuf"
_LATER = "Adler Baker Costa Dvorak Eriksen Fischer Garcia Horvat Ivanov Jansen Keller Lopez Meyer Novak Okafor Petrov"
_HOMOGLYPHS = str.maketrans("aeopcxy", "аеорсху")  # noqa: RUF001 - Cyrillic ones
_LEET = str.maketrans("aeiot", "43107")
_OWN = "firm.example"  # the domain that gets all mail
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Mail:
    """A mail of which it is known what it is."""

    kind: str  # its wave, or the kind of ham
    truth: str  # `spam`, `ham` of persons, or `template`: ham of which a sender sends many
    raw: bytes  # the message
    day: int  # the day on which it comes, 1 or 2
    id: str  # its Message-ID


@dataclass(frozen=True)
class _Parts:
    """What a message has."""

    text: str
    html: str = ""
    attached: tuple[tuple[str, bytes], ...] = ()  # media type and content
    decoy: str = ""  # a part of plain text, before or behind the others
    order: str = "alternative"
    subject: str = ""
    domain: str = ""  # of the sender, by default a new one


class _Draw(random.Random):
    """Draws what mails are made of."""

    def token(self, size: int = 8) -> str:
        """Return letters and digits."""
        return "".join(self.choices("abcdefghijkmnpqrstuvwxyz23456789", k=size))

    def name(self) -> str:
        """Return the name of a person."""
        return f"{self.choice(_NAMES.split())} {self.choice(_LATER.split())}"

    def sentence(self, language: Language) -> str:
        """Return a sentence."""
        said = language.blank.join(self.choice(part) for part in language.parts)
        return said[0].upper() + said[1:] + language.end

    def text(self, language: Language, least: int, most: int) -> str:
        """Return some sentences."""
        return " ".join(self.sentence(language) for _ in range(self.randint(least, most)))

    def words(self, language: Language, count: int) -> str:
        """Return words without sense."""
        known = [word for part in language.parts for phrase in part for word in phrase.split()]
        return " ".join(self.choice(known) for _ in range(count))


def _html(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.split("\n\n"))


def _hidden(style: str) -> Callable[[_Draw, Language, str], _Parts]:
    def dress(draw: _Draw, language: Language, text: str) -> _Parts:
        noise = draw.words(language, 60)
        hidden = f'<div style="{style}">{noise}</div>' if style else f'<div class="x">{noise}</div>'
        sheet = "" if style else "<style>.x{display:none}</style>"
        return _Parts("", f"{sheet}{hidden}{_html(text)}")

    return dress


def _spread(text: str, one: Callable[[str], str]) -> str:
    return " ".join(one(word) if "://" not in word else word for word in text.split(" "))


def _mixed_in(draw: _Draw, language: Language, text: str) -> _Parts:
    said = text.split(language.end)
    return _Parts("".join(f"{each}{language.end} {draw.words(language, 4)} " for each in said))


def _shuffled(draw: _Draw, language: Language, text: str) -> _Parts:
    said = [each for each in text.split(language.end) if each.strip()]
    draw.shuffle(said)
    return _Parts(f"{language.end} ".join(said))


def _typos(draw: _Draw, language: Language, text: str) -> _Parts:
    def one(word: str) -> str:
        at = draw.randrange(len(word)) if word else 0
        return word[:at] + word[at + 1 :] if len(word) > 4 and draw.random() < 0.04 else word

    return _Parts(_spread(text, one))


def _zero_font(draw: _Draw, _language: Language, text: str) -> _Parts:
    def one(word: str) -> str:
        return f'{word[:2]}<span style="font-size:0">{draw.token(2)}</span>{word[2:]}' if len(word) > 3 else word

    return _Parts("", f"<p>{_spread(escape(text), one)}</p>")


def _pdf(draw: _Draw, text: str) -> bytes:
    return (
        f"%PDF-1.4\n%{draw.token()}\n1 0 obj<</Length 44>>stream\n{text}\nendstream\n/ID[<{draw.token(32)}>]".encode()
    )


_Dress = Callable[[_Draw, Language, str], _Parts]
DRESSES: dict[str, _Dress] = {
    "plain": lambda _d, _l, text: _Parts(text),
    "html": lambda _d, _l, text: _Parts(text, _html(text)),
    "typos": _typos,
    "salad20": lambda d, lang, text: _Parts(f"{text}\n\n{d.words(lang, 20)}"),
    "salad60": lambda d, lang, text: _Parts(f"{text}\n\n{d.words(lang, 60)}"),
    "salad-mid": _mixed_in,
    "prose-before": lambda d, lang, text: _Parts(f"{d.text(lang, 6, 8)}\n\n{text}"),
    "hidden-white": _hidden("color:#ffffff"),
    "hidden-1px": _hidden("font-size:1px"),
    "hidden-opacity": _hidden("opacity:0"),
    "hidden-off": _hidden("position:absolute;left:-9999px"),
    "hidden-visibility": _hidden("visibility:hidden"),
    "hidden-class": _hidden(""),
    "zero-font": _zero_font,
    "zero-width": lambda d, _l, text: _Parts(_spread(text, lambda w: w[:1] + "\u200b" + w[1:] if len(w) > 3 else w)),
    "homoglyphs": lambda d, _l, text: _Parts(
        _spread(text, lambda w: w.translate(_HOMOGLYPHS) if d.random() < 0.3 else w)
    ),
    "combining": lambda d, _l, text: _Parts(
        _spread(text, lambda w: w[:2] + "\u0336" + w[2:] if d.random() < 0.3 else w)
    ),
    "letters-apart": lambda d, _l, text: _Parts(_spread(text, lambda w: " ".join(w) if d.random() < 0.2 else w)),
    "leet": lambda d, _l, text: _Parts(_spread(text, lambda w: w.translate(_LEET) if d.random() < 0.3 else w)),
    "decoy-alternative": lambda d, lang, text: _Parts("", _html(text), decoy=d.text(lang, 5, 7)),
    "decoy-mixed": lambda d, lang, text: _Parts(text, decoy=d.text(lang, 5, 7), order="mixed"),
    "shuffled": _shuffled,
    "attached-html": lambda d, lang, text: _Parts(
        d.sentence(lang), attached=(("text/html", f"<html><body>{_html(text)}</body></html>".encode()),), order="mixed"
    ),
    "attached-pdf": lambda d, lang, text: _Parts(d.sentence(lang), attached=(("application/pdf", _pdf(d, text)),)),
    "equal-attachment": lambda d, lang, text: _Parts(
        d.text(lang, 4, 6), attached=(("application/zip", text.split("\n\n")[1].rsplit(" ", 1)[0].encode() * 9),)
    ),
    "picture": lambda d, _l, _t: _Parts("", '<img src="cid:x">', attached=(("image/png", d.randbytes(4000)),)),
    "stolen-thread": lambda d, lang, text: _Parts(
        f"{text}\n\nOn Monday {d.name()} wrote:\n" + "\n".join(f"> {d.sentence(lang)}" for _ in range(8))
    ),
    "one-domain": lambda _d, _l, text: _Parts(text, domain="bulk-sender.example"),
    "five-domains": lambda d, _l, text: _Parts(text, domain=f"sender{d.randrange(5)}.example"),
    "forged-firm": lambda _d, _l, text: _Parts(text, domain="shop-en.example"),
    "short": lambda _d, lang, text: _Parts(lang.end.join(text.split(lang.end)[:2]) + f" {text.split()[-1]}"),
}


def message(draw: _Draw, parts: _Parts, at: datetime, to: str = "") -> tuple[bytes, str]:
    """Return a message and its Message-ID."""
    domain, name = parts.domain or f"{draw.token()}.example", draw.name()
    own_id, mark = f"<{draw.token(16)}@{domain}>", draw.token(20)
    subject = Header(parts.subject or draw.token(6), "utf-8").encode()
    head = (
        f"From: {name} <{name.replace(' ', '.').lower()}@{domain}>\nTo: <{to or draw.token()}@{_OWN}>\nSubject: "
        f"{subject}\n"
        f"Date: {at:%a, %d %b %Y %H:%M:%S} +0000\nMessage-ID: {own_id}\nMIME-Version: 1.0\n"
    )
    pieces = [("text/plain", piece.encode()) for piece in (parts.decoy, parts.text) if piece]
    pieces += [("text/html", parts.html.encode())] if parts.html else []
    pieces += parts.attached
    order = "mixed" if parts.attached else parts.order
    if len(pieces) == 1:
        return (head + _part(*pieces[0])).encode(), own_id
    body = "".join(
        f"--{mark}\n{_part(kind, content, is_attached=(kind, content) in parts.attached)}" for kind, content in pieces
    )
    return f"{head}Content-Type: multipart/{order}; boundary={mark}\n\n{body}--{mark}--\n".encode(), own_id


def _part(kind: str, content: bytes, *, is_attached: bool = False) -> str:
    how = 'Content-Disposition: attachment; filename="f"\n' if is_attached else ""
    encoded = base64.encodebytes(content).decode()
    return f"Content-Type: {kind}; charset=utf-8\n{how}Content-Transfer-Encoding: base64\n\n{encoded}"


def waves(seed: int, copies: int) -> Iterator[list[Mail]]:
    """Yield the waves of the second day, one for each dress, in languages by turns."""
    draw = _Draw(f"waves {seed}")
    for number, (name, dress) in enumerate(DRESSES.items()):
        code = list(LANGUAGES)[number % len(LANGUAGES)] if name not in ("homoglyphs", "leet") else "en"
        language, said = LANGUAGES[code], draw.text(LANGUAGES[code], 7, 9)
        host = draw.token()
        mails = []
        for _ in range(copies):
            link = f"https://{host if number % 3 else draw.token()}.example/{draw.token(12)}"
            greeted = language.greeting.format(name=draw.name().split()[0])
            parts = dress(draw, language, f"{greeted}\n\n{said} {link}")
            mails.append(_mail(draw, f"{name} ({code})", "spam", parts, 2))
        yield mails


def _mail(draw: _Draw, kind: str, truth: str, parts: _Parts, day: int) -> Mail:
    at = datetime(2026, 11, 26, 8, tzinfo=UTC) + day * DAY + timedelta(seconds=draw.randrange(30_000))
    raw, own_id = message(draw, parts, at)
    return Mail(kind, truth, raw, day, own_id)


def ham(seed: int, count: int) -> Iterator[Mail]:
    """Yield ham of both days, `count` of each kind."""
    draw = _Draw(f"ham {seed}")
    for kind, (truth, make) in HAMS.items():
        languages = list(LANGUAGES.items())
        of_kind = count if truth == "ham" else 5 * count
        for number in range(of_kind):
            code, language = languages[number % len(languages)]
            yield _mail(draw, f"{kind}", truth, make(draw, code, language), 1 + (2 * number >= of_kind))


def clones(seed: int, copies: int) -> Iterator[list[Mail]]:
    """Yield waves of phishing mails, each of which copies a notice of a firm word for word, with another link."""
    draw = _Draw(f"clones {seed}")
    for code, language in LANGUAGES.items():
        mails = []
        for _ in range(copies):
            parts = _notice(draw, code, language, host=f"{draw.token()}.example")
            mails.append(_mail(draw, f"clone of a notice ({code})", "spam", parts, 2))
        yield mails


def _notice(draw: _Draw, code: str, language: Language, host: str = "") -> _Parts:
    first, middle, last = language.notice
    domain = f"shop-{code}.example"
    link = f"https://{host or 'track.' + domain}/{draw.token(12)}"
    hours = f"{draw.randint(8, 12)}:00, {draw.randint(13, 18)}:00"
    text = (
        f"{language.greeting.format(name=draw.name())}\n\n{first} {draw.token(10)} {middle} {hours}. {last}\n\n{link}"
    )
    return _Parts(text, _html(text), subject=first, domain=f"{draw.token()}.example" if host else domain)


def _newsletter(draw: _Draw, code: str, language: Language) -> _Parts:
    issue = _Draw(f"issue {code} {draw.randrange(2)}")
    text = f"{language.greeting.format(name=draw.name())}\n\n{issue.text(language, 10, 12)}\n\nhttps://news-{code}.example/u?{draw.token()}"
    return _Parts(text, _html(text), subject="News", domain=f"news-{code}.example")


def _framed(
    first: str, last: str, *, subject: str = "", attached: bool = False, domain: str = ""
) -> Callable[..., _Parts]:
    def make(draw: _Draw, _code: str, language: Language) -> _Parts:
        english = LANGUAGES["en"] if first.isascii() else language
        values = {
            "n": draw.randrange(100, 9999),
            "name": draw.name(),
            "said": draw.sentence(english),
            "t": draw.token(),
        }
        pdf = (("application/pdf", _pdf(draw, draw.token(200))),) if attached else ()
        text = f"{first}\n\n{last}".format(**values)
        return _Parts(text, subject=subject.format(**values), attached=pdf, domain=domain)

    return make


_FOOTER = (
    "This line is below each mail of our house, since the insurance of the harbour asked for it: we answer "
    "letters within "
    "nine days, we never ask for passwords, we water the plants on Mondays, and whoever finds a red umbrella in "
    "the hall may "
    "keep it until its owner comes. Visitors ring twice. Deliveries go through the yard. Complaints go to the "
    "third door."
)
_LIST = (
    "_______________________________________________\nvalley mailing list -- valley@lists.example\nTo "
    "unsubscribe send an "
    "email to valley-leave@lists.example\nhttps://lists.example/lists/valley/\nPlease trim your quotes, answer "
    "below them, "
    "and do not send pictures to the list. The archive is public."
)
_THANKS = ("Thanks!", "Noted.", "Great.", "OK")
_QUOTE = _Draw("quote").text(LANGUAGES["en"], 7, 7)
HAMS: dict[str, tuple[str, Callable[[_Draw, str, Language], _Parts]]] = {
    "personal": ("ham", lambda d, _c, lang: _Parts(
        f"{lang.greeting.format(name=d.name())}\n\n{d.text(lang, 3, 7)}\n\n{lang.closing.format(name=d.name())}")),
    "personal in HTML": ("ham", lambda d, _c, lang: _Parts("", _html(
        f"{lang.greeting.format(name=d.name())}\n\n{d.text(lang, 3, 7)}\n\n{lang.closing.format(name=d.name())}"))),
    "reply with quote": ("ham", lambda d, _c, lang: _Parts(
        f"{d.text(lang, 1, 2)}\n\nOn Monday {d.name()} wrote:\n> {d.text(lang, 3, 4)}", subject="Re: plan")),
    "one line": ("ham", lambda d, _c, lang: _Parts(d.sentence(lang), subject=d.token())),
    "thanks over one quote": ("ham", lambda d, _c, _l: _Parts(
        "", f"<p>{d.choice(_THANKS)}</p>"
        f'<div class="gmail_quote"><div>On Monday {d.name()} wrote:</div><blockquote class="gmail_quote">'
        f"<p>{_QUOTE}</p></blockquote></div>", subject="Re: Notice", domain=_OWN)),
    "yes to an order": ("ham", _framed("Yes", "", subject="Re: Order {n}")),
    "invoice of a small firm": ("ham", _framed(
        "Sehr geehrte Damen und Herren,", "anbei erhalten Sie unsere Rechnung Nr. {n} vom 2.11.2026 über {n}.80 "
        "EUR. Bitte "
        "überweisen Sie den Betrag bis zum 4.12.2026 ohne Abzug.\n\nFür Rückfragen stehe ich gerne zur "
        "Verfügung.\n\n{name}",
        subject="Rechnung {n}", attached=True)),
    "autoreply": ("ham", _framed(
        "Sehr geehrte Damen und Herren,", "vielen Dank für Ihre Nachricht. Ich bin bis zum {n}.12.2026 nicht im "
        "Büro. Ihre "
        "E-Mail wird nicht weitergeleitet. In dringenden Fällen wenden Sie sich an {name}.", subject="Abwesend")),
    "order by mail": ("ham", _framed(
        "Hello,", "I would like to order {n} pieces of article {t} as in your catalogue. Please send them to "
        "{name}, {n} "
        "Harbour Road, and the invoice too.\n\nBest wishes\n{name}", subject="Order {n}")),
    "contact form": ("ham", _framed(
        "A visitor has sent a message through the contact form of the website.\n\nName: {name}\nPhone: {n}{n}\nPage: "
        "https://www.firm.example/contact", "Message:\n{said}\n\nPlease answer the visitor directly. Do not "
        "reply to this "
        "message, because nobody reads the mailbox of the web server.", subject="Contact form", domain=_OWN)),
    "mailing list": ("ham", _framed("{said}\n\n{name}", _LIST, subject="[valley] {t}")),
    "advertisement of a provider": ("ham", _framed(
        "{said}", "--- Sent with the free mail of the lighthouse company. Get your own address with room for a "
        "thousand "
        "letters, and the first year is on us: https://freemail.example/join", subject="{t}")),
    "footer of a firm": ("ham", _framed("{said}\n\n{name}", _FOOTER, subject="{t}", domain="footer.example")),
    "as agreed, with a file": ("ham", _framed(
        "Dear colleague,", "please find attached the documents as agreed, and tell me if any is missing.\n\n{name}",
        subject="Documents", attached=True)),
    "voicemail": ("ham", _framed(
        "You have a new voice message.", "From: {name}, +44 {n} {n}\nLength: 0:{n} minutes\nThe recording is "
        "attached. To "
        "listen to all of your messages dial 1 on your phone.", subject="Voice message from {name}", attached=True)),
    "formal frame": ("ham", lambda d, _c, lang: _Parts(
        f"{lang.greeting.format(name=d.name())}\n\n{lang.notice[2][:30]} "
        f"{d.sentence(lang)}\n\n{lang.closing.format(name=d.name())}")),
    "notice of a firm": ("template", _notice),
    "newsletter": ("template", _newsletter),
    "password reset": ("template", _framed(
        "Hello {name},", "somebody asked for a new password of your account at the library. If it was you, "
        "follow the link "
        "within an hour, else ignore this message, and nothing changes: https://library.example/reset/{t}{t} "
        "The library "
        "never asks for your password by mail or phone. Opening hours and the rules for lending are on our "
        "website, and the "
        "desk in the hall helps you with all other questions from Tuesday to Saturday.",
        subject="New password", domain="library.example")),
    "invitation": ("template", _framed(
        "You have been invited to the following event.\n\nTitle: {said}\nWhere: Room {n}\nWho: {name}",
        "Event details: https://calendar.example/event?eid={t}{t}\n\nYou receive this courtesy email because "
        "you are an "
        "attendee of this event. To stop receiving future updates for this event, decline this event. "
        "Alternatively you can "
        "sign up for an account and control your notification settings for your entire calendar. Forwarding "
        "this invitation "
        "could allow any recipient to send a response to the organiser and be added to the guest list.",
        subject="Invitation", domain="calendar.example")),
}  # fmt: skip
