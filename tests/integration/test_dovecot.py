"""A real Dovecot labels the mail that somebody moves to Junk or out of it."""

import asyncio
import imaplib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devstack.dovecot import imap
from tests.support.mail import campaign_mail

pytestmark = pytest.mark.foreign

FOLDER = Path(__file__).parents[2] / "deploy/mail/dovecot"
RECIPES = {"2.3": "90-nearstream.conf", "2.4": "90-nearstream-2.4.conf"}  # by the version of Dovecot
ODD = r'<"a\b"@a.example>'  # which JSON has to escape


def _move(folder: Path, api: str) -> None:
    """Put mails into INBOX, move them to Junk, and then one back and one to Trash."""
    recipe = folder / "recipe"
    shutil.copytree(FOLDER, recipe)
    for path in recipe.iterdir():
        text = path.read_text().replace("127.0.0.1:9465", api)
        text = text.replace("/etc/nearstream/domains", str(recipe / "domains"))
        path.write_text(text.replace("/etc/dovecot/nearstream", str(recipe)))
    (recipe / "domains").write_text("# recipients\nfirm.example other\nanna campaigns\n")
    lines = {version: (recipe / name).read_text() for version, name in RECIPES.items()}
    with imap(folder / "dovecot", lines) as client:
        for mailbox in ("Junk", "Trash"):
            client.create(mailbox)
        for mail in (campaign_mail("one"), campaign_mail("two"), _odd()):
            client.append("INBOX", "", imaplib.Time2Internaldate(0), mail)
        client.select("INBOX")
        assert client.copy("1:3", "Junk")[0] == "OK"
        client.select("Junk")
        assert client.copy("1", "INBOX")[0] == "OK"
        assert client.copy("3", "Trash")[0] == "OK"


def _odd() -> bytes:
    return campaign_mail("three").replace(b"<three@a.example>", ODD.encode())


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that all users may enter, which those of pytest do not allow."""
    with tempfile.TemporaryDirectory(prefix="nearstream-dovecot-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def test_moving_a_mail_to_junk_labels_it_as_spam_and_moving_it_out_as_ham(folder: Path) -> None:
    said: list[dict[str, str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(re.findall(rb"content-length: (\d+)", head.lower())[0])
        said.append(json.loads(await reader.readexactly(size)))
        assert head.startswith(b"POST /v1/label ")
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    api = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = api.sockets[0].getsockname()
    try:
        # A program of Sieve has ended when the command of IMAP has.
        await asyncio.to_thread(_move, folder, f"{host}:{port}")
    finally:
        api.close()
    one, two = "<one@a.example>", "<two@a.example>"
    expected = [("spam", one), ("spam", two), ("spam", ODD), ("ham", one)]
    log = folder / "dovecot/log"
    told = log.read_text() if log.exists() else ""
    assert sorted((each["label"], each["id"]) for each in said) == sorted(expected), told
    assert {each["collection"] for each in said} == {"campaigns"}
