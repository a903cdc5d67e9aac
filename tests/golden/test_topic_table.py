"""The topics and their settings, as documented."""

import pytest

from nearstream.schemas.codec import SIGNATURE_MAX_BYTES
from nearstream.schemas.topics import ALERTS, ALL, DEAD_LETTERS, DECISIONS, DOCUMENTS, EVENT_TOPICS, SIGNATURES, Topic

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


def test_every_event_topic_says_what_it_carries() -> None:
    assert {topic.name: set(topic.values) for topic in EVENT_TOPICS} == VALUES


def test_size_limits_follow_the_contract() -> None:
    assert DOCUMENTS.max_message_bytes == 4 * MIB
    assert DEAD_LETTERS.max_message_bytes == 4 * MIB + 128 * 1024
    assert all(topic.max_message_bytes >= 16 * 1024 for topic in EVENT_TOPICS)


def test_a_signature_of_the_largest_size_fits_its_topic() -> None:
    assert SIGNATURES.max_message_bytes >= SIGNATURE_MAX_BYTES


@pytest.mark.parametrize("topic", ALL, ids=lambda topic: topic.name)
def test_retention_reaches_the_broker_in_milliseconds(topic: Topic) -> None:
    expected = 1000 * (topic.retention_seconds or 100 + 7 * DAY)
    assert topic.config(100)["retention.ms"] == str(expected)


def test_an_index_that_never_forgets_keeps_signatures_for_ever() -> None:
    assert SIGNATURES.config(0)["retention.ms"] == "-1"
    assert DOCUMENTS.config(0)["retention.ms"] == str(1000 * 7 * DAY)


def test_removals_of_a_compacted_topic_outlive_a_rebuild() -> None:
    assert SIGNATURES.config(0)["delete.retention.ms"] == str(1000 * 7 * DAY)
    assert "delete.retention.ms" not in DOCUMENTS.config(0)


def test_a_document_dated_far_ahead_is_refused_by_the_broker() -> None:
    assert DOCUMENTS.config(0)["message.timestamp.after.max.ms"] == "3600000"


def test_a_signature_has_the_time_of_its_document_even_where_another_broker_is_behind() -> None:
    assert int(SIGNATURES.config(0)["message.timestamp.after.max.ms"]) > 3_600_000


def test_the_broker_dates_what_workers_say_of_their_own() -> None:
    dated = {topic: topic.config(0)["message.timestamp.type"] for topic in ALL}
    assert dated == {
        **dict.fromkeys((DOCUMENTS, SIGNATURES), "CreateTime"),
        **dict.fromkeys((*EVENT_TOPICS, DECISIONS, ALERTS, DEAD_LETTERS), "LogAppendTime"),
    }
