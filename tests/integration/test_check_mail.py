"""A whole message is read as a mail: its text, its identity and its attachments."""

from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import read_message
from tests.support.api import Api, served
from tests.support.deployment import TEXTS

BODY = TEXTS[0]
DOMAINS = "# recipients\n\nfirm.example firm\nOther.example other\n"
KEY = "k" * 32


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with served(redis_url, profile="mail", hash_key=KEY, mail_domains=DOMAINS) as running:
        yield running


def _message(body: str, name: str = "anna") -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@a.example", f"{name}@b.example", "News"
    message["Message-ID"], message["Date"] = f"<{name}@a.example>", "Mon, 02 Mar 2026 08:15:00 +0000"
    message.set_content(f"Dear {name},\n\n{body}\n\nYour code is {name}48151623{len(name)}.\n")
    return message.as_bytes()


async def _deliver(api: Api, raw: bytes) -> None:
    with closing(HtmlProcesses(deadline_seconds=60)) as html:
        mail = read_message(raw, datetime.now(UTC), api.deployment.key, html)
    await api.match(api.deployment.signer().sign(mail.document, None, mail.degraded))


async def _ask(api: Api, raw: bytes) -> tuple[int, dict[str, object]]:
    return await api.ask(raw, Content_Type="message/rfc822")


async def test_a_personalised_copy_is_found_under_other_headers(api: Api) -> None:
    assert (await _ask(api, _message(BODY)))[1]["verdict"] == "none"
    await _deliver(api, _message(BODY))
    status, answer = await _ask(api, _message(BODY, "bernd"))
    assert (status, answer["verdict"], answer["match"]["id"]) == (200, "near_duplicate", "<anna@a.example>")
    assert answer["scheme"].startswith("mail-")
    assert (await _ask(api, _message(TEXTS[5], "bernd")))[1]["verdict"] == "none"
    for collection, expected in (("other", (200, "none")), ("default", (200, "near_duplicate")), ("No", (400, None))):
        status, answer = await api.ask(_message(BODY), Content_Type="message/rfc822", nearstream_collection=collection)
        assert (status, answer.get("verdict")) == expected
    for recipient, expected in (("a@Firm.example", "none"), ("a@sub.firm.example", "near_duplicate"), ("", "none")):
        given = {"Content-Type": "message/rfc822", "nearstream-recipient": recipient}
        given |= {} if recipient else {"nearstream-collection": "other"}
        assert (await api.ask(_message(BODY), **given))[1]["verdict"] == expected


def _with(attachment: bytes, name: str) -> bytes:
    message = message_from_bytes(_message(BODY, name), policy=default)
    assert isinstance(message, EmailMessage)
    message.add_attachment(attachment, "application", "pdf", filename="a.pdf")
    return message.as_bytes()


async def test_a_copy_with_other_attachments_is_told(api: Api) -> None:
    await _deliver(api, _with(b"%PDF one", "anna"))
    asked = (_with(b"%PDF one", "bernd"), _with(b"%PDF two", "bernd"), _message(BODY, "bernd"))
    same, other, none = [(await _ask(api, raw))[1] for raw in asked]
    assert [answer["verdict"] for answer in (same, other, none)] == ["near_duplicate"] * 3
    told = ["attachments_differ" in answer["low_confidence"] for answer in (same, other, none)]
    assert told == [False, True, True]
