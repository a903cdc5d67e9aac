"""A WARC with permanent redirects is sent, and decisions and lineages are found under every URL of a page."""

from pathlib import Path

from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import DECISIONS
from tests.support.crawled_site import html, words
from tests.support.deployment import deployed, until
from tests.support.warc import Crawl

SITE = "https://a.example"
NEW, HERE = f"{SITE}/new", "https://b.example/here"
MOVED = [
    ("/older", "308 Permanent Redirect", f"{SITE}/old"),
    ("/old", "301 Moved Permanently", "/new"),
    ("/for-now", "302 Found", "/new"),
    ("/gone", "301 Moved Permanently", HERE),
]
SECOND_FETCH = "2026-03-03T08:15:00Z"


def crawled(folder: Path) -> Path:
    """Return a WARC in which two URLs lead for good to a page that is fetched twice, and one to another host."""
    crawl = Crawl(packed=True)
    for path, status, location in MOVED:
        crawl.response(SITE + path, b"", status, [("Location", location)])
    crawl.response(NEW, html("New", words("new", 200)))
    crawl.response(HERE, html("Here", words("here", 200)))
    crawl.response(NEW, html("New", words("new", 200)), date=SECOND_FETCH)
    file = folder / "crawl.warc.gz"
    file.write_bytes(crawl.content())
    return file


async def test_a_page_is_known_under_the_urls_that_redirect_to_it(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(), deployment.worker("decide"):
            sent = deployment.run("produce", str(crawled(tmp_path)))
            assert sent.returncode == 0, sent.stderr
            assert b"3 redirect" in sent.stderr

            async def decisions() -> dict[str, Decision]:
                records = [each for each in await deployment.read(DECISIONS.name) if each.value is not None]
                return {
                    (each.key or b"").decode().partition("/")[2]: decode_json(Decision, each.value or b"")
                    for each in records
                }

            known = {NEW, HERE, *(f"{SITE}/{path}" for path in ("old", "older", "gone"))}

            async def all_are_decided() -> bool:
                found = await decisions()
                return known <= found.keys() and found[NEW].unchanged == 1

            await until(all_are_decided)
            found = await decisions()
            assert found.keys() == known
            for path in ("/old", "/older"):
                assert found[SITE + path].canonical.id == NEW
            assert found[f"{SITE}/gone"] == found[HERE]
            verdicts = await deployment.verdicts()
            assert {(each.id, each.lineage) for each in verdicts} == {(name, name) for name in (NEW, HERE)}
            assert {each.url for each in verdicts} == known - {HERE}
        assert await deployment.letters() == []
