"""An index in a file is handed to Kafka, and workers find there what it found."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nearstream.schemas.labels.label import Label
from nearstream.streams.matching.family import families_of
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.signature_records import label_record
from tests.support.deployment import EXAMPLES, deployed, ids
from tests.support.deployment import _new_topic as new_topic


async def test_workers_find_in_an_index_from_a_file_what_it_found(
    kafka: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Records of one partition arrive in their order, which decides who founds a family.
    of_one = lambda settings, topic: new_topic(settings, replace(topic, partitions=1))  # noqa: E731
    monkeypatch.setattr("tests.support.deployment._new_topic", of_one)
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        path = str(tmp_path / "index.db")
        scanned = deployment.run("scan", "--index", path, "--events", "--json", str(EXAMPLES / "documents.jsonl"))
        events = {event["event_id"]: event["type"] for event in map(json.loads, scanned.stdout.splitlines())}
        with Deployment.of(deployment.settings).index_file(path) as index:
            labelled = label_record("", "default/pep-0313@2003-04", Label(label="ham"), 1)
            index.keep(labelled.key or b"", labelled.value, 1)
            families = {each.family_id: each.size for each in await families_of(index.store, index.founders())}
        with deployment.worker():
            produced = deployment.run("produce", "--index", path)
            assert produced.returncode == 0, produced.stderr
            await deployment.drained()
        assert ids(await deployment.events()) == events.keys()
        found = await deployment.families()
        assert {each.family_id: each.size for each in found} == families
