"""What an agent offers for the case that its index lost its newest writes, as after a failover."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple, Protocol

from schemas.record import Outgoing


class Lost(NamedTuple):
    """Records whose admission is lost.

    Attributes:
        partition: Of the topic that is matched.
        checkpoint: Last offset that the index knows; -1: none.
        end: Offset behind the last one that is lost.
    """

    partition: int
    checkpoint: int
    end: int


class Recovery(Protocol):
    """How it is found out, and made good."""

    async def lost(self, partitions: Collection[int]) -> Sequence[Lost]:
        """What the index lost of these partitions, as far as this worker knows that it was there.

        Raises:
            IndexUnavailableError: Wait, then ask again.
            IndexLostError: The index was emptied.
        """

    def catch_up(self, lost: Lost) -> AsyncIterator[Sequence[Outgoing]]:
        """Admits it again, part by part; what it said is to be delivered again.

        Raises:
            As `lost`, or IndexBehindError: The index lost more meanwhile.
        """
