"""A real Prometheus scrapes live workers, and a real Alertmanager gets the storm."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from tests.devstack.prometheus import alertmanager_server, prometheus_server
from tests.devstack.server import free_ports, running
from tests.support.dashboards import RULES, expressions
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

TOKEN = "a-token-of-this-test"  # noqa: S105 - of a test
STORM = "[duplicate_storm]\nlimit = 8\nwindow_seconds = 3600\n"
WORDS = TEXTS[0].split()[:150]
WITHIN_SECONDS = 120.0


async def get(session: aiohttp.ClientSession, url: str, **parameters: str) -> Any:  # noqa: ANN401 - JSON
    async with session.get(url, params=parameters) as response:
        return await response.json()


async def series(session: aiohttp.ClientSession, prometheus: str, expression: str) -> list[Any]:
    """Return the series that an expression gives now."""
    answer = await get(session, f"http://{prometheus}/api/v1/query", query=expression)
    assert answer["status"] == "success", (expression, answer)
    found: list[Any] = answer["data"]["result"]
    return found


def documents(deployment: LocalDeployment) -> list[ProducerRecord]:
    """Return the example documents, a storm of copies, and records that cannot be read."""
    copies = [json.dumps({"id": f"copy-{number}", "text": " ".join([*WORDS, f"no{number}"])}) for number in range(14)]
    broken = [ProducerRecord(deployment.topic(DOCUMENTS), None, b"{", []) for _ in range(3)]
    return [*deployment.examples([*LINES[:40], *map(str.encode, copies)]), *broken]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as opened:
        yield opened


async def test_every_expression_has_a_series_and_the_storm_reaches_alertmanager(
    kafka: str, redis_url: str, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    (tmp_path / "alerts.toml").write_text(STORM)
    places = [f"127.0.0.1:{port}" for port in free_ports(3)]

    given = {"alerts": str(tmp_path / "alerts.toml"), "status_token": TOKEN}
    async with deployed(kafka, redis_url, tmp_path, **given) as deployment:
        alertmanager = alertmanager_server(tmp_path / "alertmanager")
        with (
            deployment.worker("all", NEARSTREAM_STATUS=places[0]) as worker,
            deployment.worker("alert", NEARSTREAM_STATUS=places[1]),
            deployment.worker("serve", ("nearstream",), NEARSTREAM_API=places[2], NEARSTREAM_API_TOKEN=TOKEN),
            running(alertmanager),
            running(prometheus_server(tmp_path / "prometheus", places, TOKEN, alertmanager.address)) as prometheus,
        ):
            await deployment.send(documents(deployment))

            async def storm_arrived() -> bool:
                found = await get(session, f"http://{alertmanager.address}/api/v2/alerts")
                return "DuplicateStorm" in {alert["labels"]["alertname"] for alert in found}

            await until(storm_arrived, WITHIN_SECONDS)
            recorded = [rule["record"] for rule in RULES if "record" in rule]
            of_rules = {rule["expr"] for rule in RULES}
            wanted = [each for each in expressions() if each not in of_rules]
            waiting = {each.replace("$__rate_interval", "1m") for each in (*recorded, *wanted)}
            async with asyncio.timeout(WITHIN_SECONDS):
                while waiting:
                    waiting = {each for each in waiting if not await series(session, prometheus.address, each)}
                    await asyncio.sleep(0.2 if waiting else 0)
            groups = (await get(session, f"http://{prometheus.address}/api/v1/rules"))["data"]["groups"]
            health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
            assert health == dict.fromkeys((rule.get("record") or rule["alert"] for rule in RULES), "ok")
            worker.kill()
            await deployment.send([deployment.document("late", TEXTS[0])])
            seen = ('nearstream:lag_records:sum{role="sign"} > 0', "nearstream:workers:serving == 0")
            seen += ('nearstream:lag_records:sum{role="alert"}', 'nearstream_workers{role="all", state="gone"} == 1')
            async with asyncio.timeout(WITHIN_SECONDS):
                while not all([await series(session, prometheus.address, each) for each in seen]):
                    await asyncio.sleep(0.2)
