"""Which partitions are in work, and how long more records are waited for.

A batch has its own requests to Kafka and Redis, whether it holds one record or thirty. Where records come one by one,
each is taken at once. Where several come together, the broker waits a moment for more. Two or three batches share them,
so that one is decided while another one waits for the index.
"""

import asyncio
import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

LINGER_MS = 20  # at most
LINGER_BYTES = 256 * 1024  # for which a broker does not linger: more than arrives meanwhile, less than a backlog
_FIRST_LINGER_MS = 2
_SHARES = 8 / 3  # in which a full batch is divided
_SEVERAL = 3  # records of a batch, when they come faster than one by one

Partition = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass
class Claims:
    """The partitions of a topic whose records are in work.

    Attributes:
        partitions: These partitions. No other batch gets records of them.
        released: Set when some are free again.
        taking: Held by the one who takes a batch, because two fetches could return records of one partition.
        linger_ms: How long a broker shall wait for more records. 0: not at all.
    """

    partitions: set[Partition] = field(default_factory=set)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    linger_ms: int = 0
    _was_full: bool = False

    async def wait(self, seconds: float) -> None:
        """Wait until `released` is set, at most for this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.released.wait()

    def most(self, records: int) -> int:
        """Return how many of these records the next batch may have: a share, unless they fill one batch after another.

        One batch with records of all partitions would leave nothing for the next one to begin with.
        """
        return records if self._was_full or not self.linger_ms else math.ceil(records / _SHARES)

    def claim(self, partitions: Collection[Partition], records: int, most: int) -> None:
        """Claim the partitions of a batch, and learn from its size whether to linger.

        Args:
            partitions: The partitions of its records.
            records: How many it has.
            most: How many it may have.
        """
        self.partitions |= set(partitions)
        self._was_full = records >= most
        if records >= _SEVERAL:
            self.linger_ms = min(max(2 * self.linger_ms, _FIRST_LINGER_MS), LINGER_MS)
        elif records == 1:
            self.linger_ms = self.linger_ms // 2 if self.linger_ms > _FIRST_LINGER_MS else 0

    def release(self, partitions: Collection[Partition]) -> None:
        """Give the partitions of a batch free that is done or has failed."""
        self.partitions -= set(partitions)
        self.released.set()
