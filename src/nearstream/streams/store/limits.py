"""The bounds of an index, and the errors that it raises."""

from dataclasses import dataclass
from enum import StrEnum

# Buckets. The oldest entries of a bucket are its heads, which newer ones never displace.
BAND_CAP = 12  # entries of a band or digest bucket: the 6 oldest and the 6 newest
HEADS = 6  # of a band or digest bucket
ANCHOR_HEADS = 12
LINEAGE_CAP = 8

WALK = 64  # former states that are searched for the one that was current at a time
REMOVAL_MS = 3_600_000  # how long a removal refuses documents that were sent before it
LINKS_CAP = 64  # links to other families that a family remembers
LABELS_CAP = 64  # labelled documents of a family that are counted
ADDRESSES_CAP = 256  # senders of a family that are remembered, those seen last, and as many recipients
SITES_CAP = 256  # sites of a family that are counted
HOUR_MS, DAY_MS, WEEK_MS = 3_600_000, 86_400_000, 604_800_000
SLOT_MS = 300_000  # of time, in which joins are counted
WINDOWS_MS = (HOUR_MS, DAY_MS, WEEK_MS)


class IndexState(StrEnum):
    """Whether an index can be trusted."""

    READY = "ready"
    LOST = "lost"
    REBUILDING = "rebuilding"


class IndexUnavailableError(Exception):
    """The index cannot answer now. Wait, then repeat the call."""


class IndexBehindError(Exception):
    """The index has lost its newest writes of a partition.

    Match its records again from `checkpoint` + 1.

    Attributes:
        partition: Partition of the signatures topic.
        checkpoint: The last offset of this partition that the index knows, -1 if it knows none.
    """

    def __init__(self, partition: int, checkpoint: int) -> None:
        super().__init__(
            f"partition {partition}: the index has no writes after offset {checkpoint}; "
            f"match its signatures again from offset {checkpoint + 1}"
        )
        self.partition = partition
        self.checkpoint = checkpoint


class IndexLostError(Exception):
    """The index was emptied or replaced. Rebuild it from the signatures topic."""


@dataclass(frozen=True)
class IndexLimits:
    """Bounds of an index."""

    bucket_cap: int = 100  # most entries of an anchor bucket, at least 12
    candidates: int = 60  # Most candidates for one document. Digest and lineage matches do not count.
    retention_seconds: int = 2_592_000  # How long a document can be found. 0: for ever.
    documents: int = 1_000_000  # Live documents expected. This shapes the layout of the store and limits nothing.
    bands: int = 4  # Bands of a document in the scheme. This too shapes the layout of the store and limits nothing.
