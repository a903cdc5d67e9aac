"""`GET /cdx` tells a crawler which pages were stored before, as wget and warcprox ask."""

import json
from base64 import b32encode
from hashlib import sha1
from pathlib import Path
from urllib.parse import quote

from nearstream.streams.deciding.decider import Decider, needs
from nearstream.streams.ingest.sites import site_of
from nearstream.workers.files.source import read
from nearstream.workers.pipeline.in_process import embedded
from nearstream.workers.redis.kept.decisions import DecisionStore
from tests.support.api import Api, served
from tests.support.crawled_site import html, words
from tests.support.warc import Crawl


async def learn(api: Api, file: Path, **changed: str) -> None:
    """Take the pages of a file as workers do, with these facts about each page changed."""
    made = embedded(api.deployment)
    store = DecisionStore(api.index.client, api.deployment.settings.namespace)
    async for outcome in made.outcomes(read([str(file)])):
        if outcome.verdict is not None:
            before = await store.load(needs([outcome.verdict]))
            after = before.copy()
            await Decider(after, site_of).after_verdict(outcome.verdict, outcome.page._replace(**changed))
            await store.save(before, after)
    made.pages.close()


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
        assert (await asked(copy, "&fl=digest")).strip() == digest


async def test_a_page_is_stored_once_a_warc_record_holds_it(redis_url: str, tmp_path: Path) -> None:
    url, body = "https://a.example/a", html("Page", words("a", 200))
    files = tmp_path / "fetched.jsonl", tmp_path / "monday.warc"
    fetched = {"url": url, "html": body.decode(), "observed_at": "2026-03-01T00:00:00Z"}
    files[0].write_text(json.dumps(fetched))
    crawl = Crawl()
    crawl.response(url, body)
    files[1].write_bytes(crawl.content())
    digest = b32encode(sha1(body, usedforsecurity=False).digest()).decode()
    path = f"/cdx?url={quote(url, safe='')}&fl=timestamp,digest,recordid"
    async with served(redis_url) as api:
        await learn(api, files[0], payload=digest)
        assert await api.get(path) == (200, b"")
        assert await api.get(path + "&stored=any") == (200, f"20260301000000 {digest} -\n".encode())
        await learn(api, files[1])
        status, line = await api.get(path)
        assert (status, line.split()[:2]) == (200, [b"20260302081500", digest.encode()])
        assert line.split()[2].startswith(b"<urn:uuid:")
        await learn(api, files[0], payload=digest)  # which is older, and delivered again
        assert await api.get(path) == (200, line)


async def test_a_url_of_strange_characters_ends_no_line_and_no_header(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl"
    paths = ("\x7f", "a b", "a\nX-Header: b", "\0", "\u2028é", "\r\n\r\n")
    urls = [f"https://{number}.example/{path}" for number, path in enumerate(paths)]
    pages = [{"url": url, "html": f"<p>{words(url, 200)}"} for url in urls]
    file.write_text("".join(f"{json.dumps(page)}\n" for page in pages))
    async with served(redis_url) as api:
        await learn(api, file, payload="A" * 32)
        for url in urls:
            params = {"url": url, "header": "1", "stored": "any"}
            async with api.session.get(f"http://{api.address}/cdx", params=params) as response:
                assert response.status == 200
                assert "X-Header" not in response.headers
                head, line, end = (await response.text()).split("\n")
            assert (len(head.split()), len(line.split(" ")), end) == (9, 8, "")
            assert "A" * 32 in line
        for query in ("", "?url=https://a.example/&fl=secret", "?url=https://a.example/&x=1", "?url=a&stored=all"):
            assert (await api.get("/cdx" + query))[0] == 400
