"""A site is fetched twice, and decisions say what to skip, what to keep and what to fetch again."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nearstream.schemas.documents.record import Headers, ProducerRecord
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import DECISIONS, DOCUMENTS, VERDICTS
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.ingest.lineage import site_of
from nearstream.workers.pipeline.decide import Deciding
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.server.client import open_client
from tests.support.crawled_site import words
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until

FIRST = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
SITE = "https://a.example"


def page(deployment: LocalDeployment, path: str, text: str, minutes: int, canonical: str = "") -> ProducerRecord:
    headers: Headers = [
        ("content-type", b"text/html; charset=utf-8"),
        ("nearstream-url", f"{SITE}{path}".encode()),
        ("nearstream-observed-at", (FIRST + timedelta(minutes=minutes)).isoformat().encode()),
    ]
    link = f"<link rel=canonical href={canonical}>" if canonical else ""
    html = f"<html><head>{link}</head><nav><a href=/>Menu</a></nav><article><p>{text}</article></html>"
    return ProducerRecord(deployment.topic(DOCUMENTS), f"{SITE}{path}".encode(), html.encode(), headers)


async def decisions(deployment: LocalDeployment) -> dict[str, Decision | None]:
    """Return the newest decision of each lineage by its path."""
    found: dict[str, Decision | None] = {}
    for record in await deployment.read(DECISIONS.name):
        lineage = (record.key or b"").decode().partition("/")[2]
        found[lineage.removeprefix(SITE)] = None if record.value is None else decode_json(Decision, record.value)
    return found


def deciding(deployment: LocalDeployment, store: DecisionStore) -> Deciding:
    letters = Deployment.of(deployment.settings).dead_letter_writer("decide")
    return Deciding(Decider(store, site_of), deployment.topic(DECISIONS), letters)


async def test_a_crawler_learns_what_to_skip_keep_and_refresh(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        texts = [" ".join(TEXTS[number].split()[:120]) for number in range(4)]
        await deployment.send([page(deployment, "/original", texts[0], 0)])
        with deployment.worker(), deployment.worker("decide"):
            await until_decided(deployment, {"/original": "keep"})
            await deployment.send(
                [
                    page(deployment, "/original/2", texts[0], 1),
                    page(deployment, "/stays", texts[1], 1),
                    page(deployment, "/changes", texts[2], 1),
                ]
            )
            await until_decided(
                deployment, {"/original": "keep", "/original/2": "skip", "/stays": "keep", "/changes": "keep"}
            )
            await deployment.send(
                [
                    page(deployment, "/stays?utm_source=mail", texts[1], 9),
                    page(deployment, "/changes", texts[2] + " " + texts[3][:200], 9),
                ]
            )
            await until_decided(
                deployment,
                {"/original": "keep", "/original/2": "skip", "/stays": "keep", "/changes": "refresh"},
                unchanged=1,
            )
            await deployment.send([page(deployment, "/print", texts[1], 20, canonical="/stays")])
            decided: dict[str, str | None] = {
                "/original": "keep",
                "/original/2": "skip",
                "/stays": "keep",
                "/changes": "refresh",
            }
            await until_decided(deployment, decided | {"/print": "skip"})
            found = await decisions(deployment)
            printed = found["/print"]
            assert printed is not None
            assert printed.canonical.id == f"{SITE}/stays"
            copy, changed = found["/original/2"], found["/changes"]
            assert copy is not None
            assert copy.canonical.id == f"{SITE}/original"
            assert changed is not None
            assert 0 < changed.change_share < 1
            made = Deployment.of(deployment.settings)
            async with open_client(made.index_address().connection) as client:
                store = DecisionStore(client, deployment.settings.namespace)
                state = await store.read_state("default", f"{SITE}/original/2")
                assert state is not None
                assert state.decision == copy
                # A redelivery of all verdicts restates the decisions.
                again = Deciding(
                    Decider(store, site_of), deployment.topic(DECISIONS), made.dead_letter_writer("decide")
                )
                restated = await again.decide(await deployment.read(VERDICTS.name))
                newest = {record.key: record.value for record in await deployment.read(DECISIONS.name)}
                assert [sent.value for sent in restated] == [newest[sent.key] for sent in restated]
            await deployment.send(
                [
                    ProducerRecord(deployment.topic(DOCUMENTS), f"{SITE}/original/2".encode(), None, []),
                    page(deployment, "/stays", texts[1] + " " + texts[3][200:400], 30),
                ]
            )
            await until_decided(deployment, decided | {"/original/2": None, "/print": "refresh", "/stays": "refresh"})
            printed = (await decisions(deployment))["/print"]
            assert printed is not None
            assert printed.because == "canonical_changed"
        assert await deployment.letters() == []
        told = deployment.run("lag", "--json")
        rows = [row for row in map(json.loads, told.stdout.splitlines()) if row["topic"] == deployment.topic(VERDICTS)]
        assert len(rows) == VERDICTS.partitions
        assert sum(row["records"] for row in rows) == 0


def unmarked(deployment: LocalDeployment, number: int, fetch: int) -> ProducerRecord:
    """Return a page that marks nothing of its frame. One article changes before the third fetch."""
    teaser = words(f"teaser {(number + fetch) % 3}", 9)
    article = words(f"article {number} {number == 3 and fetch == 2}", 200)
    body = f"<div>Read {number}{fetch} times</div><div>{teaser}</div><div>{article}</div>"
    return page(deployment, f"/{number}", body, fetch)


async def test_a_page_of_which_only_the_frame_changes_is_kept(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(), deployment.worker("decide"):
            for fetch in range(3):
                await deployment.send([unmarked(deployment, number, fetch) for number in range(12)])

                async def all_are_decided(at: datetime = FIRST + timedelta(minutes=fetch)) -> bool:
                    found = (await decisions(deployment)).values()
                    return sum(each is not None and each.observed_at == at for each in found) == 12

                await until(all_are_decided)
            found = await decisions(deployment)
            actions = {path: None if each is None else each.action for path, each in found.items()}
            assert actions == {f"/{number}": "refresh" if number == 3 else "keep" for number in range(12)}
            made = Deployment.of(deployment.settings)
            async with open_client(made.index_address().connection) as client:
                store = DecisionStore(client, deployment.settings.namespace)
                again = Deciding(
                    Decider(store, site_of), deployment.topic(DECISIONS), made.dead_letter_writer("decide")
                )
                known = await store.read_frame("default", "a.example")
                await again.decide(await deployment.read(VERDICTS.name))
                assert await store.read_frame("default", "a.example") == known
                assert known


async def until_decided(deployment: LocalDeployment, actions: dict[str, str | None], unchanged: int = 0) -> None:
    async def is_decided() -> bool:
        found = await decisions(deployment)
        known = {path: None if decision is None else decision.action for path, decision in found.items()}
        stays = found.get("/stays")
        return known == actions and (not unchanged or (stays is not None and stays.unchanged == unchanged))

    await until(is_decided)
