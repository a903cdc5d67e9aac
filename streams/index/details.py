"""The details of a family that only checks ask for: its labels, and how many senders and recipients it has.

Addresses are keyed hashes of 8 bytes. Those of the mails that join a family are remembered for an hour.
"""

from dataclasses import dataclass, field

from nearstream.schemas.label import LabelState
from nearstream.streams.index.labels import LabelCounts


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
