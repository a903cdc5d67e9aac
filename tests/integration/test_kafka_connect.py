"""Kafka Connect sends documents with the settings of the examples in deploy."""

import json
import re
from pathlib import Path

import pytest

from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from tests.devstack.connect import connect_server
from tests.devstack.server import running
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

WITHIN_SECONDS = 240
CONNECTORS = Path(__file__).parents[2] / "deploy/connect"
SHOWN = [
    dict(line.split("=", 1) for line in (CONNECTORS / f"{name}.properties").read_text().splitlines()[1:])
    for name in ("json-lines", "text-lines", "states")
]
NOTICE = " ".join(TEXTS[4].split())
CHANGED = f"{NOTICE} The committee has moved the meeting to the following Monday."
LARGE = json.dumps({"id": "large", "text": TEXTS[3], "unknown": "x" * 1_100_000})
FILES = {
    "documents.jsonl": [*(line.decode() for line in LINES[:3]), LARGE],
    "messages.txt": [" ".join(text.split()) for text in TEXTS[5:7]],
    "notice.txt": [NOTICE, CHANGED],
}
IDS = re.findall(r'"id": "([^"]+)"', "\n".join(FILES["documents.jsonl"]))


def connector(shown: dict[str, str], folder: Path, deployment: LocalDeployment, **changed: str) -> str:
    """Return the properties of an example for a deployment, with a file that holds the documents."""
    file = folder / shown["file"]
    file.write_text("".join(f"{line}\n" for line in FILES[shown["file"]]))
    given = shown | {"file": str(file), "topic": deployment.settings.topic_prefix + shown["topic"]}
    return "".join(f"{name}={value}\n" for name, value in {**given, **changed}.items())


@pytest.mark.timeout(3 * WITHIN_SECONDS)
async def test_documents_from_every_example_of_a_connector_get_their_verdicts(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with (
        deployed(kafka, redis_url, tmp_path) as deployment,
        deployed(kafka, redis_url, tmp_path, fields="id=payload.id text=payload.text") as enveloped,
    ):
        connectors = {shown["name"]: connector(shown, tmp_path, deployment) for shown in SHOWN}
        envelope = {"name": "envelope", "value.converter.schemas.enable": "true"}
        connectors["envelope"] = connector(SHOWN[-1], tmp_path, enveloped, **envelope)

        server = connect_server(tmp_path / "connect", kafka, connectors)

        async def all_sent() -> bool:
            assert server.pid, (tmp_path / "connect/connect.log").read_text()
            sent, in_envelope = [await each.read(DOCUMENTS.name) for each in (deployment, enveloped)]
            expected = sum(map(len, FILES.values())), len(FILES["notice.txt"])
            return (len({record.value for record in sent}), len({record.value for record in in_envelope})) == expected

        with running(server):
            await until(all_sent, WITHIN_SECONDS)
        for each in (deployment, enveloped):
            with each.worker():
                await each.drained(WITHIN_SECONDS)
        assert [*await deployment.letters(), *await enveloped.letters()] == []
        verdicts = await deployment.verdicts()
        assert {verdict.id for verdict in verdicts} > {*IDS, "notice-board"}
        assert {verdict.source for verdict in verdicts} == {"peps", "connect", None}
        assert len({verdict.id for verdict in verdicts if verdict.source == "connect"}) == len(FILES["messages.txt"])
        _check_states(verdicts)
        _check_states(await enveloped.verdicts())


def _check_states(verdicts: list[DocumentVerdict]) -> None:
    """Check that the lines of one file became two states of one document, in one partition by its key."""
    about = [each for each in verdicts if each.id == "notice-board" and each.verdict != "unchanged"]  # sent twice
    first, second, *_ = sorted(about, key=lambda verdict: verdict.offset or 0)
    assert (first.verdict, second.verdict) == ("unique", "version")
    assert second.of is not None
    assert (second.of.version, second.of.partition) == (first.version, second.partition)
