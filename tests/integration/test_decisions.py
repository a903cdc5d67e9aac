"""A site is fetched twice, and decisions say what to skip, what to keep and what to fetch again."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nearstream.schemas.documents.record import Headers, ProducerRecord
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import DECISIONS, DOCUMENTS, VERDICTS
from tests.support.crawled_site import words
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until

FIRST = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
SITE, OTHER_SITE = "https://a.example", "https://b.example"


def page(
    deployment: LocalDeployment, path: str, text: str, minutes: int, canonical: str = "", site: str = SITE
) -> ProducerRecord:
    headers: Headers = [
        ("content-type", b"text/html; charset=utf-8"),
        ("nearstream-url", f"{site}{path}".encode()),
        ("nearstream-observed-at", (FIRST + timedelta(minutes=minutes)).isoformat().encode()),
    ]
    link = f"<link rel=canonical href={canonical}>" if canonical else ""
    html = f"<html><head>{link}</head><nav><a href=/>Menu</a></nav><article><p>{text}</article></html>"
    return ProducerRecord(deployment.topic(DOCUMENTS), f"{site}{path}".encode(), html.encode(), headers)


async def decisions(deployment: LocalDeployment, site: str = SITE) -> dict[str, Decision | None]:
    """Return the newest decision of each page of a site by its path."""
    found: dict[str, Decision | None] = {}
    for record in await deployment.read(DECISIONS.name):
        lineage = (record.key or b"").decode().partition("/")[2]
        if lineage.startswith(site):
            found[lineage.removeprefix(site)] = None if record.value is None else decode_json(Decision, record.value)
    return found


async def test_a_crawler_learns_what_to_skip_keep_and_refresh(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        texts = [" ".join(TEXTS[number].split()[:120]) for number in range(4)]
        decided: dict[str, str | None] = {"/original": "keep"}
        await deployment.send([page(deployment, "/original", texts[0], 0)])
        with deployment.worker(), deployment.worker("decide"):
            await until_decided(deployment, decided)
            copy = page(deployment, "/original/2", texts[0], 1)
            pages = [page(deployment, path, text, 1) for path, text in (("/stays", texts[1]), ("/changes", texts[2]))]
            await deployment.send([copy, *pages])
            decided |= {"/original/2": "skip", "/stays": "keep", "/changes": "keep"}
            await until_decided(deployment, decided)
            changed = page(deployment, "/changes", texts[2] + " " + texts[3][:200], 9)
            await deployment.send([page(deployment, "/stays?utm_source=mail", texts[1], 9), changed])
            decided |= {"/changes": "refresh"}
            await until_decided(deployment, decided, unchanged=1)
            await deployment.send([page(deployment, "/print", texts[1], 20, canonical="/stays")])
            decided |= {"/print": "skip"}
            await until_decided(deployment, decided)
            found = {path: decision for path, decision in (await decisions(deployment)).items() if decision}
            assert found["/print"].canonical.id == f"{SITE}/stays"
            assert found["/original/2"].canonical.id == f"{SITE}/original"
            assert 0 < (found["/changes"].change_share or 0) < 1
            removal = ProducerRecord(deployment.topic(DOCUMENTS), copy.key, None, [])
            await deployment.send([removal, page(deployment, "/stays", texts[1] + " " + texts[3][200:400], 30)])
            decided |= {"/original/2": None, "/stays": "refresh"}
            await until_decided(deployment, decided)
            assert (await decisions(deployment))["/print"] == found["/print"]  # it waits by its own rate
            await _keeps_a_page_of_which_only_the_frame_changes(deployment)
        assert await deployment.letters() == []
        told = deployment.run("lag", "--json")
        rows = [row for row in map(json.loads, told.stdout.splitlines()) if row["topic"] == deployment.topic(VERDICTS)]
        assert [row["records"] for row in rows] == [0] * VERDICTS.partitions


def unmarked(deployment: LocalDeployment, number: int, fetch: int) -> ProducerRecord:
    """Return a page with a teaser, which is another at each fetch. One article changes before the third fetch."""
    article = words(f"article {number} {number == 3 and fetch == 2}", 200)
    body = f"<div>{words(f'teaser {fetch}', 9)}</div><div>{article}</div>"
    return page(deployment, f"/{number}", body, 60 * fetch, site=OTHER_SITE)


async def _keeps_a_page_of_which_only_the_frame_changes(deployment: LocalDeployment) -> None:
    for fetch in range(3):
        await deployment.send([unmarked(deployment, number, fetch) for number in range(12)])

        async def all_are_decided(at: datetime = FIRST + timedelta(hours=fetch)) -> bool:
            found = (await decisions(deployment, OTHER_SITE)).values()
            return sum(each is not None and each.observed_at == at for each in found) == 12

        await until(all_are_decided)
    found = await decisions(deployment, OTHER_SITE)
    kept = {path for path, each in found.items() if each and each.because == "unchanged"}
    # The first pages that show a new teaser are taken for changed.
    assert len(kept) >= 7
    assert "/3" not in kept


async def until_decided(deployment: LocalDeployment, actions: dict[str, str | None], unchanged: int = 0) -> None:
    async def is_decided() -> bool:
        found = await decisions(deployment)
        known = {path: None if decision is None else decision.action for path, decision in found.items()}
        stays = found.get("/stays")
        return known == actions and (not unchanged or (stays is not None and stays.unchanged == unchanged))

    await until(is_decided)
