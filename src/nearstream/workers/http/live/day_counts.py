"""Count the verdicts of a day from the offsets of their topic, without reading them."""

from collections.abc import Sequence
from itertools import pairwise

from nearstream.workers.kafka.client import AIOKafkaConsumer, TopicPartition
from nearstream.workers.kafka.records import offsets_since

SLOT_SECONDS = 1_800
SLOTS = 48


class DayCounts:
    """The verdicts sent in each half hour of the last day."""

    def __init__(self, client: AIOKafkaConsumer, partitions: Sequence[TopicPartition]) -> None:
        """Start without counts.

        Args:
            client: A connected consumer without a group.
            partitions: The partitions of the topic.
        """
        self._client, self._partitions = client, partitions
        self._places: dict[int, int] = {}  # the sum of the offsets at the begin of a slot, by number of the slot

    async def read(self, now_ms: int) -> tuple[int, ...]:
        """Return the number of records in each slot, the running one last.

        Raises:
            KafkaError: No broker answers.
        """
        last = now_ms // (1000 * SLOT_SECONDS)
        wanted = range(last - SLOTS + 1, last + 1)
        self._places = {slot: place for slot, place in self._places.items() if slot in wanted}
        for slot in wanted:
            if slot not in self._places:
                found = await offsets_since(self._client, self._partitions, slot * 1000 * SLOT_SECONDS)
                self._places[slot] = sum(found.values())
        end = sum((await self._client.end_offsets(self._partitions)).values())
        places = [*(self._places[slot] for slot in wanted), end]
        return tuple(max(after - before, 0) for before, after in pairwise(places))
