"""The example consumers print each verdict once and take back those about removed documents."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, VERDICTS
from tests.devstack.npm import find_node, npm_packages
from tests.support.deployment import TEXTS, LocalDeployment, deployed

pytestmark = pytest.mark.foreign

EXAMPLES = Path(__file__).parents[2] / "examples"
END_SECONDS = 120


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the command of each consumer. Node.js finds packages beside the file that it runs."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(npm_packages() / "node_modules")
    shutil.copy(EXAMPLES / "consumer.mjs", folder)
    return {
        "Python": [sys.executable, str(EXAMPLES / "consumer.py")],
        "Node.js": [find_node(), str(folder / "consumer.mjs")],
    }


def _printed(command: list[str], deployment: LocalDeployment) -> list[str]:
    arguments = [deployment.settings.kafka, "--topic", deployment.topic(VERDICTS), "--until-end"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=END_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def test_both_consumers_print_what_the_verdicts_say(
    kafka: str, redis_url: str, tmp_path: Path, commands: dict[str, list[str]]
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        assert [_printed(command, deployment) for command in commands.values()] == [[], []]
        with deployment.worker():
            for name, number in (("a", 0), ("b", 0), ("c № 3", 1)):
                await deployment.send([deployment.document(name, TEXTS[number])])
                await deployment.drained()
            await deployment.send([ProducerRecord(topic, b"b", None, [])])
            await deployment.drained()
            await deployment.send([deployment.document("b", TEXTS[0])])
            await deployment.drained()
        # A redelivery gives a verdict again, with equal bytes, also after the document was removed.
        records = await deployment.read(VERDICTS.name)
        repeated = [record for record in records if json.loads(record.value or b"")["type"] == "verdict"]
        unknown = [ProducerRecord(deployment.topic(VERDICTS), b"default/a", b'{"type": "later", "id": 7}', [])]
        again = [ProducerRecord(record.topic, record.key, record.value, record.headers) for record in repeated]
        await deployment.send([*again, *unknown])

        for name, command in commands.items():
            expected = ["+\tunique\ta\t", "+\tunique\tc № 3\t", "+\texact_duplicate\tb\ta", "-\texact_duplicate\tb\ta"]
            assert sorted(_printed(command, deployment)) == sorted([*expected, "+\texact_duplicate\tb\ta"]), name
