"""Mails of a campaign, programs that send them, and a mail server that keeps what it gets."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import SMTP as SMTP_POLICY
from functools import partial
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.devstack.debian import unpacked
from tests.support.deployment import TEXTS, stop, until
from tests.support.forking import started

CAMPAIGN, OTHER = TEXTS[0], TEXTS[5]
SENDING_SECONDS = 60.0


def campaign_mail(name: str, body: str = CAMPAIGN, **headers: str) -> bytes:
    """Return a mail as it is on the wire, with a greeting and a code of its own."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@a.example", f"{name}@b.example", "News"
    message["Message-ID"], message["Date"] = f"<{name}@a.example>", "Mon, 02 Mar 2026 08:15:00 +0000"
    for header, value in headers.items():
        message[header.replace("_", "-")] = value
    message.set_content(f"Dear {name},\n\n{body}\n\nYour code is {name}48151623{len(name)}.\n")
    return message.as_bytes(policy=SMTP_POLICY)


@dataclass
class Sink:
    """A mail server that keeps what it gets."""

    address: str = ""  # its `host:port`
    mails: dict[str, Message] = field(default_factory=dict)  # what it got, by Message-ID

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd
        """Keep a mail."""
        message = message_from_bytes(envelope.original_content or b"")
        self.mails[message["Message-ID"]] = message
        return "250 kept"

    async def delivered(self, name: str, within_seconds: float = 60.0) -> Message:
        """Return the mail `campaign_mail(name)` when it has come."""

        async def has_come() -> bool:
            return f"<{name}@a.example>" in self.mails

        await until(has_come, within_seconds)
        return self.mails[f"<{name}@a.example>"]


@asynccontextmanager
async def sink() -> AsyncIterator[Sink]:
    """Run such a server for the block."""
    kept = Sink()
    server = await asyncio.get_running_loop().create_server(partial(SMTP, kept, hostname="sink.example"), "127.0.0.1")
    kept.address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
    try:
        yield kept
    finally:
        server.close()


def swaks(address: str, mail: bytes | None, *options: str) -> subprocess.CompletedProcess[str]:
    """Send a mail with swaks, or without one what the options say, and return what it printed."""
    tree = unpacked("swaks")
    addresses = ["--server", address, "--from", "shop@a.example", "--to", "anna@b.example"]
    data = [] if mail is None else ["--data", "-"]
    return subprocess.run(
        [*tree.perl("swaks"), *addresses, *data, *options],
        input=(mail or b"").replace(b"\r\n", b"\n").decode("latin-1"),
        capture_output=True,
        text=True,
        encoding="latin-1",
        timeout=SENDING_SECONDS,
        check=False,
        env=os.environ | tree.environment(),
    )


@contextmanager
def command(log: Path, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a `nearstream` command with these settings, and its log in a file, for the block."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    named = {f"NEARSTREAM_{name.upper()}": value for name, value in settings.items()}
    with log.open("ab") as output:
        command = [sys.executable, "-m", "nearstream", *arguments]
        process = started(command, inherited | named, stdout=output, stderr=output)
    try:
        yield process
    finally:
        stop(process)


async def log_says(log: Path, text: str, within_seconds: float = 60.0) -> str:
    """Return the log when it holds a text."""

    async def holds() -> bool:
        return text in _read(log)

    try:
        await until(holds, within_seconds)
    except TimeoutError:
        raise TimeoutError(f"no {text!r} in the log: {_read(log)[-2000:]}") from None
    return _read(log)


def _read(log: Path) -> str:
    return log.read_text() if log.exists() else ""
