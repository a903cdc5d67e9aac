"""The store of an index: calls for many slots at once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

from nearstream.streams.store.families import Growth
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import (
    KEY_BYTES,
    Cover,
    Decided,
    Entry,
    FamilyView,
    Join,
    Leave,
    Mark,
    Measure,
    Note,
    Noted,
    Proposal,
    Query,
    Shortened,
    View,
)
from nearstream.streams.store.part import Part
from nearstream.streams.store.record import PATCH, lengthened
from nearstream.streams.store.registration import NUMBER_BYTES, Labelling, Put, Registered, Removal

_LIMITS = IndexLimits()
_KEPT_CAP = 1_024  # records of founders that a store remembers
CALL_CAP = 64  # items of a call, during which a server answers nobody else


class Call(NamedTuple):
    """A call of one slot."""

    slot: int  # the slot
    name: str  # the method of `Part` that answers each item
    # What it is given. The reply has one answer for each.
    items: Sequence[Any]  # each method has messages of its own
    # The partition of `signatures` on whose behalf the slot is written to. None: it is only read.
    partition: int | None = None


class Transport(Protocol):
    """Carries calls to slots."""

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls that run in any order, or at once.

        Raises:
            IndexUnavailableError: A slot does not answer. Any of the calls may have run.
            IndexBehindError: A slot has lost its newest writes.
            IndexLostError: A slot was emptied.
        """


class Position(NamedTuple):
    """The partition and offset of a record of the signatures topic."""

    partition: int
    offset: int


class Shape(NamedTuple):
    """How an index is spread."""

    slots: int = 1  # count of the slots
    partitions: int = 1  # count of the partitions of `signatures`, at least as many as slots

    def number(self, partition: int, offset: int) -> int:
        """Return the number of the state of a record. It is at least 1."""
        return (offset + 1) * self.partitions + partition

    def home(self, number: int) -> int:
        """Return the slot of a state."""
        return number % self.partitions % self.slots

    def slot_of(self, key: bytes) -> int:
        """Return the slot of a key."""
        return int.from_bytes(key[-2:], "big") % self.slots


class Store:
    """The calls of a store, each of which goes to all slots that it concerns.

    Every method has one answer for each item, in order, and raises what `Transport.all` raises.

    Attributes:
        shape: How the index is spread.
        limits: Bounds of the index.
        confirms: What is decided waits for a replica.
    """

    def __init__(
        self,
        transport: Transport,
        shape: Shape,
        limits: IndexLimits,
        *,
        confirms: bool = False,
        offsets: Iterator[int] | None = None,  # of documents that come from no topic, None: from 0 on
    ) -> None:
        self.shape = shape
        self.confirms = confirms
        self.limits = limits
        self._transport = transport
        self._kept: dict[int, bytes] = {}  # records of founders, the first one read in front
        self._offsets = offsets or count()

    def number(self, position: Position | None) -> int:
        """Return the number of the state of a record, or of one that comes from no topic.

        Raises:
            ValueError: The index has no such partition.
        """
        if position is not None and position.partition >= self.shape.partitions:
            raise ValueError(f"a partition below {self.shape.partitions} expected, not {position.partition}")
        return self.shape.number(*(position or (0, next(self._offsets))))

    async def register(self, batch: Sequence[Put | Removal | Labelling]) -> list[Registered]:
        """Store states and removals in order, and say which state of each document is current."""
        return await self._at_home("register", batch)

    async def fetch(self, batch: Sequence[Query]) -> list[View | None]:
        """Return what is known of each state."""
        views = await self._scatter("fetch", batch, self._home)
        founders = {_founder(view) for view in views if view is not None and _is_patch(view.record)}
        return await self._whole(views, founders) if founders else views

    async def _whole(self, views: Sequence[View | None], founders: set[int]) -> list[View | None]:
        """Return views with whole records. What needs a record that is not kept any more is gone."""
        kept = await self.kept(founders)
        return [_lengthened(view, kept) if view and _is_patch(view.record) else view for view in views]

    async def kept(self, founders: Collection[int]) -> dict[int, bytes]:
        """Return those records of founders that are kept."""
        unknown = sorted(founder for founder in founders if founder not in self._kept)
        answers = await self._scatter("kept", unknown, self.shape.home)
        self._kept |= {founder: record for founder, record in zip(unknown, answers, strict=True) if record}
        found = {founder: self._kept[founder] for founder in founders if founder in self._kept}
        while len(self._kept) > _KEPT_CAP:
            self._kept.pop(next(iter(self._kept)))
        return found

    async def note(self, batch: Sequence[Note]) -> list[Noted]:
        """Tell undecided states that another one goes on without them."""
        return await self._scatter("note", batch, self._home, _by)

    async def decide(self, batch: Sequence[Proposal]) -> list[Decided]:
        """Record decisions."""
        return await self._at_home("decide", batch)

    async def join(self, batch: Sequence[Join]) -> list[FamilyView]:
        """Count members once, keep the records of founders, and say who represents their families."""
        return await self._scatter("join", batch, self._home_of_founder, _number)

    async def leave(self, batch: Sequence[Leave]) -> list[int]:
        """Note that members have died, and return who represents their families now."""
        return await self._scatter("leave", batch, self._home_of_founder, _number)

    async def tidy(self, leaves: Sequence[Leave], entries: Sequence[Entry], records: Sequence[Shortened]) -> None:
        """Let states leave their families and their buckets, and store shorter records, in any order."""
        parts = [part for entry in entries for part in self._split(entry)]
        calls = (
            *self._calls("leave", leaves, self._home_of_founder, _number),
            *self._calls("withdraw", parts, self._slot, _number),
            *self._calls("shorten", records, self._home, _number),
        )
        if calls:
            await self._transport.all([call for call, _ in calls])

    async def mark(self, batch: Sequence[Mark]) -> None:
        """Remember labelled documents with their families."""
        await self._scatter("mark", batch, self._home_of_founder, _number)

    async def growth(self, batch: Sequence[Measure]) -> list[Growth | None]:
        """Return how families grow. None: nobody has joined that family."""
        return await self._scatter("growth", batch, self._home_of_founder)

    async def confirm(self, numbers: Iterable[int]) -> None:
        """Wait until replicas have what was written on behalf of these states, if the store is told to."""
        partitions = {number % self.shape.partitions for number in numbers} if self.confirms else ()
        calls = [Call(slot, "wait", [None], each) for slot in range(self.shape.slots) for each in sorted(partitions)]
        if calls:
            await self._transport.all(calls)

    async def cover(self, batch: Sequence[Cover]) -> None:
        """Tell every slot that everything up to these offsets is done."""
        slots = range(self.shape.slots)
        await self._transport.all([Call(slot, "cover", [one], one.partition) for one in batch for slot in slots])

    async def enter(self, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        """Add numbers to buckets.

        Returns:
            For each entry and each slot of its keys: the keys there, and what their buckets held before.
        """
        return await self._by_key("enter", batch)

    async def peek(self, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        """Return what buckets hold, as `enter` does."""
        return await self._by_key("peek", batch)

    async def _by_key(self, name: str, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        parts = [(place, part) for place, entry in enumerate(batch) for part in self._split(entry)]
        by = None if name == "peek" else _number
        replies = await self._scatter(name, [part for _, part in parts], self._slot, by)
        found: list[list[tuple[bytes, bytes]]] = [[] for _ in batch]
        for (place, part), reply in zip(parts, replies, strict=True):
            if reply:
                found[place].append((part.keys, reply))
        return found

    def _split(self, entry: Entry) -> list[Entry]:
        """Return the parts of an entry, each of which has the keys of one slot."""
        if self.shape.slots == 1:
            return [entry] if entry.keys else []
        by_slot: dict[int, list[bytes]] = {}
        for at in range(0, len(entry.keys), KEY_BYTES):
            key = entry.keys[at : at + KEY_BYTES]
            by_slot.setdefault(self.shape.slot_of(key), []).append(key)
        return [entry._replace(keys=b"".join(keys)) for keys in by_slot.values()]

    def _home(self, one: Any) -> int:  # noqa: ANN401 - any message that has a number
        return self.shape.home(one.number)

    def _home_of_founder(self, one: Any) -> int:  # noqa: ANN401 - any message that has a founder
        return self.shape.home(one.founder)

    def _slot(self, entry: Entry) -> int:
        return self.shape.slot_of(entry.keys[:KEY_BYTES])

    async def _at_home(self, name: str, batch: Sequence[Any]) -> list[Any]:
        return await self._scatter(name, batch, self._home, _number)

    async def _scatter(
        self, name: str, batch: Sequence[Any], slot_of: Callable[[Any], int], by: Callable[[Any], int] | None = None
    ) -> list[Any]:
        """Return the answers to items, each of which goes to a slot."""
        calls = self._calls(name, batch, slot_of, by)
        replies = await self._transport.all([call for call, _ in calls]) if calls else ()
        if len(calls) == 1:
            return list(replies[0])
        answers: list[Any] = [None] * len(batch)
        for (_, places), some in zip(calls, replies, strict=True):
            for place, reply in zip(places, some, strict=True):
                answers[place] = reply
        return answers

    def _calls(
        self, name: str, batch: Sequence[Any], slot_of: Callable[[Any], int], by: Callable[[Any], int] | None
    ) -> list[tuple[Call, list[int]]]:
        """Return calls for each slot and each writing partition, with the places of their items in the batch.

        `by` returns the number of the state on whose behalf an item is written, None: nothing is written.
        """
        (slots, partitions), places = self.shape, dict[tuple[int, int | None], list[int]]()
        for place, one in enumerate(batch):
            key = slot_of(one) if slots > 1 else 0, by(one) % partitions if by else None
            places.setdefault(key, []).append(place)
        parts = (
            (key, some[start : start + CALL_CAP])
            for key, some in places.items()
            for start in range(0, len(some), CALL_CAP)
        )
        return [(Call(slot, name, [batch[at] for at in part], partition), part) for (slot, partition), part in parts]


def _number(one: Any) -> int:  # noqa: ANN401 - any message that has a number
    number: int = one.number
    return number


def _by(note: Note) -> int:
    return note.by


def _is_patch(record: bytes | None) -> bool:
    return record is not None and record.startswith(PATCH)


def _founder(view: View) -> int:
    return int.from_bytes((view.decision or b"")[:NUMBER_BYTES], "big")


def _lengthened(view: View, kept: Mapping[int, bytes]) -> View:
    founder = kept.get(_founder(view))
    if founder is None or view.record is None:
        return view._replace(is_dead=True, is_gone=True, record=None)
    return view._replace(record=lengthened(view.record, founder))


class Local:
    """Carries calls to slots in this process."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls."""
        return [self._parts[call.slot].call(call.name, call.items) for call in calls]


def local_store(limits: IndexLimits = _LIMITS, clock: Callable[[], int] | None = None) -> Store:
    """Return a new store of one slot.

    Args:
        limits: Bounds of the index.
        clock: Returns milliseconds since 1970. None: the time is the largest `observed_ms` registered so far.
    """
    return Store(Local([Part(limits, clock)]), Shape(), limits)
