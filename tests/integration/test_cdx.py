"""wget asks `GET /cdx`, and writes revisit records in place of pages that were stored before."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from warcio.archiveiterator import ArchiveIterator

from nearstream.streams.deciding.decider import Decider
from nearstream.streams.ingest.lineage import site_of
from nearstream.workers.files.source import read
from nearstream.workers.pipeline.in_process import embedded
from nearstream.workers.redis.kept.decisions import DecisionStore
from tests.devstack.debian import unpacked
from tests.support.api import Api, served
from tests.support.crawled_site import html, words
from tests.support.warc import Crawl


@contextmanager
def site(texts: dict[str, str], framed: Callable[[str, str], bytes] = html) -> Iterator[str]:
    """Serve pages with these texts, in a frame with links, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in texts:
                self.send_error(404)
                return
            body = framed("Page", texts[self.path])
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def fetched(folder: Path, name: str, urls: list[str], *options: str) -> Path:
    """Fetch pages with wget into a WARC."""
    tree = unpacked("wget")
    command = [str(tree.program("wget")), "-q", f"--warc-file={name}", *options, "-O", f"{name}.out", *urls]
    subprocess.run(command, cwd=folder, check=True, timeout=60, env=os.environ | tree.environment())
    return folder / f"{name}.warc.gz"


def kinds(warc: Path) -> dict[str, tuple[str, str | None]]:
    """Return by URL the kind of its record and the record to which it refers."""
    with warc.open("rb") as stream:
        headers = [record.rec_headers for record in ArchiveIterator(stream)]
    stored = [each for each in headers if each.get_header("WARC-Type") in ("response", "revisit")]
    names = ("WARC-Type", "WARC-Refers-To")
    return {each.get_header("WARC-Target-URI").strip("<>"): tuple(map(each.get_header, names)) for each in stored}


async def learn(api: Api, warc: Path) -> None:
    """Take the pages of a WARC as workers do."""
    made = embedded(api.deployment)
    store = DecisionStore(api.index.client, api.deployment.settings.namespace)
    async for outcome in made.outcomes(read([str(warc)])):
        if outcome.verdict is not None:
            await Decider(store, site_of).after_verdict(outcome.verdict, outcome.page)
    made.pages.close()


@pytest.mark.foreign
async def test_wget_writes_revisit_records_of_pages_that_have_not_changed(redis_url: str, tmp_path: Path) -> None:
    texts = {"/stays": words("stays", 200), "/changes": words("changes", 200)}
    with site(texts) as address:
        urls = [address + path for path in texts]
        first = fetched(tmp_path, "first", urls)
        async with served(redis_url) as api:
            await learn(api, first)
            ask = partial("/cdx?url={}&header=1&fl=original,timestamp,digest,recordid".format)
            lines = [(await api.get(ask(quote(url, safe=""))))[1].decode() for url in urls]
            (tmp_path / "known.cdx").write_text("".join([lines[0], *(each.split("\n", 1)[1] for each in lines[1:])]))
            texts["/changes"] += " more"
            second = kinds(fetched(tmp_path, "second", urls, "--warc-dedup=known.cdx"))
            assert [second[url][0] for url in urls] == ["revisit", "response"]
            with first.open("rb") as stream:
                ids = [record.rec_headers.get_header("WARC-Record-ID") for record in ArchiveIterator(stream)]
            assert second[urls[0]][1] in ids


async def test_a_line_is_given_for_the_exact_url_and_digest_alone(redis_url: str, tmp_path: Path) -> None:
    url, copy = "https://a.example/a", "https://a.example/copy/of/a"
    crawl, file = Crawl(), tmp_path / "first.warc"
    for each in (url, copy):
        crawl.response(each, html("Page", words("a", 200)))
    file.write_bytes(crawl.content())
    async with served(redis_url) as api:
        await learn(api, file)

        async def asked(page: str, rest: str = "") -> str:
            status, body = await api.get(f"/cdx?url={quote(page, safe='')}{rest}")
            assert status == 200
            return body.decode()

        line = await asked(url)
        of_warcprox = "&fl=timestamp,digest&limit=-1&filter=!mimetype:warc/revisit"
        timestamp, digest = (await asked(url, of_warcprox)).split()
        assert line.split()[1:6] == [timestamp, url, "-", "200", digest]
        assert (len(timestamp), len(digest)) == (14, 32)
        assert await asked(url, f"&filter=digest:{digest}") == line
        assert await asked(url, f"&filter=digest:{'A' * 32}") == ""
        for other in (url + "?utm_source=a", "https://a.example/b"):
            assert await asked(other) == ""
        async with api.session.get(f"http://{api.address}/cdx", params={"url": copy}) as response:
            assert response.headers["nearstream-because"] == "copy"
            assert response.headers["nearstream-canonical"] == url


async def test_a_url_of_strange_characters_ends_no_line_and_no_header(redis_url: str, tmp_path: Path) -> None:
    for path in ["\x7f", "a b", "a\nX-Header: b", "\0", "\u2028é", "\r\n\r\n"]:
        url = f"https://a.example/{path}"
        file = tmp_path / "pages.jsonl"
        file.write_text(json.dumps({"url": url, "html": f"<p>{words('strange', 200)}"}))
        async with served(redis_url) as api:
            made = embedded(api.deployment)
            decider = Decider(DecisionStore(api.index.client, api.deployment.settings.namespace), site_of)
            async for outcome in made.outcomes(read([str(file)])):
                assert outcome.verdict is not None
                await decider.after_verdict(outcome.verdict, outcome.page._replace(payload="A" * 32))
            made.pages.close()
            async with api.session.get(f"http://{api.address}/cdx", params={"url": url, "header": "1"}) as response:
                assert response.status == 200
                assert "X-Header" not in response.headers
                head, line, end = (await response.text()).split("\n")
            assert (len(head.split()), len(line.split(" ")), end) == (9, 8, "")
            assert "A" * 32 in line


async def test_a_question_that_cannot_be_read_is_refused(redis_url: str) -> None:
    for query in ["", "?url=https://a.example/&fl=secret", "?url=https://a.example/&x=1"]:
        async with served(redis_url) as api:
            assert (await api.get("/cdx" + query))[0] == 400
