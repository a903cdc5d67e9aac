"""The topics: name, values, key, cleanup, retention, partitions, size limit."""

from dataclasses import dataclass

_DAY = 86_400
_MIB = 1024 * 1024
_HOUR_MS = 3_600_000

BY_SENDER, BY_BROKER = "CreateTime", "LogAppendTime"


@dataclass(frozen=True)
class Topic:
    """A topic with its settings."""

    name: str  # name without the configured prefix
    values: tuple[str, ...]  # what its records hold
    key: str  # what their keys are
    cleanup: str  # Kafka's `cleanup.policy`
    # How long records are kept. None: 7 days longer than documents are kept in the index.
    retention_seconds: int | None
    partitions: int  # number of partitions when the topic is created
    max_message_bytes: int = _MIB  # largest batch of records that the broker accepts, in bytes
    dated_by: str = BY_BROKER  # Kafka's `message.timestamp.type`: who dates the records, their sender or the broker

    def config(self, index_retention_seconds: int) -> dict[str, str]:
        """Return the settings of the topic on the broker, for an index that keeps documents so long, 0 for ever."""
        retention_ms = -1
        if self.retention_seconds is not None:
            retention_ms = 1000 * self.retention_seconds
        elif index_retention_seconds:
            retention_ms = 1000 * (index_retention_seconds + 7 * _DAY)
        config = {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
            "message.timestamp.type": self.dated_by,
        }
        if "compact" in self.cleanup:
            # A rebuild of the index must still read removals, even if it takes days.
            config["delete.retention.ms"] = str(1000 * 7 * _DAY)
        if self is DOCUMENTS:
            # A document without a time gets that of its record. Let the broker refuse a record dated in the year 9999.
            config["message.timestamp.after.max.ms"] = str(_HOUR_MS)
        if self is SIGNATURES:
            # A signature has the time of its document. Accept it also from a broker whose clock is behind.
            config["message.timestamp.after.max.ms"] = str(2 * _HOUR_MS)
        return config


def _of_events(name: str, *values: str, key: str = "document key of the newer") -> Topic:
    return Topic(name, (*values, "Retraction"), key, "delete", 30 * _DAY, partitions=6)


DOCUMENTS = Topic(
    "nearstream.documents.v1",
    ("Document", "raw bytes", "null (removal)"),
    "id, else lineage, or null",
    "delete",
    7 * _DAY,
    6,
    4 * _MIB,
    BY_SENDER,
)
SIGNATURES = Topic(
    "nearstream.signatures.v1",
    ("Signature", "Label", "null (removal)"),
    "document key, of a label with `label:` before it",
    "compact,delete",
    None,
    6,
    128 * 1024,
    BY_SENDER,
)
VERDICTS = _of_events("nearstream.verdicts.v1", "DocumentVerdict", key="document key")
NEAR_DUPLICATES = _of_events("nearstream.near-duplicates.v1", "ExactDuplicate", "NearDuplicate")
CONTAINMENTS = _of_events("nearstream.containments.v1", "Containment")
VERSIONS = _of_events("nearstream.versions.v1", "Version")
OVERLAPS = _of_events("nearstream.overlaps.v1", "Overlap", "Rearranged")
DECISIONS = Topic(
    "nearstream.decisions.v1",
    ("Decision", "null (the lineage was removed)"),
    "<collection>/<lineage>",
    "compact,delete",
    90 * _DAY,
    partitions=6,
)
ALERTS = Topic("nearstream.alerts.v1", ("Alert",), "<collection>/<name>/<subject>", "delete", 7 * _DAY, partitions=1)
SILENCES = Topic(
    "nearstream.silences.v1",
    ("Silence", "null (it was taken back)"),
    "<collection>/<name>/<subject>",
    "compact,delete",
    30 * _DAY,
    partitions=1,
)
LABELS_CHANGED = Topic(
    "nearstream.labels-changed.v1", ("LabelChange",), "<collection>/<family>", "delete", 30 * _DAY, partitions=6
)
DEAD_LETTERS = Topic(
    "nearstream.dead-letters.v1",
    ("the original bytes",),
    "the original key",
    "delete",
    30 * _DAY,
    3,
    4 * _MIB + 128 * 1024,
)

RELATION_TOPICS = (NEAR_DUPLICATES, CONTAINMENTS, VERSIONS, OVERLAPS)
EVENT_TOPICS = (VERDICTS, *RELATION_TOPICS)
ALL = (DOCUMENTS, SIGNATURES, *EVENT_TOPICS, DECISIONS, ALERTS, SILENCES, LABELS_CHANGED, DEAD_LETTERS)

_BY_KIND = {
    "verdict": (VERDICTS,),
    "exact_duplicate": (NEAR_DUPLICATES,),
    "near_duplicate": (NEAR_DUPLICATES,),
    "containment": (CONTAINMENTS,),
    "version": (VERSIONS,),
    "rearranged": (OVERLAPS,),
    "overlap": (OVERLAPS,),
    "retraction": EVENT_TOPICS,
}


def topics_of(kind: str) -> tuple[Topic, ...]:
    """Return the topics to which events of one kind are sent."""
    return _BY_KIND[kind]
