"""The requests to brokers that docs/operations.md lists are those that are sent."""

import os
import re
from pathlib import Path

import pytest

from tests.support.deployment import TEXTS, deployed, until

ROOT = Path(__file__).parents[2]
HEARTBEAT = 12
# Python imports a module of this name at its start, also in the processes of a deployment.
RECORDING = """
import os
try:
    from aiokafka.protocol.api import Request
except ImportError:
    pass
else:
    prepare, sent = Request.prepare, set()

    def noted(self, versions):
        struct = prepare(self, versions)
        pair = self.API_KEY, struct.API_VERSION
        if pair not in sent:
            sent.add(pair)
            with open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.sent"), "a") as file:
                file.write("%d %d\\n" % pair)
        return struct

    Request.prepare = noted
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a folder in which each process notes its requests."""
    (tmp_path / "sitecustomize.py").write_text(RECORDING)
    return tmp_path


def sent_requests(folder: Path) -> dict[int, list[int]]:
    """Return the versions of each request by its key."""
    sent = {tuple(map(int, line.split())) for file in folder.glob("*.sent") for line in file.read_text().splitlines()}
    return {key: sorted(version for each, version in sent if each == key) for key, _ in sent}


async def test_brokers_get_the_requests_that_are_listed(kafka: str, redis_url: str, recorded: Path) -> None:
    async def has_heartbeat() -> bool:
        return HEARTBEAT in sent_requests(recorded)

    async with deployed(kafka, redis_url, recorded) as deployment:
        noting = {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(recorded), deployment.environment.get("PYTHONPATH")]))
        }
        deployment.environment.update(noting)
        with deployment.worker():
            await deployment.send([deployment.document(name, TEXTS[0]) for name in ("a", "b")])
            await deployment.drained()
            deployment.run("doctor")
            await until(has_heartbeat, 60)
        deployment.changed(topic_prefix=f"{deployment.settings.topic_prefix}.other.").run("topics", "create")
    page = " ".join((ROOT / "docs/operations.md").read_text().split())
    told = page.partition("the versions sent to Kafka 4.1: ")[2].partition(". ")[0]
    rows = re.findall(r"\w+ \((\d+)\) (\d+(?: and \d+)?)", told)
    assert sent_requests(recorded) == {
        int(key): [int(version) for version in versions.split(" and ")] for key, versions in rows
    }
