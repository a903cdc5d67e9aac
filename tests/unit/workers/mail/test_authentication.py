"""Whom the receiving mail server has authenticated, and what a sender cannot forge."""

from datetime import UTC, datetime

import pytest

from nearstream.schemas.documents.document import SENDER_DOMAIN_LABEL, UNPROVEN
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.headers import address_hash
from nearstream.workers.mail.message import MailRules, read_message

KEY = HashKey.from_secret(b"5e" * 16)
NO_HTML = HtmlProcesses(0, deadline_seconds=0)
RECEIVED = datetime(2026, 3, 2, tzinfo=UTC)
OURS = MailRules(authserv_id="mx.firm.example")


def sender_domain(*results: str, rules: MailRules = OURS) -> str:
    """Return the label of a mail from a@mail.bank.example with these headers."""
    above = "".join(f"Authentication-Results: {each}\r\n" for each in results)
    raw = f"{above}From: a@Mail.Bank.example\r\nSubject: a\r\n\r\nSome words of a mail.\r\n".encode()
    return read_message(raw, RECEIVED, KEY, NO_HTML, rules=rules).document.labels[SENDER_DOMAIN_LABEL]


PROVEN = [
    "mx.firm.example; dmarc=pass (p=reject dis=none) header.from=mail.bank.example",
    "MX.firm.example 1;\r\n\tdkim=fail header.d=other.example;\r\n\tdkim = pass (key; 2048) header.d = bank.example",
    'mx.firm.example; spf=none smtp.mailfrom="a; b"@c.example; dkim=pass header.i=@mail.bank.example header.s=x',
]
UNPROVED = [
    "mx.other.example; dmarc=pass header.from=mail.bank.example",
    "mx.firm.example.other.example; dmarc=pass header.from=mail.bank.example",
    "mx.firm.example; dmarc=fail header.from=mail.bank.example; dkim=none; spf=pass smtp.mailfrom=mail.bank.example",
    "mx.firm.example; dmarc=pass header.from=other.example; dkim=pass header.d=ankbank.example",
    "mx.firm.example; dkim=pass header.d=example; dkim=pass header.d=shop.mail.bank.example; x-dkim=pass",
    "mx.firm.example; dkim=pass header.d=evil.example header.i=@mail.bank.example",
    "mx.firm.example; dkim=pass header.i=@mail.bank.example header.d=evil.example",
    # What a sender has chosen stays in its string or comment.
    r'mx.firm.example; spf=pass smtp.mailfrom="a\"; dmarc=pass header.from=mail.bank.example; \""@b.example',
    "mx.firm.example; dkim=fail (a; dmarc=pass header.from=mail.bank.example ; b)",
    'mx.firm.example; spf=pass smtp.mailfrom="a; dmarc=pass header.from=mail.bank.example',
    "mx.firm.example; dkim=fail (a (b) c; dmarc=pass header.from=mail.bank.example)",
]


@pytest.mark.parametrize("results", PROVEN)
def test_a_result_of_our_server_for_the_domain_proves_it(results: str) -> None:
    assert sender_domain(results) == address_hash("mail.bank.example", KEY)


@pytest.mark.parametrize("results", UNPROVED)
def test_another_server_or_domain_and_text_of_the_sender_prove_nothing(results: str) -> None:
    assert sender_domain(results) == address_hash("mail.bank.example", KEY) + UNPROVEN


def test_a_forged_header_below_that_of_our_server_proves_nothing() -> None:
    for method, forged in (("dmarc", PROVEN[0]), ("dkim", PROVEN[1])):
        assert sender_domain(f"mx.firm.example; {method}=none", forged).endswith(UNPROVEN)
        assert not sender_domain("mx.other.example; dkim=none; dmarc=none", forged).endswith(UNPROVEN)
    assert sender_domain(PROVEN[1], "mx.firm.example; dmarc=none") == address_hash("mail.bank.example", KEY)


def test_without_a_server_whose_results_count_a_sender_is_the_domain_in_from() -> None:
    for results in (PROVEN[0], UNPROVED[0]):
        assert sender_domain(results, rules=MailRules()) == address_hash("mail.bank.example", KEY)
    assert sender_domain().endswith(UNPROVEN)
