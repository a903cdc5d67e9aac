"""A spider crawls a site again: pages that are gone or have moved leave the index, others are asked for changes."""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from aiohttp import ClientSession

from nearstream.schemas.topics.table import DECISIONS
from tests.devstack.server import free_ports
from tests.support.crawled_site import words
from tests.support.deployment import LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

SPIDER = Path(__file__).parents[1] / "support" / "spider.py"
PATHS = ("/kept", "/gone", "/broken", "/old", "/moved")
ETAG, MODIFIED = '"v-1"', "Mon, 02 Mar 2026 08:15:00 GMT"


@dataclass
class Site:
    """A site whose pages change after the first crawl."""

    address: str
    has_changed: bool = False
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)  # by path and status

    def page(self, path: str, asked: str | None) -> tuple[int, dict[str, str], str]:
        """Return the answer about a page, which a client may ask for with the ETag that it knows."""
        links = "".join(f"<a href='{each}'>{each}</a> " for each in PATHS)
        text = f"<html><head><title>Page</title></head><body><p>{words(path, 120)}</p>{links * (path == '/')}</body>"
        if not self.has_changed or path in ("/", "/moved"):
            return 200, {"ETag": ETAG, "Last-Modified": MODIFIED} if path == "/kept" else {}, text
        if path == "/old":
            return 301, {"Location": "/moved"}, ""
        if path == "/kept":
            return (304 if asked == ETAG else 200), {"ETag": ETAG}, "" if asked == ETAG else text
        return (410 if path == "/gone" else 500), {}, text


@contextmanager
def served() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, text = site.page(self.path, self.headers["If-None-Match"])
            site.answers[self.path, status] += 1
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", "Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()


def crawl(deployment: LocalDeployment, site: Site) -> dict[str, int]:
    """Crawl the site once, and return our statistics."""
    site.answers.clear()
    done = subprocess.run(
        [sys.executable, str(SPIDER), site.address + "/"],
        env=deployment.environment,
        capture_output=True,
        timeout=200,
        check=False,
    )
    log = done.stderr.decode()
    assert (done.returncode, "Traceback" in log) == (0, False), log
    return {name: int(value) for name, value in re.findall(r"'nearstream/([a-z/_]+)': ([0-9]+)", log)}


async def decided(deployment: LocalDeployment, site: Site) -> dict[str, bool]:
    """Return by path whether the newest record of its name is a decision, and no null value."""
    records = await deployment.read(DECISIONS.name)
    named = {(record.key or b"").decode().removeprefix("default/"): record.value is not None for record in records}
    return {name.removeprefix(site.address): is_decided for name, is_decided in named.items()}


async def answer(api: str, url: str) -> dict[str, object]:
    try:
        async with ClientSession() as session, session.get(f"http://{api}/v1/skip", params={"url": url}) as response:
            found: dict[str, object] = await response.json()
            return found
    except OSError:
        return {}


async def test_pages_that_are_gone_or_moved_leave_and_the_others_are_asked_for_changes(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    api = f"127.0.0.1:{free_ports(1)[0]}"
    async with deployed(kafka, redis_url, tmp_path) as plain:
        deployment = plain.changed(api=api, api_seconds="60")
        with (
            served() as site,
            deployment.worker(),
            deployment.worker("decide"),
            deployment.worker("serve", ("nearstream",)),
        ):

            async def are_decided(names: set[str]) -> bool:
                return {name for name, is_decided in (await decided(deployment, site)).items() if is_decided} == names

            async def lineage_of_old() -> bool:
                return (await answer(api, site.address + "/old")).get("lineage") == site.address + "/moved"

            async def is_answered() -> bool:
                return (await answer(api, site.address)).get("degraded") is False

            await until(is_answered)
            crawl(deployment, site)
            await until(partial(are_decided, {"/", *PATHS}))
            kept = await answer(api, site.address + "/kept")
            assert (kept["etag"], kept["last_modified"]) == (ETAG, MODIFIED)

            site.has_changed = True
            counts = await asyncio.to_thread(crawl, deployment, site)
            assert (counts["removed"], counts["not_modified"]) == (2, 1)
            assert site.answers["/kept", 304] == 1
            await until(partial(are_decided, {"/", "/kept", "/broken", "/moved", "/old"}))  # as a name of /moved
            await until(lineage_of_old)

            counts = await asyncio.to_thread(crawl, deployment, site)
            assert "removed" not in counts
            assert (site.answers["/gone", 410], site.answers["/kept", 200]) == (1, 0)
            assert site.answers["/moved", 200] <= 1
        assert await deployment.letters() == []
