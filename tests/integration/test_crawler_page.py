"""A new user pastes docs/crawler.md: the settings and the spider into a Scrapy project, the commands into a shell."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from textwrap import indent

import pytest
from aiohttp import ClientSession
from warcio.archiveiterator import ArchiveIterator

from tests.devstack.debian import unpacked
from tests.devstack.server import free_ports
from tests.integration.test_scrapy import answers, decided
from tests.support.answering import answering
from tests.support.crawled_site import words
from tests.support.deployment import LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

PAGE = (Path(__file__).parents[2] / "docs/crawler.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(STARTS,) = (block for language, block in BLOCKS if language == "sh")
(WGET,) = (block for _, block in BLOCKS if block.startswith("wget"))
ADDON, COMPONENTS, PARSE, SIGNAL = (block for language, block in BLOCKS if language == "python")
COPIES, ARTICLES = 5, 8
SPIDER = """\
import scrapy

{parse_imports}
{signal_imports}

class Site(scrapy.Spider):
    name = "site"
    start_urls = ["{start}"]

    @classmethod
    def from_crawler(cls, crawler, *args, **options):
        spider = super().from_crawler(crawler, *args, **options)
{connect}
        return spider

    def note_skipped(self, request, because, canonical):
        self.logger.info("noted %s %s", because, request.url)

{parse}"""


@contextmanager
def site(texts: dict[str, str]) -> Iterator[str]:
    """Serve pages with these texts, and yield the address."""

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
        if request.path not in texts:
            return 404, b""
        return 200, framed("Page", texts[request.path])

    with answering(answer) as port:
        yield f"http://127.0.0.1:{port}"


def framed(title: str, text: str) -> bytes:
    """Return a page without links of its own."""
    return f"<!doctype html><html><head><title>{title}</title></head><body><main><p>{text}".encode()


def project(folder: Path, start: str) -> Path:
    """Make a Scrapy project with what the page says."""
    subprocess.run(
        [sys.executable, "-m", "scrapy", "startproject", "one", "."], cwd=folder, check=True, capture_output=True
    )
    with (folder / "one/settings.py").open("a") as settings:
        settings.write(ADDON + "TELNETCONSOLE_ENABLED = False\nDOWNLOAD_DELAY = 0\nCRAWL_ASK_SECONDS = 60\n")
    parse_imports, parse = PARSE.split("\n\n\n", 1)
    signal_imports, connect = SIGNAL.split("\n\n", 1)
    text = SPIDER.format(
        parse_imports=parse_imports,
        signal_imports=signal_imports,
        start=start,
        connect=indent(connect.rstrip(), " " * 8),
        parse=indent(parse, "    "),
    )
    (folder / "one/spiders/site.py").write_text(text)
    return folder


@contextmanager
def started(environment: dict[str, str], log: Path) -> Iterator[None]:
    """Run what the page says to start, until the end of the block."""
    with log.open("wb") as told:
        process = subprocess.Popen(
            ["bash", "-c", STARTS + "wait"],  # noqa: S607
            env=environment,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def crawl(deployment: LocalDeployment, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "site"],
        env=deployment.environment, cwd=folder, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_both_ways_to_add_the_components_name_the_same() -> None:
    scope: dict[str, dict[str, int]] = {}
    exec(COMPONENTS, scope)  # noqa: S102 - text of our own page
    assert list(scope["ITEM_PIPELINES"].values()) == [300]
    assert list(scope["DOWNLOADER_MIDDLEWARES"].values()) == [543]


async def test_the_page_about_crawlers_works_when_it_is_pasted(kafka: str, redis_url: str, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    texts = {f"/{number}": words(f"article {number}", 200) for number in range(ARTICLES)}
    texts |= {f"/copy/of/{number}": texts[f"/{number}"] for number in range(COPIES)}
    texts["/"] = "".join(f"<a href='{path}'>{path}</a> " for path in texts)
    wget = unpacked("wget")
    folder = tmp_path / "project"
    folder.mkdir()
    async with deployed(kafka, redis_url, tmp_path) as first:
        deployment = first.changed(api=address, api_seconds="60", verdicts="all")
        environment = deployment.environment | wget.environment()
        environment["PATH"] = f"{Path(sys.executable).parent}:{wget.program('wget').parent}:{os.environ['PATH']}"
        with site(texts) as start, started(environment, tmp_path / "started.log"):
            await until(partial(answers, address), 60)
            log_of_first = crawl(deployment, project(folder, start + "/"))
            assert f"'nearstream/sent': {len(texts)}," in log_of_first

            async def all_are_decided() -> bool:
                return len(await decided(deployment)) == len(texts)

            await until(all_are_decided, 60)
            log_of_second = crawl(deployment, folder)
            assert "'nearstream/skipped/copy': 5," in log_of_second
            assert log_of_second.count("INFO: noted copy http") == COPIES

            (folder / "urls.txt").write_text("".join(f"{start}/{number}\n" for number in range(ARTICLES)))
            script = WGET.replace("127.0.0.1:9465", address).replace("wget ", "wget --no-verbose ")
            monday, tuesday = script.split("(printf", 1)
            run = partial(subprocess.run, env=environment, cwd=folder, check=True, timeout=60)
            run(["bash", "-ec", monday])

            async def are_known() -> bool:
                async with ClientSession() as asking:
                    asked = [
                        asking.get(f"http://{address}/cdx", params={"url": f"{start}/{number}"})
                        for number in range(ARTICLES)
                    ]
                    return all([await (await each).text() for each in asked])

            await until(are_known, 60)
            texts["/0"] += " more"
            run(["bash", "-ec", "(printf" + tuesday])
        with (folder / "tuesday.warc.gz").open("rb") as stream:
            kinds = [record.rec_type for record in ArchiveIterator(stream)]
    assert (kinds.count("revisit"), kinds.count("response")) == (ARTICLES - 1, 1)
