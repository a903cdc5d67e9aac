"""A family in memory: who belongs to it, who represents it, and how fast it grows."""

from collections import Counter
from dataclasses import dataclass

from nearstream.schemas.documents.document import ADDRESS_BYTES
from nearstream.streams.store.limits import (
    ADDRESSES_CAP,
    HOUR_MS,
    LABELS_CAP,
    LINKS_CAP,
    SITES_CAP,
    SLOT_MS,
    WEEK_MS,
    WINDOWS_MS,
)
from nearstream.streams.store.messages import LINK_BYTES, FamilyView, Join


def hour_start(now_ms: int) -> int:
    """Return the time from which on joins belong to the last hour.

    It is the beginning of a slot in which joins are counted, so no family has more senders than joins.
    """
    return ((now_ms - HOUR_MS) // SLOT_MS + 1) * SLOT_MS


@dataclass(frozen=True)
class Growth:
    """Size and growth of a family."""

    family_id: bytes  # 16 bytes
    founder: int  # number of the state that founded it
    representative: int  # number of the state that represents it, 0 if none lives
    size: int  # members that live
    first_seen_ms: int  # when the founder was observed, in milliseconds since 1970
    last_ms: int  # when the last member joined, by the time of the store
    now_ms: int  # the time of this answer
    # How many joined within each slot of `SLOT_MS` of the last week: time divided by its length, and count.
    joins: tuple[tuple[int, int], ...]
    senders: int = 0  # distinct senders of the mails that joined within the last hour, at most 256
    recipients: int = 0  # distinct recipients of these, at most 256
    # Labelled documents that joined it: hash of the document key, number, label.
    marks: tuple[tuple[bytes, int, bytes], ...] = ()
    sites: int = 0  # distinct sites of all that have joined, at most `SITES_CAP`

    @property
    def joined(self) -> tuple[int, int, int]:
        """How many joined within the last hour, day and week."""
        hour, day, week = (
            sum(count for slot, count in self.joins if slot > (self.now_ms - window) // SLOT_MS)
            for window in WINDOWS_MS
        )
        return hour, day, week


class Family:
    """A family that a second member, or a link to another family, has made known.

    Attributes:
        family_id: 16 bytes, none until somebody joins.
        first_seen_ms: When the founder was observed, 0 until somebody joins.
        representative: The state that represents it, 0 if none lives.
        is_bare: The representative took the place of another and may be in few buckets.
        last_ms: When the last state joined, by the time of the store.
    """

    def __init__(self, founder: int, now_ms: int, *, lives: bool) -> None:
        """Create the family of a founder, which may be dead."""
        self.family_id, self.first_seen_ms = b"", 0
        self.representative, self.is_bare = (founder if lives else 0), False
        self._founder = founder
        self.ordinals = {founder: 1}
        self._count = 1
        self.left: set[int] = set() if lives else {founder}
        self._links: dict[bytes, int] = {}  # who had each link first
        self._joins: Counter[int] = Counter()  # by slot of time
        self.last_ms = now_ms
        self._addresses: tuple[dict[bytes, int], dict[bytes, int]] = {}, {}
        self._marks: dict[bytes, tuple[int, bytes]] = {}
        self._sites: dict[bytes, int] = {}  # the ordinal of the first member of each

    @property
    def living(self) -> set[int]:
        """The members that live."""
        return self.ordinals.keys() - self.left

    def view(self, asker: int) -> FamilyView:
        """Return what others need to know of it, with the ordinal of one of them."""
        ordinal = self.ordinals.get(asker, 0)
        sites = self._count_sites(ordinal)
        return FamilyView(self.representative, self.is_bare, ordinal, self.family_id, self.first_seen_ms, sites)

    def join(self, join: Join, now_ms: int) -> FamilyView:
        """Count a member once."""
        number = join.number
        if not self.family_id:
            self.family_id, self.first_seen_ms = join.family_id, join.first_seen_ms
            self._add_site(join.first_site, 1)
        if number not in self.ordinals:
            ordinal = self.ordinals.get(join.instead, 0)  # another state of a document keeps its place
            if not ordinal:
                self._count += 1
                ordinal = self._count
                self._grow(join, now_ms)
                self._add_site(join.site, ordinal)
            self.last_ms = max(now_ms, self.last_ms)
            self.ordinals[number] = ordinal
        links = [join.links[at : at + LINK_BYTES] for at in range(0, len(join.links), LINK_BYTES)]
        for link in links:
            if link not in self._links and len(self._links) < LINKS_CAP:
                self._links[link] = number
        if join.is_dead:
            self.leave(number)
        elif number not in self.left:
            self._represent(number, is_full=join.is_full)
        return self.view(number)._replace(new_links=tuple(self._links.get(link, number) == number for link in links))

    def leave(self, number: int) -> int:
        """Note that a member has died, also before it joins, and return who represents the family."""
        self.left.add(number)
        if self.representative == number:
            # The newest, because older ones may have expired, which nobody has told the family.
            self.representative = max(self.living, key=lambda each: (self.ordinals[each], each), default=0)
            self.is_bare = True
        return self.representative

    def forget(self, number: int) -> None:
        """Forget a member that nothing is left of."""
        if number != self.representative:
            self.ordinals.pop(number, None)
            self.left.discard(number)

    def return_of(self, founder: int) -> None:
        """Take back that the founder has died."""
        self.left.discard(founder)

    def mark(self, document: bytes, number: int, label: bytes) -> None:
        """Remember a labelled document, or forget it if its label is empty."""
        self._marks.pop(document, None)
        if label:
            self._marks[document] = number, label
        while len(self._marks) > LABELS_CAP:
            del self._marks[next(iter(self._marks))]

    def growth(self, now_ms: int) -> Growth:
        """Return its size and how it grows."""
        senders, recipients = (sum(at >= hour_start(now_ms) for at in seen.values()) for seen in self._addresses)
        return Growth(
            self.family_id,
            self._founder,
            self.representative,
            len(self.living),
            self.first_seen_ms,
            self.last_ms,
            now_ms,
            tuple(self._joins.items()),
            senders,
            recipients,
            tuple((document, number, label) for document, (number, label) in self._marks.items()),
            len(self._sites),
        )

    def _add_site(self, site: bytes, ordinal: int) -> None:
        if site and len(self._sites) < SITES_CAP:
            self._sites.setdefault(site, ordinal)

    def _count_sites(self, ordinal: int) -> int:
        """Return how many sites had a member when that of an ordinal joined."""
        return sum(first <= ordinal for first in self._sites.values())

    def _represent(self, number: int, *, is_full: bool) -> None:
        if not self.representative:
            self.representative, self.is_bare = number, not is_full
        elif self.is_bare and is_full:
            self.representative, self.is_bare = number, False

    def _grow(self, join: Join, now_ms: int) -> None:
        """Count a join in its slot of time, and drop the slots that no window reaches."""
        self._joins[now_ms // SLOT_MS] += 1
        for slot in [slot for slot in self._joins if slot <= (now_ms - WEEK_MS) // SLOT_MS]:
            del self._joins[slot]
        for seen, packed in zip(self._addresses, (join.sender, join.recipients), strict=True):
            for at in range(0, len(packed), ADDRESS_BYTES):
                address = packed[at : at + ADDRESS_BYTES]
                seen.pop(address, None)
                seen[address] = now_ms
            while seen and (len(seen) > ADDRESSES_CAP or next(iter(seen.values())) < hour_start(now_ms)):
                del seen[next(iter(seen))]
