"""The letters that the dead-letter topic holds: read, counted, found."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from schemas.kept_letter import KeptLetter, kept_letter
from schemas.record import Record
from schemas.topics import DEAD_LETTERS
from workers import kafka_offsets
from workers.kafka_offsets import partitions
from workers.kafka_records import between
from workers.kafka_tools import KafkaError, admin, consumer
from workers.replayed import Replayed, parsed
from workers.settings import Settings, SettingsError
from workers.show import Progress

NOT_OURS = "(no letter of nearstream)"
_PLACES = 3
_IDS_REMEMBERED = 100_000


class Stretch(NamedTuple):
    """Offsets of one partition of the dead-letter topic, from `start` up to, but without, `end`."""

    place: TopicPartition
    start: int
    end: int


@dataclass
class Seen:
    """Ids of the last letters: a redelivery writes the same one again, soon after the first."""

    _ids: dict[str, None] = field(default_factory=dict)

    def before(self, dead_id: str) -> bool:
        """Whether this id came before; it is remembered."""
        known = dead_id in self._ids
        self._ids[dead_id] = None
        if len(self._ids) > _IDS_REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return known


@dataclass
class Count:
    """Letters of one reason.

    Attributes:
        letters: How many.
        oldest_ms: When the first was written.
        newest_ms: When the last was written.
        newest: The last records, newest first, with the time of the letter about each.
        replayed: How many of them a replay has decided; None: it is not known.
    """

    letters: int = 0
    oldest_ms: int = 0
    newest_ms: int = 0
    newest: list[tuple[int, Record]] = field(default_factory=list)
    replayed: int | None = None

    def add(self, letter: Record, about: Record, replayed: bool | None) -> None:
        """Counts a letter and remembers the record that it is about."""
        if replayed is not None:
            self.replayed = (self.replayed or 0) + replayed
        written_ms = letter.timestamp_ms
        self.oldest_ms = min(self.oldest_ms, written_ms) if self.letters else written_ms
        self.newest_ms = max(self.newest_ms, written_ms)
        self.letters += 1
        self.newest.append((written_ms, about._replace(key=None, value=None, headers=[])))
        self.newest = sorted(self.newest, reverse=True)[:_PLACES]


async def stretches(settings: Settings, client: AIOKafkaConsumer, since_ms: int, wait_seconds: float) -> list[Stretch]:
    """What each partition holds now, from the first letter that was written at `since_ms` or later.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    places = await partitions(settings, [settings.topic_prefix + DEAD_LETTERS.name], wait_seconds)
    ends = await client.end_offsets(places)
    if not since_ms:
        begins = await client.beginning_offsets(places)
        return [Stretch(place, begins[place], ends[place]) for place in places]
    found = await client.offsets_for_times(dict.fromkeys(places, since_ms))
    starts = {place: ends[place] if found[place] is None else found[place].offset for place in places}
    return [Stretch(place, starts[place], ends[place]) for place in places]


async def read(client: AIOKafkaConsumer, stretch: Stretch) -> AsyncGenerator[tuple[Record, KeptLetter | None]]:
    """Records of a stretch, each with the letter that it is, if it is one."""
    async for record in between(client, *stretch):
        yield record, kept_letter(record)


async def decided(
    asking: AIOKafkaAdminClient, settings: Settings, places: Sequence[TopicPartition]
) -> dict[TopicPartition, Replayed]:
    """Which letters of each partition replays have decided.

    Raises:
        KafkaError: The group that remembers cannot be asked for.
        SettingsError: It belongs to someone else.
    """
    group = replay_group(settings)
    notes = await kafka_offsets.notes(asking, group, places)
    try:
        return {place: parsed(note) for place, note in notes.items()}
    except ValueError as error:
        raise SettingsError(f"group {group} belongs to someone else: {error}") from None


def replay_group(settings: Settings) -> str:
    """The group whose offsets remember; nobody is in it."""
    return f"{settings.group}.replay"


async def count(
    settings: Settings, reason: str, since_ms: int, wait_seconds: float, progress: Progress
) -> dict[str, Count]:
    """Letters by reason, the most frequent first; those of one reason, unless it is empty.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    counts: dict[str, Count] = {}
    seen = Seen()
    async with consumer(settings, wait_seconds) as client, admin(settings, wait_seconds) as asking:
        found = await stretches(settings, client, since_ms, wait_seconds)
        known = await _decided_if_told(asking, settings, [stretch.place for stretch in found])
        progress.total = sum(stretch.end - stretch.start for stretch in found)
        for stretch in found:
            before = known.get(stretch.place)
            async for record, letter in read(client, stretch):
                progress.step()
                told = letter.reason if letter else NOT_OURS
                if reason in ("", told) and not (letter and seen.before(letter.dead_id)):
                    replayed = before.covers(told, record.offset) if before else None
                    counts.setdefault(told, Count()).add(record, letter.original if letter else record, replayed)
    progress.end()
    return dict(sorted(counts.items(), key=lambda pair: -pair[1].letters))


async def _decided_if_told(
    asking: AIOKafkaAdminClient, settings: Settings, places: Sequence[TopicPartition]
) -> dict[TopicPartition, Replayed]:
    """The same, or nothing for who may read letters but has no right on that group."""
    try:
        return await decided(asking, settings, places)
    except KafkaError:
        return {}


async def find(settings: Settings, dead_id: str, wait_seconds: float) -> KeptLetter | None:
    """The first letter of this id.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    async with consumer(settings, wait_seconds) as client:
        for stretch in await stretches(settings, client, 0, wait_seconds):
            async for _, letter in read(client, stretch):
                if letter and letter.dead_id == dead_id:
                    return letter
    return None
