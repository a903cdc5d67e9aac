"""What an office writes below every mail makes no two mails copies."""

import time
from datetime import UTC, datetime

import pytest

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.notices import split_notices
from nearstream.streams.matching.looking_up import find, newcomer
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import read_message
from tests.support.matched import look_up

KEY = HashKey.from_secret(b"of this deployment")
SCHEME = preset("mail", KEY)
NO_HTML = HtmlProcesses(0, deadline_seconds=0)
RECEIVED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BODIES = (
    "Can you send me the revised budget for the north wing by Thursday please?",
    "The crane inspection moved to Friday morning, so bring helmets and the old log book.",
    "Our new colleague Petra starts on Monday and will share the office with Jonas.",
    "I booked the train at seven forty, and we meet the client at noon in Graz.",
    "Lunch is on me today because the audit went through without a single finding.",
    "Please cancel the order of blue pallets, the warehouse found forty in shed nine.",
    "The printer on the second floor is out of toner again, could somebody call support?",
    "Attached are the minutes, the board wants another round on the pension question.",
    "Has anyone seen the key of the archive, the surveyor needs it this afternoon?",
    "We lost the tender in Porto by a hair, let us talk about prices tomorrow.",
    "The twins are ill, so I will work from home until Wednesday at least.",
    "Marketing asks for three photos of the ferry without people on the deck.",
)
# Each of 100 words or more, as below the mails of a real office.
KNOWN = (
    "This e-mail and any attachments are confidential and may be legally privileged. They are intended\n"
    "solely for the use of the individual or entity to whom they are addressed. If you are not the\n"
    "intended recipient, you must not copy, forward, disclose or use any part of it. If you have received\n"
    "this message in error, please notify the sender immediately by return e-mail and delete it and all\n"
    "copies from your system. Internet communications cannot be guaranteed to be timely, secure, error\n"
    "free or virus-free. The sender does not accept liability for any errors or omissions. Please\n"
    "consider the environment before printing this e-mail."
)
UNKNOWN = (
    "Harbour Crane Services is a partnership of ship owners from four towns. Our yard accepts deliveries\n"
    "between six in the morning and three in the afternoon, except on feast days. Drivers are asked to\n"
    "wear bright vests and to follow the orders of the gate keeper at all times. Parking on the quay\n"
    "costs nine crowns an hour. For breakdowns of lifting gear call the night desk, which never sleeps.\n"
    "We sponsor the rowing club, the brass band and the winter market. Prices in this letter exclude\n"
    "duty, and are valid for a month. Goods that are left for longer than ten days are sold by auction\n"
    "for the benefit of the sailors' fund."
)
# Notices by language, as the sources of the phrases show them.
NOTICES = {
    "English": KNOWN,
    "Japanese": "このメールおよび添付ファイルは、宛先の方のみを対象としたものであり、機密情報を含む場合があります。"
    "誤って受信された"
    "場合は、直ちに送信者にご連絡のうえ、本メールを削除してください。無断での複製、開示、配布は固く禁じられています。",
    "German": "Diese E-Mail kann vertrauliche und/oder rechtlich geschützte Informationen enthalten. Wenn Sie "
    "nicht der beabsichtigte Empfänger sind oder diese E-Mail irrtümlich erhalten haben, informieren "
    "Sie bitte den Absender.",
    "French": "Ce message et toutes les pièces jointes sont établis à l\u2019intention exclusive de ses "
    "destinataires et sont confidentiels. Si vous recevez ce message par erreur, merci de le "
    "détruire.",
    "Spanish": "Este mensaje y sus archivos adjuntos van dirigidos exclusivamente a su destinatario. Si usted no"
    " es el destinatario final por favor elimínelo.",
    "Italian": "Le informazioni contenute in questo messaggio e negli eventuali allegati sono riservate ed a uso"
    " esclusivo del destinatario. Qualora il messaggio in oggetto Le fosse pervenuto per errore, La "
    "invitiamo ad eliminarlo.",
    "Dutch": "De inhoud van dit bericht is alleen bestemd voor de geadresseerde. Als u dit bericht onbedoeld "
    "heeft ontvangen verzoeken wij u het te vernietigen en de afzender te informeren.",
    "Portuguese": "Essa mensagem é destinada exclusivamente ao seu destinatário e pode conter informações "
    "confidenciais.",
    "Polish": "Treść tej wiadomości zawiera informacje przeznaczone tylko dla adresata. Jeżeli nie jesteście "
    "Państwo jej adresatem, bądź otrzymaliście ją przez pomyłkę, prosimy o powiadomienie o tym "
    "nadawcy.",
    "Danish": "Denne e-mail kan indeholde fortrolige oplysninger. Hvis du har modtaget denne e-mail ved en "
    "fejl, bedes du slette den.",
}


def signed(number: int, text: str, domain: str = "office.example") -> Signature:
    raw = (
        f"From: p{number}@{domain}\nMessage-ID: <{number}@a>\nDate: Mon, 02 Mar 2026 08:{number:02d}:00 +0000\n"
        f"Subject: {number}\nContent-Type: text/plain; charset=utf-8\n\n{text}\n"
    )
    mail = read_message(raw.encode(), RECEIVED, KEY, NO_HTML)
    return Signer(SCHEME, KEY).sign(mail.document)


async def verdicts(*mails: Signature) -> list[str]:
    matcher, found = Matcher(local_store(), SCHEME, KEY), []
    for mail in mails:
        verdict = (await matcher.match(mail)).verdict
        assert verdict is not None
        found.append(f"{verdict.verdict} {verdict.family.ordinal} {verdict.events}")
    return found


SHORT = UNKNOWN[:280]  # below which mails would be versions of each other


@pytest.mark.parametrize("notice", [UNKNOWN, SHORT, *(f"{notice} {notice}" for notice in NOTICES.values())])
async def test_mails_above_one_notice_are_no_copies(notice: str) -> None:
    mails = [signed(number, f"{body}\n\n{notice}") for number, body in enumerate(BODIES)]
    for said in await verdicts(*mails):
        assert said in ("unique 1 0", "overlap 1 0")
    store = local_store()
    for mail in mails[:-1]:
        await Matcher(store, SCHEME, KEY).match(mail)
    asked = newcomer(mails[-1], SCHEME, KEY, Thresholds())
    # It joins no family, so no label of another mail counts for it, and no number of mails makes it bulk.
    assert find(asked, await look_up(store, asked)).joins is None


async def test_copies_above_one_notice_are_copies() -> None:
    body = " ".join(BODIES)
    first, second, other = (f"{text}\n\n{KNOWN}" for text in (body, f"{body} Thanks!", BODIES[0]))
    assert await verdicts(signed(1, first), signed(2, first), signed(3, second), signed(4, other)) == [
        *("unique 1 0", "exact_duplicate 2 1", "near_duplicate 3 1", "containment 1 1"),
    ]
    # Equal texts above other notices are not equal.
    changed = first.replace("forward, ", "")
    assert await verdicts(signed(1, first), signed(2, changed)) == ["unique 1 0", "near_duplicate 2 1"]


async def test_one_text_below_other_words_is_a_copy_if_it_comes_from_elsewhere() -> None:
    spams = [signed(number, f"{BODIES[number]}\n\n{UNKNOWN}", f"d{number}.example") for number in (1, 2)]
    assert (await verdicts(*spams))[1] == "near_duplicate 2 1"


async def test_a_letter_below_two_headings_is_a_copy() -> None:
    letter = "\n".join(f"{body} {body[::-1]}" for body in BODIES)
    mails = [signed(number, f"{BODIES[number].upper()}\n\n{letter}") for number in (1, 2)]
    assert (await verdicts(*mails))[1] == "near_duplicate 2 1"


def test_notices_are_known_by_their_phrases() -> None:
    for language in NOTICES:
        split = split_notices(f"{BODIES[0]}\nThanks\n\n{NOTICES[language]}\n\n{BODIES[1]}")
        assert split.own.split() == f"{BODIES[0]} Thanks {BODIES[1]}".split()
        assert split.common == NOTICES[language]


def test_a_notice_begins_where_a_text_ends_without_a_blank_line() -> None:
    assert split_notices(f"See you at nine\n{KNOWN}").own.strip() == "See you at nine"
    assert split_notices(f"{BODIES[0]} {KNOWN}".replace("\n", " ")).own.strip() == BODIES[0]
    quoted = "\n".join(f"> {line}" for line in (BODIES[0], "", *KNOWN.split("\n")))
    assert split_notices(quoted).own.split() == f"> {BODIES[0]}".split()


def test_texts_about_such_things_stay() -> None:
    for text in [
        "Smoking is strictly prohibited in the hall, and distribution of leaflets is too.",
        "I got your parcel in error and will send it back to the addressee.",
        "We are registered in England since June, and the views from the office are great.",
        "Please keep this confidential, the registered letter is for the recipient only.",
        "This message is confidential. " + " ".join(BODIES),  # one phrase hides no whole letter
        KNOWN + " x" * 32_768,
        "",
    ]:
        assert split_notices(text) == (text, "")


def test_a_signature_block_is_no_text_of_the_sender() -> None:
    assert split_notices("Yes\n-- \nAnna\n+49 123") == ("Yes\n", "Anna\n+49 123")
    for hidden in (BODIES[0] + "\n" + "\n".join("abcdefghijklmnop"), "a" * 1001):
        assert not split_notices(f"Yes\n-- \n{hidden}").common


def test_no_text_takes_long() -> None:
    for text in [
        *("this e mail " * 2730, "not the intended recipien " * 1260, "a\n" * 16_000, "-- \n" * 8_000),
        *("e mail, " * 4_000, "abcdefghij klmnopqrst\n\n" * 1400, "diese mail ist " * 2180, "addressee\n\n" * 2_970),
        *("received this message " * 1480, "\n" * 32_000, "a" * 32_000, "views \n" * 4_000, "solely. " * 4_000),
    ]:
        began = time.process_time()
        split_notices(f"{text[:32_740]} recipient")
        assert time.process_time() - began < 1
