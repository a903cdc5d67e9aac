"""The table of topics: name, value, key, clean-up, retention, partitions, size limit."""

from dataclasses import dataclass

_DAY = 86_400
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Topic:
    """One row of the table; `retention_seconds` None: the index window and 7 days more."""

    name: str
    values: tuple[str, ...]
    key: str
    cleanup: str
    retention_seconds: int | None
    partitions: int
    max_message_bytes: int = _MIB

    def config(self, index_retention_seconds: int) -> dict[str, str]:
        """The topic's settings on the broker; an index retention of 0 keeps signatures for ever."""
        retention_ms = -1
        if self.retention_seconds is not None:
            retention_ms = 1000 * self.retention_seconds
        elif index_retention_seconds:
            retention_ms = 1000 * (index_retention_seconds + 7 * _DAY)
        config = {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
        }
        if "compact" in self.cleanup:
            # A rebuild that takes days must still see removals.
            config["delete.retention.ms"] = str(1000 * 7 * _DAY)
        if self is DOCUMENTS:
            # A record dated in the year 9999 would give its document that time.
            config["message.timestamp.after.max.ms"] = str(3_600_000)
        return config


def _of_events(name: str, *values: str) -> Topic:
    return Topic(name, (*values, "Retraction"), "document key of the newer", "delete", 30 * _DAY, partitions=6)


DOCUMENTS = Topic(
    "nearstream.documents.v1",
    ("Document", "raw bytes", "null (removal)"),
    "lineage, else id, or null",
    "delete",
    7 * _DAY,
    6,
    4 * _MIB,
)
SIGNATURES = Topic(
    "nearstream.signatures.v1", ("Signature", "null (removal)"), "document key", "compact,delete", None, 6, 128 * 1024
)
NEAR_DUPLICATES = _of_events("nearstream.near-duplicates.v1", "ExactDuplicate", "NearDuplicate")
CONTAINMENTS = _of_events("nearstream.containments.v1", "Containment")
VERSIONS = _of_events("nearstream.versions.v1", "Version")
OVERLAPS = _of_events("nearstream.overlaps.v1", "Overlap", "Rearranged")
DEAD_LETTERS = Topic(
    "nearstream.dead-letters.v1",
    ("the original bytes",),
    "the original key",
    "delete",
    30 * _DAY,
    3,
    4 * _MIB + 128 * 1024,
)

EVENT_TOPICS = (NEAR_DUPLICATES, CONTAINMENTS, VERSIONS, OVERLAPS)
ALL = (DOCUMENTS, SIGNATURES, *EVENT_TOPICS, DEAD_LETTERS)

_BY_KIND = {
    "exact_duplicate": NEAR_DUPLICATES,
    "near_duplicate": NEAR_DUPLICATES,
    "containment": CONTAINMENTS,
    "version": VERSIONS,
    "rearranged": OVERLAPS,
    "overlap": OVERLAPS,
}


def topic_of(kind: str) -> Topic:
    """The topic that carries relation events of this kind; KeyError if it is no relation."""
    return _BY_KIND[kind]
