"""The details of a family that only checks ask for: its labels, and how many senders and recipients it has.

Addresses are keyed hashes of 8 bytes. Those of the mails that join a family are remembered for an hour.
"""

from dataclasses import dataclass, field

from nearstream.schemas.document import ADDRESS_BYTES
from nearstream.schemas.label import LabelState
from nearstream.streams.index.family import SLOTS_MS, WINDOWS_MS
from nearstream.streams.index.labels import LabelCounts

ADDRESSES_CAP = 256  # senders of a family that are remembered, those seen last, and as many recipients


@dataclass(frozen=True)
class FamilyDetails:
    """Details of a family.

    Attributes:
        labels: The labels of its documents.
        senders: Distinct senders of the documents that joined within the last hour, at most 256.
        recipients: Distinct recipients of these, at most 256.
        label_state: `suspended`: the labels do not count, because too many match them. `confirmed`: they count all the
            same. Else empty.
    """

    labels: LabelCounts = field(default_factory=LabelCounts)
    senders: int = 0
    recipients: int = 0
    label_state: LabelState = ""


def hour_start(now_ms: int) -> int:
    """Return the time from which on joins belong to the last hour.

    It is the beginning of a slot in which joins are counted, so no family has more senders than joins.
    """
    width, window = SLOTS_MS[0], WINDOWS_MS[0]
    return ((now_ms - window) // width + 1) * width


def unpack_addresses(packed: bytes) -> list[bytes]:
    """Return addresses that a signature holds one after the other."""
    return [packed[at : at + ADDRESS_BYTES] for at in range(0, len(packed), ADDRESS_BYTES)]
