"""The way of a mail from nothing to its header, as `docs/mail.md` shows it, with a real Postfix, Kafka and Redis."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from tests.devstack.debian import unpacked
from tests.devstack.postfix import main_lines, postfix_folder, postfix_server
from tests.devstack.server import free_ports, running
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.mail import Sink, command, log_says, sink, swaks

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/mail.md").read_text().partition("## Files")[0]
BULK_COUNT = re.findall(r"NEARSTREAM_BULK_COUNT=(\d+)", PAGE)[0]
COMMANDS = re.findall(r"^ +nearstream (serve|milter --learn) &$", PAGE, re.MULTILINE)
HEADERS = re.findall(r"\| `X-Nearstream: (.*)` \|", PAGE)
BODY = re.findall(r'--body "(.*)"', PAGE)[0]
NAMES = ("Anna", "Bernd", "Carla", "Dora", "Emil", "Frida", "Georg", "Hanna", "Ines", "Jakob", "Karl", "Lena")


pytestmark = pytest.mark.foreign


@pytest.mark.timeout(280)
async def test_the_page_leads_to_the_headers_that_it_shows(kafka: str, redis_url: str, tmp_path: Path) -> None:
    assert (COMMANDS, len(HEADERS)) == (["serve", "milter --learn"], 4)
    await asyncio.to_thread(unpacked, "swaks")
    settings = {"profile": "mail", "hash_key": "k" * 32, "bulk_count": BULK_COUNT}
    api_port, milter_port = free_ports(2)
    settings["api"] = f"127.0.0.1:{api_port}"
    main = main_lines(ROOT / "deploy/mail/postfix-main.cf", _9466=str(milter_port))
    main |= {name: "60s" for name in main if name.endswith("_timeout")}  # for a machine that is busy with other tests
    async with AsyncExitStack() as resources:
        folder = resources.enter_context(postfix_folder())
        kept = await resources.enter_async_context(sink())
        postfix = await asyncio.to_thread(postfix_server, folder / "postfix", kept.address, main)
        deployment = await resources.enter_async_context(deployed(kafka, redis_url, tmp_path, **settings))
        resources.enter_context(deployment.worker())
        await until(lambda: _has_index(deployment))
        for name in COMMANDS:
            options = ["--listen", f"127.0.0.1:{milter_port}"] if "milter" in name else []
            log = tmp_path / f"{name}.log"
            resources.enter_context(command(log, *name.split(), *options, **deployment.given()))
        for name in COMMANDS:
            await log_says(tmp_path / f"{name}.log", "127.0.0.1:")
        context = running(postfix)
        await asyncio.to_thread(context.__enter__)
        resources.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        found: list[str] = []
        while HEADERS[-1].partition("; n")[0] not in "".join(found) and len(found) < len(NAMES):
            found.append(await _header_of_next(deployment, postfix.address, kept))
    for number, header in enumerate(found):
        # On a busy machine an answer comes too late now and then, and the mail has no header.
        copies = max(0, number - 1)
        shown = HEADERS[min(number, 3)].replace("n=2", f"n={copies}") if copies >= int(BULK_COUNT) else HEADERS[number]
        assert header in ("", shown), found
    assert found[-1], found


async def _has_index(deployment: LocalDeployment) -> bool:
    try:
        index = await RedisIndex.open_to_read(Deployment.of(deployment.settings).index_address())
    except (IndexLostError, SettingsError):
        return False
    await index.close()
    return True


async def _header_of_next(deployment: LocalDeployment, address: str, kept: Sink) -> str:
    """Send the next copy, and return its header when its text is in the index."""
    number = len(kept.mails) + 1
    name = NAMES[number - 1]
    body = BODY.replace("$name", name).replace("${RANDOM}", f"{7919 * number % 32768}")
    sent = await asyncio.to_thread(swaks, address, None, "--body", body)
    assert sent.returncode == 0, sent.stdout + sent.stderr

    async def is_delivered() -> bool:
        return len(kept.mails) == number

    async def is_sent() -> bool:
        return len(await deployment.read(DOCUMENTS.name)) == number

    await until(is_delivered)
    await until(is_sent)
    await deployment.drained()
    return str([*kept.mails.values()][-1]["X-Nearstream"] or "")
