"""What is stored about families and their members, in dictionaries."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from nearstream.streams.index.details import ADDRESSES_CAP, hour_start
from nearstream.streams.index.family import SLOTS_MS, WINDOWS_MS, Pair


@dataclass(frozen=True, slots=True)
class Member:
    """What is stored about a state: a decision, or a presumption until then.

    Attributes:
        family: Number of the founder. Of a presumption: number of the representative, or its own number once the
            presumption was denied.
        ordinal: Its place in the family, 0 for a presumption.
        pairs: Its related documents.
        degraded: As in a `Decision`.
    """

    family: int
    ordinal: int
    pairs: tuple[Pair, ...] = ()
    degraded: tuple[bool, bool] = (False, False)


@dataclass(slots=True)
class Addresses:
    """The senders of a family, or its recipients.

    Attributes:
        seen_ms: Keyed hashes of addresses, and when a document of each joined last.
    """

    seen_ms: dict[bytes, int] = field(default_factory=dict)

    def note(self, seen_ms: Mapping[bytes, int], now_ms: int) -> None:
        """Remember addresses, and forget those that no answer counts any more."""
        if not seen_ms:
            return
        merged = dict(self.seen_ms)
        for address, at_ms in seen_ms.items():
            merged[address] = max(at_ms, merged.get(address, at_ms))
        recent = [(at_ms, address) for address, at_ms in merged.items() if at_ms >= hour_start(now_ms)]
        self.seen_ms = {address: at_ms for at_ms, address in sorted(recent)[-ADDRESSES_CAP:]}

    def count(self, now_ms: int) -> int:
        """Return how many were seen within the last hour."""
        return sum(at_ms >= hour_start(now_ms) for at_ms in self.seen_ms.values())


@dataclass(slots=True)
class Facts:
    """A family of two members or more.

    Attributes:
        family_id: 32 hex characters.
        first_seen_ms: When the founder was observed.
        representative: Number of the state that represents it, maybe dead. 0: none lives.
        log: By ordinal - 1, the number of the member's current state, 0 once it has left. Members of a family that
            joined this one as a whole follow its founder.
        is_bare: The representative took the place of another and may be in few buckets.
        head: Members before this index of the log have left or expired.
        left: How many have.
        last_ms: Time of the last join.
        slots: Joins by width of the slot and its start.
        sent: Relations to other families of which events were sent.
        senders: Who sent the documents that joined.
        recipients: Who received them.
    """

    family_id: str
    first_seen_ms: int
    representative: int
    log: list[int]
    is_bare: bool = False
    head: int = 0
    left: int = 0
    last_ms: int = 0
    slots: Counter[tuple[int, int]] = field(default_factory=Counter)
    sent: list[tuple[str, int]] = field(default_factory=list)
    senders: Addresses = field(default_factory=Addresses)
    recipients: Addresses = field(default_factory=Addresses)

    @property
    def size(self) -> int:
        """Members that have not left."""
        return len(self.log) - self.left

    def place(self, number: int, ordinal: int) -> int | None:
        """Return the index of a member in the log, or None."""
        if 0 < ordinal <= len(self.log) and self.log[ordinal - 1] == number:
            return ordinal - 1
        return self.log.index(number) if number in self.log else None

    def drop(self, place: int) -> None:
        """Note that the member at this index has left."""
        self.left += self.log[place] != 0
        self.log[place] = 0

    def put(self, place: int, number: int) -> None:
        """Note the current state of the member at this index, which may have left."""
        self.left -= self.log[place] == 0
        self.log[place] = number
        self.head = min(self.head, place)

    def count(self, now_ms: int) -> None:
        """Count a join in each window, and drop the slots that no window reaches."""
        self.last_ms = now_ms
        for width, window in zip(SLOTS_MS, WINDOWS_MS, strict=True):
            self.slots[width, now_ms // width] += 1
            for slot in [slot for slot in self.slots if slot[0] == width and slot[1] <= (now_ms - window) // width]:
                del self.slots[slot]

    def joined(self, now_ms: int) -> tuple[int, int, int]:
        """Return how many joined within the last hour, day and week."""
        hour, day, week = (
            sum(
                count for slot, count in self.slots.items() if slot[0] == width and slot[1] > (now_ms - window) // width
            )
            for width, window in zip(SLOTS_MS, WINDOWS_MS, strict=True)
        )
        return hour, day, week
