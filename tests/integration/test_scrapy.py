"""A spider crawls a site twice: every page gets a verdict, and the second crawl skips what is known."""

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from aiohttp import ClientSession

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import DECISIONS
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.ingest.lineage import canonical_url
from tests.devstack.server import free_ports
from tests.support.crawled_site import ARTICLES, CHANGED, MIRRORS, NOTES, PAGES, SESSIONS, Site, served
from tests.support.deployment import LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

SPIDER = Path(__file__).parents[1] / "support" / "spider.py"


def crawl(deployment: LocalDeployment, site: Site, days_ago: int = 0) -> str:
    """Crawl the site once, as if some days ago, and return the log."""
    command = [sys.executable, str(SPIDER), site.address + "/", str(days_ago)]
    done = subprocess.run(command, env=deployment.environment, capture_output=True, timeout=200, check=False)
    log = done.stderr.decode()
    assert done.returncode == 0, log
    assert "Traceback" not in log, log
    assert " DEBUG: Scraped from" in log
    assert not any(page in log for page in ("<html>", "<!doctype", "PCFkb2N0eXBl", "PGh0bWw"))  # also in base64
    return log


async def answers(address: str) -> bool:
    """Return whether an API answers."""
    try:
        async with ClientSession() as session, session.get(f"http://{address}/readyz") as response:
            return response.status == 200
    except OSError:
        return False


async def decided(deployment: LocalDeployment) -> dict[str, Decision]:
    """Return the newest decision of each lineage."""
    records = await deployment.read(DECISIONS.name)
    decisions = (decode_json(Decision, record.value) for record in records if record.value is not None)
    return {decision.lineage: decision for decision in decisions}


def path_of(site: Site, decision: Decision) -> str:
    return decision.lineage.removeprefix(site.address).removeprefix(site.elsewhere)


def note_of(lineage: str) -> int:
    return int(lineage.partition("/note/")[2].partition("?")[0])


async def test_a_second_crawl_finds_changes_and_a_third_one_skips_what_is_known(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    async with deployed(kafka, redis_url, tmp_path) as deployed_without_api:
        deployment = deployed_without_api.changed(api=address, api_seconds="60")
        with served() as site, deployment.worker(), deployment.worker("decide"):
            assert "pages without one are fetched" in crawl(deployment, site, 30)
            assert PAGES <= len(site.requests) <= PAGES + SESSIONS + 2
            lineages = {canonical_url(site.url(path)) for path in site.requests}

            async def all_are_decided() -> bool:
                return lineages <= (await decided(deployment)).keys()

            await until(all_are_decided)
            first = await decided(deployment)
            copies = {path_of(site, each) for each in first.values() if each.action == "skip"}
            # A copy may be read before its original, and is then the original. Syndicated pages are of another site.
            assert MIRRORS + NOTES - 5 <= len(copies) <= MIRRORS + NOTES + 2
            # Notes share ten elevenths of their words, and each has its own article under two URLs.
            # Of two that are matched at one moment, a verdict may say only that there is an equal one.
            verdicts = [each for each in await deployment.verdicts() if "/note/" in each.id]
            assert len({note_of(each.id) for each in verdicts if each.verdict == "exact_duplicate"}) == NOTES
            told = [each for each in verdicts if each.of]
            pairs = {note_of(each.id) for each in told if each.of and note_of(each.id) == note_of(each.of.id)}
            notes = [each for each in first.values() if "/note/" in each.lineage and each.action == "skip"]
            counted = Counter(note_of(each.lineage) for each in notes)
            assert counted.keys() >= pairs
            assert set(counted.values()) == {1}
            assert all(note_of(each.canonical.lineage or "") == note_of(each.lineage) for each in notes)

            site.visit = 1
            with deployment.worker("serve", ("nearstream",)):
                await until(partial(answers, address))
                crawl(deployment, site)  # after a month all are due
                changed = {f"/a/{number}" for number in CHANGED}
                unchanged = {f"/a/{number}" for number in range(ARTICLES)} - changed - copies

                async def all_are_decided_again() -> bool:
                    second = (await decided(deployment)).values()
                    refreshed = {path_of(site, each) for each in second if each.because == "changed"}
                    kept = {path_of(site, each) for each in second if each.action == "keep" and each.unchanged}
                    return changed - copies <= refreshed <= changed and unchanged <= kept

                await until(all_are_decided_again)
                now_ms = to_milliseconds(datetime.now(UTC))
                second = (await decided(deployment)).values()
                skipped = {path_of(site, each) for each in second if may_skip(each, now_ms)}
                assert unchanged <= skipped
                before = site.requests.copy()
                log = crawl(deployment, site)
            assert "'nearstream/skipped': " in log
            assert "'nearstream/degraded': " not in log
            assert (site.requests - before).keys() & skipped <= {"/"}  # where the spider starts
        assert await deployment.letters() == []
