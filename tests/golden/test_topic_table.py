"""The topics and their settings, as documented."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nearstream.schemas.documents.signature import SIGNATURE_MAX_BYTES
from nearstream.schemas.topics.codec import decode_event, encode_json
from nearstream.schemas.topics.table import (
    ALERTS,
    ALL,
    DEAD_LETTERS,
    DECISIONS,
    DOCUMENTS,
    EVENT_TOPICS,
    LABELS_CHANGED,
    SIGNATURES,
    SILENCES,
)
from nearstream.schemas.verdicts.events import Containment, Event
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.passages import PASSAGES_MAX

ROOT = Path(__file__).parents[2]
DAY = 86_400
MIB = 1024 * 1024
TABLE = [  # name, clean-up, retention in seconds (None: index window and 7 days), partitions
    ("nearstream.documents.v1", "delete", 7 * DAY, 6),
    ("nearstream.signatures.v1", "compact,delete", None, 6),
    ("nearstream.verdicts.v1", "delete", 30 * DAY, 6),
    ("nearstream.near-duplicates.v1", "delete", 30 * DAY, 6),
    ("nearstream.containments.v1", "delete", 30 * DAY, 6),
    ("nearstream.versions.v1", "delete", 30 * DAY, 6),
    ("nearstream.overlaps.v1", "delete", 30 * DAY, 6),
    ("nearstream.decisions.v1", "compact,delete", 90 * DAY, 6),
    ("nearstream.alerts.v1", "delete", 7 * DAY, 1),
    ("nearstream.silences.v1", "compact,delete", 30 * DAY, 1),
    ("nearstream.labels-changed.v1", "delete", 30 * DAY, 6),
    ("nearstream.dead-letters.v1", "delete", 30 * DAY, 3),
]
VALUES = {
    "nearstream.verdicts.v1": {"DocumentVerdict", "Retraction"},
    "nearstream.near-duplicates.v1": {"ExactDuplicate", "NearDuplicate", "Retraction"},
    "nearstream.containments.v1": {"Containment", "Retraction"},
    "nearstream.versions.v1": {"Version", "Retraction"},
    "nearstream.overlaps.v1": {"Overlap", "Rearranged", "Retraction"},
}


def test_the_topic_table_matches_the_contract() -> None:
    assert [(each.name, each.cleanup, each.retention_seconds, each.partitions) for each in ALL] == TABLE
    assert {topic.name: set(topic.values) for topic in EVENT_TOPICS} == VALUES
    assert DOCUMENTS.max_message_bytes == 4 * MIB
    assert DEAD_LETTERS.max_message_bytes == 4 * MIB + 128 * 1024
    assert SIGNATURES.max_message_bytes >= SIGNATURE_MAX_BYTES


@pytest.mark.parametrize("kind", ["verdict", "containment"])
def test_the_largest_event_has_the_size_that_the_page_says(kind: str) -> None:
    text = "\U0001f600" * 512
    fields: dict[str, Any] = {
        "id": text,
        "url": "\x00" * 4096,  # six bytes each
        "lineage": text,
        "source": "a" * 63,
        "labels": {f"{number:031}": "\x00" * 128 for number in range(8)},
        "topic": "t" * 249,
        "partition": 2**31,
        "offset": 2**63,
    }
    event = decode_event((ROOT / f"schemas/examples/{kind}.json").read_bytes())
    if isinstance(event, Containment):
        assert isinstance(event.evidence.spans, tuple)
        evidence = replace(event.evidence, spans=event.evidence.spans * PASSAGES_MAX)
        sides = {side: replace(getattr(event, side), **fields) for side in ("newer", "older")}
        largest: Event = replace(event, **sides, evidence=evidence, new_spans=((2**20, 2**20),) * PASSAGES_MAX)
    else:
        assert isinstance(event, DocumentVerdict)
        assert event.of
        of = replace(event.of, **fields)
        largest = replace(event, **fields, collection="a" * 63, of=of, family=replace(event.family, founder=of))
    told = re.search(r"An event has 1 to 2 KB as a rule, and at most (\d+) KiB", (ROOT / "docs/events.md").read_text())
    assert told
    assert len(encode_json(largest)) < int(told[1]) * 1024 < EVENT_TOPICS[0].max_message_bytes


def test_retention_reaches_the_broker_in_milliseconds() -> None:
    for topic in ALL:
        expected = 1000 * (topic.retention_seconds or 100 + 7 * DAY)
        assert topic.config(100)["retention.ms"] == str(expected)


def test_documents_and_signatures_have_settings_of_their_own_where_an_index_never_forgets() -> None:
    documents, signatures = DOCUMENTS.config(0), SIGNATURES.config(0)
    assert (documents["retention.ms"], signatures["retention.ms"]) == (str(1000 * 7 * DAY), "-1")
    # The removals of a compacted topic outlive a rebuild.
    assert signatures["delete.retention.ms"] == str(1000 * 7 * DAY)
    assert "delete.retention.ms" not in documents
    # A document dated far ahead is refused. A signature has the time of its document, where another broker is behind.
    assert documents["message.timestamp.after.max.ms"] == "3600000"
    assert int(signatures["message.timestamp.after.max.ms"]) > 3_600_000


def test_the_broker_dates_what_workers_say_of_their_own() -> None:
    dated = {topic: topic.config(0)["message.timestamp.type"] for topic in ALL}
    assert dated == {
        **dict.fromkeys((DOCUMENTS, SIGNATURES), "CreateTime"),
        **dict.fromkeys((*EVENT_TOPICS, DECISIONS, ALERTS, SILENCES, LABELS_CHANGED, DEAD_LETTERS), "LogAppendTime"),
    }
