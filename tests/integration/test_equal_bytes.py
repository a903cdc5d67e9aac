"""Events have equal bytes after replays and restarts, for any number of workers."""

import json
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.codec import decode_event, encode_json
from nearstream.schemas.topics.table import DOCUMENTS, EVENT_TOPICS
from nearstream.schemas.verdicts.events import RELATIONS, kind_of
from nearstream.workers.files.source import Item
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded
from tests.support.deployment import TEXTS, LocalDeployment, deployed

FAMILIES = 3
# The next state of a document comes last.
VARIANTS = ("whole", "copy", "changed", "part", "swapped", "shared", "whole")
WITHIN_SECONDS = 240
COUNTS = (1, 3)  # workers: one stops half-way, and three others go on


def waves(topic: str) -> list[list[ProducerRecord]]:
    """Return groups of records. No document is related to another one of its group.

    If each group is sent when the one before is done, relatives arrive in one order, whatever the workers are.
    """
    now_ms = time.time_ns() // 1_000_000
    made = []
    for place, variant in enumerate(VARIANTS):
        documents = [(f"{variant}-{number}", _text(number, variant, place > 0)) for number in range(FAMILIES)]
        if place == 0:
            documents.append(("removed", TEXTS[FAMILIES]))
        values = [(name.encode(), json.dumps({"id": name, "text": text}).encode()) for name, text in documents]
        made.append([ProducerRecord(topic, *each, [], now_ms + place) for each in values])
    return [*made, [ProducerRecord(topic, b"removed", None, [], now_ms + len(made))]]


def _text(number: int, variant: str, is_later: bool) -> str:
    words = TEXTS[number].split()
    half = len(words) // 2
    match variant:
        case "changed":
            words[half] = "replaced"
        case "part":
            words = words[:half]
        case "swapped":
            words = words[half:] + words[:half]
        case "shared":
            words = words[:half] + [f"{word}x" for word in words[half:]]
        case "whole" if is_later:
            words += ["It", "was", "changed", "on", "Monday."]
    return " ".join(words)


async def sent(deployment: LocalDeployment) -> Counter[bytes]:
    """Return how often each value was sent on the topics of events."""
    return Counter(record.value or b"" for record in await deployment.read(*(topic.name for topic in EVENT_TOPICS)))


async def of_one_process(deployment: LocalDeployment) -> set[bytes]:
    """Return what a single process sends about the documents of a deployment."""
    records = sorted(await deployment.read(DOCUMENTS.name), key=lambda record: record.timestamp_ms)
    job = embedded(Deployment.of(deployment.settings))
    outcomes = [outcome async for outcome in job.outcomes(Item("", record) for record in records)]
    told = [event for each in outcomes for event in (each.verdict, *each.events) if event]
    assert {kind_of(event) for event in told} >= {*RELATIONS, "verdict", "retraction"}
    return {encode_json(event) for event in told}


@pytest.mark.timeout(4 * WITHIN_SECONDS)
async def test_values_are_those_of_one_process_and_stay_so_in_a_replay(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        groups = waves(deployment.topic(DOCUMENTS))
        size = -(-len(groups) // len(COUNTS))
        for place, count in enumerate(COUNTS):
            with ExitStack() as running:
                for _ in range(count):
                    running.enter_context(deployment.worker())
                for group in groups[place * size : (place + 1) * size]:
                    await deployment.send(group)
                    await deployment.drained(WITHIN_SECONDS)
        first, expected = await sent(deployment), await of_one_process(deployment)
        assert first.keys() == expected
        assert len({decode_event(value).event_id for value in expected}) == len(expected)

        await deployment.rewind()
        with deployment.worker():
            await deployment.drained(WITHIN_SECONDS)
        again = await sent(deployment)
        assert again.keys() == expected
        assert again.total() > first.total()
